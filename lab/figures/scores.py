"""Proxy and true score over the KL divergence from the reference."""

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure

import lab
from lab import drawing
from lab.drawing import number
from lab.figures.lines import Line, draw_lines, grid


@drawing.own_style()
def over_optimisation(
    *, reference: Sequence[float], proxy: Sequence[float], true: Sequence[float]
) -> list[tuple[Figure, str]]:
    """Draw proxy and true score, over the KL divergence, of the policies that are best for the proxy score.

    There is one such policy for each strength of the leash, beta, from 100 to 0.01.

    Args:
        reference: the probability of each answer under the reference.
        proxy: the score that the reward model gives to each answer.
        true: the score that it ought to give.
    """
    world = [torch.tensor(numbers, dtype=torch.float64) for numbers in (reference, proxy, true)]

    def scores(beta: float) -> tuple[float, float, float]:
        return tuple(lab.proxy_and_true(*world, beta=beta).tolist())

    betas = torch.logspace(2, -2, 241, dtype=torch.float64).tolist()
    proxies, trues, drifts = map(list, zip(*map(scores, betas), strict=True))
    peak = max(range(len(trues)), key=trues.__getitem__)
    # The exact optimum lies between two of the betas: more digits would be those of the grid.
    about = number(float(f"{betas[peak]:.1g}"))
    lowest, highest = min(proxies + trues), max(proxies + trues)
    room = 0.08 * (highest - lowest)
    figure, axes = drawing.panel(
        x_label="KL divergence from the reference, in nats",
        y_label="expected score",
        x_ticks={float(x): str(x) for x in range(int(drifts[-1]) + 1)},
        y_ticks={value: number(round(value, 2)) for value in (0.0, trues[peak], proxies[-1], trues[-1])},
        x_limits=(-0.03 * drifts[-1], 1.03 * drifts[-1]),
        y_limits=(lowest - room, highest + room),
    )
    taken = grid(axes, y=[0])
    lines = [
        Line("proxy score", drifts, proxies, drawing.INK, (5, 2.5), part=(0.3, 0.7)),
        Line("true score", drifts, trues, drawing.INK, part=(0.3, 0.8), above=False),
    ]
    drawing.dot(axes, drifts[peak], trues[peak], "o", drawing.INK)
    taken.append(drawing.disc(axes, drifts[peak], trues[peak]))
    taken = draw_lines(axes, lines, taken)
    point = axes.transData.transform([(drifts[peak], trues[peak])])
    where = drawing.spots(point, [(0, -1), (1, -1), *drawing.AROUND], (9, 13, 18, 26, 34))
    drawing.write(axes, f"β ≈ {about}", where, taken, drawing.KL)
    text = (
        "As the leash is loosened the KL divergence grows from 0 to "
        f"{number(round(drifts[-1], 2))} nats. The expected proxy score rises all the way, from "
        f"{number(round(proxies[0], 2))} to {number(round(proxies[-1], 2))}. The expected true score rises from "
        f"{number(round(trues[0], 2))} to {number(round(trues[peak], 2))} at {number(round(drifts[peak], 2))} nats, "
        f"where β is about {about}, then falls to {number(round(trues[-1], 2))}."
    )
    return [(figure, text)]
