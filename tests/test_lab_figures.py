"""The reference figure: its lines, numbers, words and labels against plain arithmetic."""

import math

import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from lab import drawing
from lab.figures import COLOURS, clipped_surrogate


def surrogate(ratio: float, advantage: float, epsilon: float) -> float:
    """The clipped surrogate in plain floats: the smaller of two products."""
    clipped = min(max(ratio, 1 - epsilon), 1 + epsilon)
    return min(ratio * advantage, clipped * advantage)


def lines(figure: Figure) -> dict[str, tuple[list[float], list[float]]]:
    """The data of the named lines."""
    (axes,) = figure.axes
    return {
        line.get_label(): (list(line.get_xdata()), list(line.get_ydata()))
        for line in axes.get_lines()
        if line.get_label() in ("flat", "steep", "unclipped")
    }


def colour_of(figure: Figure, label: str) -> str:
    (line,) = (line for line in figure.axes[0].get_lines() if line.get_label() == label)
    return line.get_color()


def marks(figure: Figure, shape: str) -> list[tuple[float, float]]:
    found = [line for line in figure.axes[0].get_lines() if line.get_marker() == shape]
    return [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in found]


def words(figure: Figure) -> list[str]:
    ticks = [
        label for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis) for label in axis.get_ticklabels()
    ]
    return [text.get_text() for text in [*figure.texts, *ticks]]


def test_without_an_advantage_there_is_a_panel_for_each_sign():
    (good, _), (bad, _) = clipped_surrogate()
    assert colour_of(good, "steep") == "#b0176b" and COLOURS["#b0176b"].startswith("var(--ppo-positive,")
    assert colour_of(bad, "steep") == "#5b3cc4" and COLOURS["#5b3cc4"].startswith("var(--ppo-negative,")
    assert {"A > 0", "gradient A", "gradient 0", "unclipped", "1 ± ε", "1.2 A", "2 A"} <= set(words(good))
    assert {"A < 0", "gradient A", "gradient 0", "unclipped", "1 ± ε", "0.8 A", "2 A"} <= set(words(bad))


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.6])
@pytest.mark.parametrize("advantage", [2.0, 0.7, -3.0, -0.01])
def test_lines_are_the_clipped_surrogate(advantage: float, epsilon: float):
    ((figure, _),) = clipped_surrogate(A=advantage, epsilon=epsilon)
    drawn = lines(figure)
    kink = 1 + epsilon if advantage > 0 else 1 - epsilon
    flat, steep = ([kink, 2], [0, kink]) if advantage > 0 else ([0, kink], [kink, 2])
    for label, ends in (("flat", flat), ("steep", steep), ("unclipped", flat)):
        ratios, values = drawn[label]
        assert [ratios[0], ratios[-1]] == pytest.approx(ends, rel=1e-12)
        if label == "unclipped":
            expected = [ratio * advantage for ratio in ratios]
        else:
            expected = [surrogate(ratio, advantage, epsilon) for ratio in ratios]
        assert values == pytest.approx(expected, rel=1e-12)
    assert max(drawn["flat"][1]) == pytest.approx(min(drawn["flat"][1]), rel=1e-12)
    assert marks(figure, "o") == [pytest.approx((kink, kink * advantage), rel=1e-12)]
    assert marks(figure, "D") == []


def test_the_mark_is_on_the_curve_with_its_numbers():
    ((figure, _),) = clipped_surrogate(A=-3, mark=0.5)
    assert marks(figure, "D") == [pytest.approx((0.5, -2.4))]
    assert figure.axes[0].get_xlim()[0] < 0.5 < figure.axes[0].get_xlim()[1]
    # The value stands at the mark and at its tick.
    assert words(figure).count("−2.4") == 2
    assert "◆ ρ = 0.5" in words(figure)


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (
            {"A": -3.0, "mark": 0.5},
            # 0.8 x -3 = -2.4; 2 x -3 = -6
            "For an advantage of −3 the clipped surrogate is flat at −2.4 below a ratio of 0.8, where the gradient "
            "is 0. Above a ratio of 0.8 it falls along the unclipped line, with gradient −3, to −6 at a ratio of 2. "
            "The marked token at ratio 0.5 has the value −2.4, on the flat part, where the gradient is 0.",
        ),
        (
            {"A": 2.0, "mark": 1.1, "epsilon": 0.3},
            # 1.3 x 2 = 2.6; 1.1 x 2 = 2.2
            "For an advantage of 2 the clipped surrogate rises along the unclipped line, with gradient 2, from 0 at "
            "a ratio of 0 to 2.6 at a ratio of 1.3. Above a ratio of 1.3 it is flat at 2.6, where the gradient is 0. "
            "The marked token at ratio 1.1 has the value 2.2, on the sloping part, where the gradient is 2.",
        ),
    ],
)
def test_text_alternative(arguments: dict, expected: str):
    ((_, text),) = clipped_surrogate(**arguments)
    assert text == expected


