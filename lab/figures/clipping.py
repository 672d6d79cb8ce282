"""The clipped surrogate over the probability ratio."""

import math
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import ppo_core
from lab import drawing
from lab.drawing import number

LAST = 2.0  # The ratio where the curve ends; it begins at 0.


def clipped_surrogate(
    *, A: float | None = None, mark: float | None = None, epsilon: float = 0.2
) -> list[tuple[Figure, str]]:
    """Draw the clipped surrogate over the probability ratio in [0, 2].

    A panel shows the band from 1 - epsilon to 1 + epsilon (shaded), the part of the curve that has a gradient
    (magenta for a positive A, violet for a negative), the flat part (grey), the kink between the two (a dot),
    and the surrogate before clipping (dashed).

    Args:
        A: the advantage of the token. Without it there are two panels, for a positive and for a negative
            advantage, with values as multiples of A.
        mark: a ratio in [0, 2], marked on the curve with its value.
        epsilon: half the width of the band.

    Raises:
        ValueError: A is 0 or not finite, mark lies outside [0, 2], or epsilon outside (0, 1).
    """
    if A is not None and (A == 0 or not math.isfinite(A)):
        raise ValueError(f"A must be a finite number other than 0 (with 0 there is no curve to see), got {A}")
    if mark is not None and not 0 <= mark <= LAST:
        raise ValueError(f"mark must be a ratio in [0, 2], got {mark}")
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon must lie in (0, 1), got {epsilon}")
    advantages = [1.0, -1.0] if A is None else [float(A)]
    curves = [_study(advantage, mark, epsilon, unit="A" if A is None else "") for advantage in advantages]
    return [(_draw(curve), _describe(curve)) for curve in curves]


@dataclass(frozen=True)
class _Curve:
    """What one panel shows. A line is its ratios and their values."""

    advantage: float
    unit: str  # "A": numbers are written as multiples of A
    band: tuple[float, float]
    kink: tuple[float, float]
    flat: tuple[list[float], list[float]]
    steep: tuple[list[float], list[float]]
    unclipped: tuple[list[float], list[float]]  # where it differs from the clipped surrogate
    gradient: float  # on the steep part
    mark: tuple[float, float] | None
    mark_gradient: float

    def amount(self, value: float) -> str:
        """Write a value or a gradient, as a multiple of A where the panel stands for all A of one sign."""
        if not self.unit or value == 0:
            return number(value)
        factor = number(value / self.advantage)
        return self.unit if factor == "1" else f"{factor} {self.unit}"


def _study(A: float, mark: float | None, epsilon: float, unit: str) -> _Curve:
    """Ask the library where the curve is flat, and for every value that is drawn."""
    low, high = 1 - epsilon, 1 + epsilon
    below, above = _gradient(low / 2, A, epsilon), _gradient((high + LAST) / 2, A, epsilon)
    kink = low if below == 0 else high
    left, right = _between(0.0, kink), _between(kink, LAST)
    flat, steep = (left, right) if below == 0 else (right, left)
    return _Curve(
        advantage=A,
        unit=unit,
        band=(low, high),
        kink=(kink, _clipped([kink], A, epsilon)[0]),
        flat=(flat, _clipped(flat, A, epsilon)),
        steep=(steep, _clipped(steep, A, epsilon)),
        unclipped=(flat, _unclipped(flat, A)),
        gradient=above if below == 0 else below,
        mark=None if mark is None else (mark, _clipped([mark], A, epsilon)[0]),
        mark_gradient=0.0 if mark is None else _gradient(mark, A, epsilon),
    )


def _between(first: float, last: float) -> list[float]:
    return torch.linspace(first, last, 5, dtype=torch.float64).tolist()


def _clipped(ratios: list[float], A: float, epsilon: float) -> list[float]:
    ratio = torch.tensor(ratios, dtype=torch.float64)
    return ppo_core.clipped_surrogate(ratio, torch.full_like(ratio, A), epsilon=epsilon).tolist()


def _unclipped(ratios: list[float], A: float) -> list[float]:
    ratio = torch.tensor(ratios, dtype=torch.float64)
    return ppo_core.surrogate(ratio, torch.full_like(ratio, A)).tolist()


def _gradient(ratio: float, A: float, epsilon: float) -> float:
    at = torch.tensor([ratio], dtype=torch.float64, requires_grad=True)
    value = ppo_core.clipped_surrogate(at, torch.full_like(at, A), epsilon=epsilon)
    return torch.autograd.grad(value.sum(), at)[0].item()


