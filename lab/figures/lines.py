"""What figures of several lines share: lines with their names beside them, and thin lines through the axes."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from torch import Tensor

from lab import drawing


@dataclass(frozen=True)
class Line:
    """A line with its name, which stands beside the part of it between two fractions of the width of the axes."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    dashes: tuple[float, ...] = ()
    part: tuple[float, float] = (0, 1)
    above: bool = True


def draw_lines(
    axes: Axes, lines: list[Line], taken: Sequence[drawing.Points] = (), *, width: float = 2.2
) -> list[drawing.Points]:
    """Draw the lines, then their names where they touch nothing; return the points that are taken."""
    drawn = []
    for line in lines:
        axes.plot(
            line.x,
            line.y,
            color=line.colour,
            linewidth=width,
            dashes=line.dashes or (None, None),
            zorder=3,
            label=line.name,
        )
        drawn.append(drawing.points_along(axes, line.x, line.y))
    taken = [*taken, *drawn]
    for line, points in zip(lines, drawn, strict=True):
        first, last = (axes.bbox.x0 + part * axes.bbox.width for part in line.part)
        side = 1 if line.above else -1
        directions = [(0, side), (1, side), (-1, side), *drawing.AROUND]
        within = points[(points[:, 0] >= first) & (points[:, 0] <= last)]
        where = drawing.spots(within, directions, (7, 10, 14, 19, 26, 40))
        drawing.write(axes, line.name, where, taken, line.colour)
    return taken


def grid(axes: Axes, *, x: Sequence[float] = (), y: Sequence[float] = ()) -> list[drawing.Points]:
    """Draw thin lines through the axes at these places; return their points."""
    points = []
    for place in x:
        axes.axvline(place, color=drawing.GRID, linewidth=0.8, zorder=0)
        points.append(drawing.points_along(axes, [place, place], axes.get_ylim()))
    for place in y:
        axes.axhline(place, color=drawing.GRID, linewidth=0.8, zorder=0)
        points.append(drawing.points_along(axes, axes.get_xlim(), [place, place]))
    return points


def steps(first: float, last: float, count: int) -> Tensor:
    return torch.linspace(first, last, count, dtype=torch.float64)