def test_text_alternative_for_all_advantages_of_a_sign():
    (_, good), (_, bad) = clipped_surrogate(mark=0.8)
    assert good == (
        "For a positive advantage A the clipped surrogate rises along the unclipped line, with gradient A, from 0 at "
        "a ratio of 0 to 1.2 A at a ratio of 1.2. Above a ratio of 1.2 it is flat at 1.2 A, where the gradient is 0. "
        "The marked token at ratio 0.8 has the value 0.8 A, on the sloping part, where the gradient is A."
    )
    # At the kink the gradient is that of the unclipped line.
    assert bad == (
        "For a negative advantage A the clipped surrogate is flat at 0.8 A below a ratio of 0.8, where the gradient "
        "is 0. Above a ratio of 0.8 it falls along the unclipped line, with gradient A, to 2 A at a ratio of 2. "
        "The marked token at ratio 0.8 has the value 0.8 A, at the kink, where the gradient is A."
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"A": 0}, "A must be a finite number other than 0 .* got 0"),
        ({"A": math.nan}, "A must be a finite number other than 0 .* got nan"),
        ({"A": -math.inf}, "A must be a finite number other than 0 .* got -inf"),
        ({"mark": -0.1}, r"mark must be a ratio in \[0, 2\], got -0.1"),
        ({"mark": 2.5}, r"mark must be a ratio in \[0, 2\], got 2.5"),
        ({"mark": math.nan}, r"mark must be a ratio in \[0, 2\], got nan"),
        ({"epsilon": 0}, r"epsilon must lie in \(0, 1\), got 0"),
        ({"epsilon": 1.0}, r"epsilon must lie in \(0, 1\), got 1.0"),
        ({"epsilon": math.nan}, r"epsilon must lie in \(0, 1\), got nan"),
    ],
)
def test_wrong_numbers_are_refused(arguments: dict, message: str):
    with pytest.raises(ValueError, match=message):
        clipped_surrogate(**arguments)


def touching(figure: Figure) -> list[tuple[str, str]]:
    """Labels that touch another label or a line, by the extents that Matplotlib's own font gives them."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    (axes,) = figure.axes
    ticks = [*axes.get_xticklabels(), *axes.get_yticklabels(), axes.xaxis.label]
    # Half the height of a line of text is room above and below the letters.
    boxes = [
        (text.get_text(), text.get_window_extent(renderer).padded(0, -2)) for text in [*figure.texts, *ticks]
    ]
    found = [
        (one, other)
        for index, (one, box) in enumerate(boxes)
        for other, other_box in boxes[index + 1 :]
        if box.overlaps(other_box)
    ]
    for line in axes.get_lines():
        if line.get_label() in ("flat", "steep", "unclipped"):
            for point in drawing.points_along(axes, line.get_xdata(), line.get_ydata()):
                found += [(text, line.get_label()) for text, box in boxes if box.contains(*point)]
    return sorted(set(found))


@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("advantage", [1.5, -3.0])
def test_no_label_touches_another_or_a_line(advantage: float, epsilon: float):
    for step in range(21):
        ((figure, _),) = clipped_surrogate(A=advantage, mark=step / 10, epsilon=epsilon)
        assert touching(figure) == [], f"mark {step / 10}"


def test_touching_labels_are_found():
    ((figure, _),) = clipped_surrogate(A=1.5)
    place = axes_centre(figure.axes[0])
    figure.text(*place, "on the line", ha="center", va="center")
    figure.text(*place, "on the label", ha="center", va="center")
    assert ("on the line", "on the label") in touching(figure)
    assert ("on the line", "steep") in touching(figure)


def axes_centre(axes: Axes) -> tuple[float, float]:
    """The point of the steep line at a ratio of 0.5, in parts of the figure."""
    x, y = axes.transData.transform((0.5, 0.75))
    return x / drawing.WIDTH, y / drawing.HEIGHT


def test_ticks_without_room_are_left_out():
    # At 0.98, 1 and 1.02 only the kink has a label; with a wider band all three have.
    ((narrow, _),) = clipped_surrogate(A=1, epsilon=0.02)
    ((wide, _),) = clipped_surrogate(A=1, epsilon=0.4)
    assert [label.get_text() for label in narrow.axes[0].get_xticklabels()] == ["1.02", "0", "2"]
    assert [label.get_text() for label in wide.axes[0].get_xticklabels()] == ["1.4", "0", "2", "0.6", "1"]