@drawing.own_style()
def _draw(curve: _Curve) -> Figure:
    positive = curve.advantage > 0
    colour = drawing.POSITIVE if positive else drawing.NEGATIVE
    kink, level = curve.kink
    end = curve.advantage * LAST
    # The ticks that matter most come first: one without room is left out.
    figure, axes = drawing.panel(
        x_label="probability ratio ρ",
        y_label="clipped surrogate",
        x_ticks={ratio: number(ratio) for ratio in (kink, 0.0, LAST, *curve.band, 1.0)},
        y_ticks={value: curve.amount(value) for value in (level, 0.0, end)},
        x_limits=(-0.06, LAST + 0.06),
        y_limits=(0, 1.14 * end) if positive else (1.07 * end, -0.14 * end),
    )
    sign = f"A {'>' if positive else '<'} 0"
    drawing.heading(axes, sign if curve.unit else f"A = {number(curve.advantage)}", colour, side="left")
    axes.axvspan(*curve.band, facecolor=drawing.GRID, edgecolor="none", alpha=0.5, zorder=-1)
    axes.axhline(0, color=drawing.GRID, linewidth=0.8, zorder=0)
    axes.axvline(1, ymax=0.9, color=drawing.CLIPPED, linewidth=0.6, zorder=0)
    axes.plot(*curve.unclipped, color=drawing.INK, linewidth=1, dashes=(4, 3), zorder=2, label="unclipped")
    axes.plot(*curve.flat, color=drawing.CLIPPED, linewidth=2.6, zorder=3, label="flat")
    axes.plot(*curve.steep, color=colour, linewidth=2.6, zorder=4, label="steep")
    drawing.dot(axes, kink, level, "o", colour)
    if curve.mark:
        drawing.dot(axes, *curve.mark, "D", drawing.INK)
        drawing.heading(axes, f"◆ ρ = {number(curve.mark[0])}", drawing.INK, side="right")
    _write_labels(axes, curve, colour)
    return figure


def _write_labels(axes: Axes, curve: _Curve, colour: str) -> None:
    """Name the lines and the mark, each label where it touches nothing."""
    flat, steep, unclipped = (
        drawing.points_along(axes, *line) for line in (curve.flat, curve.steep, curve.unclipped)
    )
    bottom, top = axes.get_ylim()
    one = drawing.points_along(axes, [1, 1], [bottom, top])
    zero = drawing.points_along(axes, axes.get_xlim(), [0, 0])
    dots = [drawing.disc(axes, *point) for point in (curve.kink, curve.mark) if point]
    taken = [flat, steep, unclipped, one, zero, *dots]
    # Labels of the steep and the unclipped line stand above, that of the flat one below: a mark tries the rest.
    side = 1 if curve.advantage > 0 else -1
    above, below = (-side, 1), (side, -1)
    beside_steep = drawing.spots(steep, [above, below, *drawing.AROUND], (9, 14, 20, 28, 40))
    beside_flat = drawing.spots(flat, [(0, -1), (0, 1), *drawing.AROUND], (7, 12, 18, 26, 40))
    beside_unclipped = drawing.spots(unclipped, [above, below, *drawing.AROUND], (7, 12, 18, 26, 40))
    drawing.write(axes, "1 ± ε", [(*one[-1] - (0, drawing.TEXT), "center")], taken, drawing.INK)
    if curve.mark:
        first = [(0, 1), (side, 1), (0, -1)] if curve.mark_gradient == 0 else [below, above]
        point = axes.transData.transform([curve.mark])
        where = drawing.spots(point, [*first, *drawing.AROUND], (9, 13, 18, 24, 31, 39))
        drawing.write(axes, curve.amount(curve.mark[1]), where, taken, drawing.INK, weight="bold")
    drawing.write(axes, "slope 0", beside_flat, taken, drawing.CLIPPED)
    drawing.write(axes, f"slope {curve.amount(curve.gradient)}", beside_steep, taken, colour)
    drawing.write(axes, "unclipped", beside_unclipped, taken, drawing.INK)


def _describe(curve: _Curve) -> str:
    """Say in words what the panel shows, with its numbers."""
    amount = curve.amount
    kink, level = number(curve.kink[0]), amount(curve.kink[1])
    ends = [(amount(value), number(ratio)) for ratio, value in zip(*curve.steep, strict=True)]
    if curve.unit:
        who = f"For a {'positive' if curve.advantage > 0 else 'negative'} advantage A"
    else:
        who = f"For an advantage of {number(curve.advantage)}"
    if curve.advantage > 0:
        shape = (
            f"the clipped surrogate rises along the unclipped line, with slope {amount(curve.gradient)}, "
            f"from {ends[0][0]} at a ratio of {ends[0][1]} to {level} at a ratio of {kink}. "
            f"Above a ratio of {kink} it is flat at {level}, where the slope is 0."
        )
    else:
        shape = (
            f"the clipped surrogate is flat at {level} below a ratio of {kink}, where the slope is 0. "
            f"Above a ratio of {kink} it falls along the unclipped line, "
            f"with slope {amount(curve.gradient)}, to {ends[-1][0]} at a ratio of {ends[-1][1]}."
        )
    text = f"{who} {shape}"
    if curve.mark:
        ratio, value = curve.mark
        if ratio == curve.kink[0]:
            place = "at the kink"
        else:
            place = "on the flat part" if curve.mark_gradient == 0 else "on the sloping part"
        text += (
            f" The marked token at ratio {number(ratio)} has the value {amount(value)}, {place}, "
            f"where the slope is {amount(curve.mark_gradient)}."
        )
    return text
