"""The DPO loss of a pair over its margin."""

import torch
from matplotlib.figure import Figure

import ppo_core
from lab import drawing
from lab.drawing import number
from lab.figures.lines import Line, draw_lines, grid, steps


@drawing.own_style()
def dpo_margin(*, mark: float | None = None) -> list[tuple[Figure, str]]:
    """Draw the DPO loss of one pair, and the weight with which it pulls, over the implicit reward margin.

    Args:
        mark: a margin in [-4, 4], marked on both lines.
    """
    limit = 4.0
    if mark is not None and not -limit <= mark <= limit:
        raise ValueError(f"mark must be a margin in [-4, 4], got {mark}")
    margins = steps(-limit, limit, 81).tolist()

    def loss_and_weight(margins: list[float]) -> tuple[list[float], list[float]]:
        margin = torch.tensor(margins, dtype=torch.float64, requires_grad=True)
        zero = torch.zeros_like(margin)
        loss = ppo_core.dpo_loss(margin, zero, zero, zero, beta=1.0)
        (slope,) = torch.autograd.grad(loss.sum(), margin)
        return loss.tolist(), (-slope).tolist()

    loss, weight = loss_and_weight(margins)
    figure, axes = drawing.panel(
        x_label="implicit reward margin",
        y_label="loss, weight",
        x_ticks={m: number(m) for m in (0.0, -4.0, 4.0, -2.0, 2.0)},
        y_ticks={float(y): str(y) for y in range(5)},
        x_limits=(-1.02 * limit, 1.02 * limit),
        y_limits=(-0.15, 4.3),
    )
    taken = grid(axes, x=[0], y=[0])
    drawing.heading(axes, "wrong order", drawing.CLIPPED, side="left")
    drawing.heading(axes, "right order", drawing.CLIPPED, side="right")
    if mark is not None:
        (height,), (pull,) = loss_and_weight([mark])
        drawing.dot(axes, mark, height, "D", drawing.INK)
        taken.append(drawing.disc(axes, mark, height))
    lines = [
        Line("loss", margins, loss, drawing.INK, part=(0.1, 0.4)),
        Line("weight of the pair", margins, weight, drawing.INK, (5, 2.5), part=(0.0, 0.3), above=False),
    ]
    taken = draw_lines(axes, lines, taken)
    text = (
        f"Over a margin from −4 through 0 to 4 the loss of a pair falls from {number(round(loss[0], 3))} through "
        f"{number(round(loss[40], 3))} to {number(round(loss[-1], 3))}, and the weight with which it pulls from "
        f"{number(round(weight[0], 3))} through {number(round(weight[40], 3))} to {number(round(weight[-1], 3))}."
    )
    if mark is not None:
        text += (
            f" At the marked margin of {number(mark)} the loss is {number(round(height, 4))} and the weight "
            f"{number(round(pull, 4))}."
        )
        point = axes.transData.transform([(mark, height)])
        where = drawing.spots(point, [(1, 1), (0, 1), *drawing.AROUND], (9, 13, 18, 26))
        drawing.write(axes, number(round(height, 4)), where, taken, drawing.INK, weight="bold")
    return [(figure, text)]
