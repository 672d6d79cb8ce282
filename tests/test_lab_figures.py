"""The figures: their lines, numbers, words and labels against plain arithmetic."""

import math

import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from build_tools.svg import to_svg
from lab import drawing
from lab.figures import (
    COLOURS,
    baseline_variance,
    clipped_surrogate,
    dpo_margin,
    gae_weights,
    kl_estimators,
    over_optimisation,
    token_rewards,
)


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
        if not line.get_label().startswith("_")
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
    assert {"A > 0", "slope A", "slope 0", "unclipped", "1 ± ε", "1.2 A", "2 A"} <= set(words(good))
    assert {"A < 0", "slope A", "slope 0", "unclipped", "1 ± ε", "0.8 A", "2 A"} <= set(words(bad))


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
            "For an advantage of −3 the clipped surrogate is flat at −2.4 below a ratio of 0.8, where the slope "
            "is 0. Above a ratio of 0.8 it falls along the unclipped line, with slope −3, to −6 at a ratio of 2. "
            "The marked token at ratio 0.5 has the value −2.4, on the flat part, where the slope is 0.",
        ),
        (
            {"A": 2.0, "mark": 1.1, "epsilon": 0.3},
            # 1.3 x 2 = 2.6; 1.1 x 2 = 2.2
            "For an advantage of 2 the clipped surrogate rises along the unclipped line, with slope 2, from 0 at "
            "a ratio of 0 to 2.6 at a ratio of 1.3. Above a ratio of 1.3 it is flat at 2.6, where the slope is 0. "
            "The marked token at ratio 1.1 has the value 2.2, on the sloping part, where the slope is 2.",
        ),
    ],
)
def test_text_alternative(arguments: dict, expected: str):
    ((_, text),) = clipped_surrogate(**arguments)
    assert text == expected


