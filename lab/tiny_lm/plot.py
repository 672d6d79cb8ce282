"""The plot of a run: reward and KL over the iterations, each seed thin and their median thick."""

import statistics
from collections.abc import Sequence

from lab import drawing
from lab.drawing import number
from lab.figures.lines import Line, draw_lines, grid


@drawing.own_style()
def reward_and_kl(found: dict) -> list[tuple[drawing.Figure, str]]:
    """Draw the results of `experiment`; return two panels with what they show in words."""
    return [
        _panel(found, "score", "mean reward of an answer", "reward per answer", drawing.INK),
        _panel(found, "kl", "mean KL to the reference, in nats,", "KL per answer, nats", drawing.KL),
    ]


def _panel(found: dict, name: str, said: str, label: str, colour: str) -> tuple[drawing.Figure, str]:
    curves = [run["iterations"][name] for run in found["runs"]]
    median = [statistics.median(values) for values in zip(*curves, strict=True)]
    count = len(median)
    iterations = list(range(1, count + 1))
    low, high = min(0.0, *map(min, curves)), max(map(max, curves))
    first, last = round(median[0], 2) + 0.0, round(median[-1], 2)
    figure, axes = drawing.panel(
        x_label="iteration of PPO",
        y_label=label,
        x_ticks={x: str(x) for x in (1, count, *range(10, count, 10))},
        y_ticks={last: number(last), 0.0: "0"},
        x_limits=(0.0, count + 1.0),
        y_limits=(low - 0.08 * (high - low), high + 0.12 * (high - low)),
    )
    drawing.heading(axes, f"{len(curves)} seeds and their median", colour, side="left")
    taken = [*grid(axes, y=[0, last]), *_each_seed(axes, iterations, curves)]
    middle = Line("median", iterations, median, colour, part=(0.25, 0.75))
    draw_lines(axes, [middle], taken)
    return figure, (
        f"The {said} over {count} iterations of PPO. The median of {len(curves)} seeds goes from "
        f"{number(first)} in the first iteration to {number(last)} in the last, where the seeds lie between "
        f"{number(round(min(curve[-1] for curve in curves), 2))} and "
        f"{number(round(max(curve[-1] for curve in curves), 2))}."
    )


def _each_seed(
    axes: drawing.Axes, iterations: Sequence[int], curves: Sequence[Sequence[float]]
) -> list[drawing.Points]:
    """Draw a thin line for each seed; return the points that are taken."""
    for curve in curves:
        axes.plot(iterations, curve, color=drawing.CLIPPED, linewidth=0.8, zorder=2)
    return [drawing.points_along(axes, iterations, curve) for curve in curves]
