"""The weights of the TD errors in an advantage."""

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure

import ppo_core
from lab import drawing
from lab.drawing import number
from lab.figures.lines import Line, draw_lines, grid

HORIZON = 20  # The weights are drawn for so many tokens ahead.
LINE_MARKS = "osD^v"


@drawing.own_style()
def gae_weights(*, lams: Sequence[float], gamma: float = 1.0) -> list[tuple[Figure, str]]:
    """Draw how much the TD error of each later token counts in the advantage of this one.

    The weights are asked of `ppo_core.gae`: with every value 0, a reward of 1 at one later token is a TD error
    of 1 there, and the advantage is its weight.

    Args:
        lams: the values of lambda, from 0 to 1, one line each.
        gamma: the discount.
    """
    impulses = torch.eye(HORIZON + 1, dtype=torch.float64)
    every = torch.ones_like(impulses, dtype=torch.bool)
    weights = {
        lam: ppo_core.gae(impulses, torch.zeros_like(impulses), every, gamma=gamma, lam=lam)[:, 0].tolist()
        for lam in sorted(lams, reverse=True)
    }
    ahead = list(range(HORIZON + 1))
    figure, axes = drawing.panel(
        x_label="tokens ahead",
        y_label="weight of the TD error",
        x_ticks={t: str(t) for t in range(0, HORIZON + 1, 5)},
        y_ticks={0.0: "0", 1.0: "1", 0.5: "0.5"},
        x_limits=(-0.6, HORIZON + 0.6),
        y_limits=(-0.05, 1.14),
    )
    taken = grid(axes, y=[0, 0.5])
    lines = []
    for index, (lam, line) in enumerate(weights.items()):
        axes.plot(ahead, line, LINE_MARKS[index % len(LINE_MARKS)], color=drawing.INK, markersize=4, zorder=4)
        # A line that falls fast is named where it has fallen, a slow one near its end.
        fallen = next((t for t, weight in enumerate(line) if weight < 0.5), HORIZON) / HORIZON
        part = (fallen, fallen + 0.2) if fallen < 0.7 else (0.7, 0.95)
        lines.append(Line(f"λ = {number(lam)}", ahead, line, drawing.INK, part=part))
    draw_lines(axes, lines, taken, width=1)
    said = "; ".join(
        f"λ = {number(lam)}: 1 at 0 tokens ahead, {number(round(line[1], 3))} at 1, "
        f"{number(round(line[10], 3))} at 10, {number(round(line[-1], 3))} at {HORIZON}"
        for lam, line in weights.items()
    )
    return [(figure, f"The weight of each TD error in the advantage, for γ = {number(gamma)}. {said}.")]
