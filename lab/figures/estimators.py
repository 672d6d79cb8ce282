"""The KL estimators of one token over its log-ratio to the reference."""

import torch
from matplotlib.figure import Figure

import ppo_core
from lab import drawing
from lab.drawing import number
from lab.figures.lines import Line, draw_lines, grid, steps

DRIFT = 1.5  # The log-ratios of the KL figure reach this far to both sides.
ESTIMATORS = {"k1": ppo_core.kl_k1, "k2": ppo_core.kl_k2, "k3": ppo_core.kl_k3}
SHOWN = {"k1": "k₁", "k2": "k₂", "k3": "k₃"}
DASHES = {"k1": (5, 2.5), "k2": (), "k3": (1.5, 1.5)}


@drawing.own_style()
def kl_estimators() -> list[tuple[Figure, str]]:
    """Draw the three KL estimators of one token over its log-ratio to the reference: values, then gradients.

    The gradient is the derivative with respect to the token's log-probability under the policy.
    """
    drift = steps(-DRIFT, DRIFT, 61).requires_grad_()
    values, gradients = {}, {}
    for name, estimator in ESTIMATORS.items():
        value = estimator(drift, torch.zeros_like(drift))
        (gradient,) = torch.autograd.grad(value.sum(), drift)
        values[name], gradients[name] = value.tolist(), gradient.tolist()
    return [
        _draw_estimators("Value", "estimate, in nats", drift.tolist(), values),
        _draw_estimators("Gradient", "slope in the log-ratio", drift.tolist(), gradients),
    ]


def _draw_estimators(
    title: str, y_label: str, drift: list[float], results: dict[str, list[float]]
) -> tuple[Figure, str]:
    lowest = min(map(min, results.values()))
    highest = max(map(max, results.values()))
    room = 0.06 * (highest - lowest)
    figure, axes = drawing.panel(
        x_label="log-ratio to the reference, in nats",
        y_label=y_label,
        x_ticks={x: number(x) for x in (0.0, -1.0, 1.0)},
        y_ticks={y: number(y) for y in (0.0, 1.0, 2.0, -1.0, -2.0, -3.0) if lowest <= y <= highest},
        x_limits=(-1.04 * DRIFT, 1.04 * DRIFT),
        y_limits=(lowest - room, highest + room),
    )
    drawing.heading(axes, title, drawing.INK, side="left")
    grid(axes, x=[0], y=[0])
    # At the left end the three are apart: the name of the highest stands above it, the others in the open.
    order = sorted(results, key=lambda name: results[name][0])
    draw_lines(
        axes,
        [
            Line(SHOWN[name], drift, ys, drawing.KL, DASHES[name], part=(0.02, 0.22), above=above)
            for name, ys in results.items()
            for above in [name == order[2] or (name == order[1] and ys[0] < 0)]
        ],
    )
    middle = len(drift) // 2
    shapes = [
        f"{name} goes from {number(round(ys[0], 3))} over {number(round(ys[middle], 3))} "
        f"to {number(round(ys[-1], 3))}"
        for name, ys in results.items()
    ]
    text = (
        f"{title} of the three estimators where the log-ratio to the reference goes from {number(-DRIFT)} "
        f"over 0 to {number(DRIFT)}: {', '.join(shapes)}."
    )
    return figure, text