def test_text_alternative_for_all_advantages_of_a_sign():
    (_, good), (_, bad) = clipped_surrogate(mark=0.8)
    assert good == (
        "For a positive advantage A the clipped surrogate rises along the unclipped line, with slope A, from 0 at "
        "a ratio of 0 to 1.2 A at a ratio of 1.2. Above a ratio of 1.2 it is flat at 1.2 A, where the slope is 0. "
        "The marked token at ratio 0.8 has the value 0.8 A, on the sloping part, where the slope is A."
    )
    # At the kink the gradient is that of the unclipped line.
    assert bad == (
        "For a negative advantage A the clipped surrogate is flat at 0.8 A below a ratio of 0.8, where the slope "
        "is 0. Above a ratio of 0.8 it falls along the unclipped line, with slope A, to 2 A at a ratio of 2. "
        "The marked token at ratio 0.8 has the value 0.8 A, at the kink, where the slope is A."
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
        if not line.get_label().startswith("_"):
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


OPTIMISED = {
    "reference": (0.3, 0.3, 0.25, 0.149, 0.001),
    "proxy": (0.0, 1.0, 2.0, 3.0, 5.0),
    "true": (0.0, 1.0, 2.0, 3.0, -1.0),
}
ANSWER = {
    "score": 1.0,
    "policy": (0.5, 0.9, 0.4, 0.6, 0.5),
    "reference": (0.5, 0.3, 0.5, 0.4, 0.2),
    "beta": 0.2,
}
LOPSIDED = {"probs": (0.9, 0.1), "rewards": (1.0, 0.0)}
OTHERS = [
    (kl_estimators, {}),
    (baseline_variance, LOPSIDED),
    (baseline_variance, {"probs": (0.5, 0.5), "rewards": (1.0, 0.0)}),
    (baseline_variance, {"probs": (0.2, 0.3, 0.5), "rewards": (-1.0, 2.0, 0.5)}),
    (token_rewards, ANSWER),
    (token_rewards, {**ANSWER, "score": -0.5}),
    (gae_weights, {"lams": (0.0, 0.8, 0.95, 1.0)}),
    (gae_weights, {"lams": (0.9, 1.0), "gamma": 0.99}),
    (dpo_margin, {}),
    (dpo_margin, {"mark": 0.5}),
    (dpo_margin, {"mark": -3.0}),
    (over_optimisation, OPTIMISED),
]


@pytest.mark.parametrize("draw, arguments", OTHERS)
def test_no_label_of_the_other_figures_touches_another_or_a_line(draw, arguments: dict):
    for figure, text in draw(**arguments):
        assert touching(figure) == []
        assert text.endswith(".") and "nan" not in text


@pytest.mark.parametrize("draw, arguments", OTHERS)
def test_the_other_figures_follow_the_colour_scheme_and_are_the_same_every_time(draw, arguments: dict):
    first, second = (
        [to_svg(figure, alt=text, key="x", colours=COLOURS) for figure, text in draw(**arguments)]
        for _ in range(2)
    )
    assert first == second


def test_kl_estimators_and_their_gradients():
    (values, text), (gradients, _) = kl_estimators()
    # x is the log-ratio to the reference; d = -x
    expected = {
        "k₁": (lambda x: x, lambda x: 1),
        "k₂": (lambda x: x * x / 2, lambda x: x),
        "k₃": (lambda x: math.exp(-x) - 1 + x, lambda x: 1 - math.exp(-x)),
    }
    for figure, which in ((values, 0), (gradients, 1)):
        drawn = lines(figure)
        assert list(drawn) == list(expected)
        for name, (x, y) in drawn.items():
            assert [x[0], x[-1]] == [-1.5, 1.5]
            assert y == pytest.approx([expected[name][which](at) for at in x], abs=1e-12)
            assert colour_of(figure, name) == "#00706b"
    # e^1.5 - 1 - 1.5 = 1.982; e^-1.5 - 1 + 1.5 = 0.723
    assert "k3 goes from 1.982 over 0 to 0.723" in text


def test_kl_estimators_are_told_apart_without_colour():
    (figure, _), _ = kl_estimators()
    styles = {line.get_label(): line._dash_pattern for line in figure.axes[0].get_lines()}
    assert len({str(styles[name]) for name in ("k₁", "k₂", "k₃")}) == 3


def test_baseline_variance_is_the_parabola():
    ((figure, text),) = baseline_variance(**LOPSIDED)
    baselines, variances = lines(figure)["variance"]
    # The estimates are (1 - b) 0.1 with probability 0.9 and (0 - b)(-0.9) with 0.1; their mean is 0.09.
    plain = [0.9 * ((1 - b) * 0.1 - 0.09) ** 2 + 0.1 * (0.9 * b - 0.09) ** 2 for b in baselines]
    assert variances == pytest.approx(plain, abs=1e-12)
    assert marks(figure, "o") == [pytest.approx((0, 0.0009))]
    assert marks(figure, "D") == [pytest.approx((0.9, 0.0576))]
    assert marks(figure, "s") == [pytest.approx((0.1, 0), abs=1e-12)]
    assert text == (
        "The variance of the one-sample policy gradient is a parabola over the baseline: 0.0009 at no baseline; "
        "0.0576 at V, 0.9; 0 at the best, 0.1."
    )


def test_a_value_that_is_the_best_baseline_has_one_mark():
    ((figure, text),) = baseline_variance(probs=(0.5, 0.5), rewards=(1.0, 0.0))
    assert marks(figure, "D") == [pytest.approx((0.5, 0), abs=1e-12)] and marks(figure, "s") == []
    assert text.endswith("0 at V, the best, 0.5.")


def test_token_rewards_are_the_leash_and_the_score():
    ((figure, text),) = token_rewards(**ANSWER)
    leash = [-0.2 * math.log(p / q) for p, q in zip(ANSWER["policy"], ANSWER["reference"], strict=True)]
    bars = [(bar.get_height(), bar.get_facecolor()) for bar in figure.axes[0].patches]
    assert [height for height, _ in bars] == pytest.approx([*leash, 1.0], abs=1e-12)
    # 0.2 log 3 = 0.220; 0.2 log 1.25 = 0.045; 0.2 log 1.5 = 0.081; 1 - 0.2 log 2.5 = 0.817
    assert {"0", "−0.22", "0.045", "−0.081", "both: 0.817"} <= set(words(figure))
    assert text == (
        "The rewards of the 5 tokens of one answer are 0, −0.22, 0.045, −0.081, 0.817. Every token pays the leash; "
        "the score of 1 is added at the last. Together they make 0.561."
    )


@pytest.mark.parametrize("gamma", [1.0, 0.99])
def test_gae_weights_are_powers(gamma: float):
    ((figure, text),) = gae_weights(lams=(0.0, 0.8, 1.0), gamma=gamma)
    for name, (ahead, weights) in lines(figure).items():
        lam = float(name.removeprefix("λ = "))
        assert ahead == list(range(21))
        assert weights == pytest.approx([(gamma * lam) ** t for t in ahead], abs=1e-12)
    assert ("λ = 0.8: 1 at 0 tokens ahead, 0.8 at 1, 0.107 at 10" in text) == (gamma == 1)


def test_dpo_margin_is_the_logistic_loss():
    ((figure, text),) = dpo_margin(mark=0.5)
    drawn = lines(figure)
    margins, losses = drawn["loss"]
    assert losses == pytest.approx([math.log1p(math.exp(-m)) for m in margins], abs=1e-12)
    assert drawn["weight of the pair"][1] == pytest.approx(
        [1 / (1 + math.exp(m)) for m in margins], abs=1e-12
    )
    # log(1 + e^-0.5) = 0.4741; 1 / (1 + e^0.5) = 0.3775
    assert marks(figure, "D") == [pytest.approx((0.5, 0.4741), abs=1e-4)]
    assert text.endswith("At the marked margin of 0.5 the loss is 0.4741 and the weight 0.3775.")


@pytest.mark.parametrize("mark", [4.5, -5.0, math.nan])
def test_a_margin_outside_the_figure_is_refused(mark: float):
    with pytest.raises(ValueError, match=r"mark must be a margin in \[-4, 4\]"):
        dpo_margin(mark=mark)


def tilted(beta: float) -> tuple[float, float, float]:
    """Proxy score, true score and divergence of the reference tilted by the proxy, in plain floats."""
    weights = [
        p * math.exp(r / beta) for p, r in zip(OPTIMISED["reference"], OPTIMISED["proxy"], strict=True)
    ]
    probs = [weight / sum(weights) for weight in weights]

    def average(numbers) -> float:
        return sum(p * number for p, number in zip(probs, numbers, strict=True))

    drift = average([math.log(p / q) for p, q in zip(probs, OPTIMISED["reference"], strict=True)])
    return average(OPTIMISED["proxy"]), average(OPTIMISED["true"]), drift


def test_over_optimisation_is_the_tilted_reference():
    ((figure, text),) = over_optimisation(**OPTIMISED)
    drawn = lines(figure)
    betas = [10 ** (2 - 4 * n / 240) for n in range(241)]
    for n in range(0, 241, 8):
        proxy, true, drift = tilted(betas[n]) if betas[n] > 0.01 else (5, -1, math.log(1000))
        assert drawn["proxy score"][0][n] == pytest.approx(drift, abs=1e-9)
        assert drawn["proxy score"][1][n] == pytest.approx(proxy, abs=1e-9)
        assert drawn["true score"][1][n] == pytest.approx(true, abs=1e-9)
    proxies, trues = drawn["proxy score"][1], drawn["true score"][1]
    assert all(a <= b + 1e-12 for a, b in zip(proxies, proxies[1:], strict=False))
    # The peak is inside, and marked.
    assert marks(figure, "o")[0][1] == max(trues) > max(trues[0], trues[-1])
    assert text.startswith("As the leash is loosened the KL divergence grows from 0 to 6.91 nats.")
    assert text.endswith("rises from 1.26 to 2.29 at 0.9 nats, where β is about 0.7, then falls to −1.")
    # The exact optimum, 0.729, is no beta of the grid; one significant digit of it holds.
    assert tilted(0.729)[1] > max(trues) > max(tilted(0.65)[1], tilted(0.75)[1])
    assert "β ≈ 0.7" in words(figure)
