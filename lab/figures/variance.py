"""The variance of the policy gradient over the baseline."""

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure

import lab
from lab import drawing
from lab.drawing import number
from lab.figures.lines import grid, steps


@drawing.own_style()
def baseline_variance(*, probs: Sequence[float], rewards: Sequence[float]) -> list[tuple[Figure, str]]:
    """Draw the variance of the one-sample policy gradient over the baseline, in the world of `lab.bandit`.

    Three baselines are marked: none, the value V, and the best.

    Args:
        probs: the probabilities of the actions.
        rewards: the reward of each action.
    """
    world = torch.tensor(probs, dtype=torch.float64), torch.tensor(rewards, dtype=torch.float64)
    value, best = lab.expected_reward(*world).item(), lab.best_baseline(*world).item()
    if abs(value - best) < 1e-9:
        marks = {"no baseline": (0.0, "o"), "V, the best": (value, "D")}
    else:
        marks = {"no baseline": (0.0, "o"), "V": (value, "D"), "the best": (best, "s")}

    def variance(baseline: float) -> float:
        return lab.policy_gradient_variance(*world, baseline=baseline).item()

    places = [place for place, _ in marks.values()]
    margin = 0.2 * (max(places) - min(places)) or 1.0
    first, last = min(places) - margin, max(places) + margin
    baselines = steps(first, last, 61).tolist()
    variances = [variance(baseline) for baseline in baselines]
    top = max(variances)
    figure, axes = drawing.panel(
        x_label="baseline b",
        y_label="variance of one estimate",
        x_ticks={place: number(round(place, 3)) for place in places},
        y_ticks={value: number(round(value, 4)) for value in (0.0, *map(variance, places))},
        x_limits=(first, last),
        y_limits=(-0.09 * top, 1.05 * top),
    )
    taken = grid(axes, y=[0])
    axes.plot(baselines, variances, color=drawing.INK, linewidth=2.2, zorder=3, label="variance")
    taken.append(drawing.points_along(axes, baselines, variances))
    taken += [drawing.disc(axes, place, variance(place)) for place in places]
    for name, (place, shape) in marks.items():
        drawing.dot(axes, place, variance(place), shape, drawing.INK)
        point = axes.transData.transform([(place, variance(place))])
        where = drawing.spots(point, [(-1, 1), (0, 1), *drawing.AROUND], (10, 14, 19, 26, 34, 44, 56))
        drawing.write(axes, name, where, taken, drawing.INK)
    said = [
        f"{number(round(variance(place), 6))} at {name}{'' if place == 0 else ', ' + number(round(place, 6))}"
        for name, (place, _) in marks.items()
    ]
    text = (
        f"The variance of the one-sample policy gradient is a parabola over the baseline: {'; '.join(said)}."
    )
    return [(figure, text)]
