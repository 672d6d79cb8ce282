"""The style that all figures share: colours, an empty panel, and labels that touch nothing."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import matplotlib
import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

POSITIVE = "#b0176b"
NEGATIVE = "#5b3cc4"
KL = "#00706b"
CLIPPED = "#6b7280"
INK = "#1f2330"
GRID = "#d5d9e2"
PAPER = "#ffffff"

# What a page puts in the place of each colour, so that a figure follows the colour scheme of the reader.
COLOURS = {
    POSITIVE: f"var(--ppo-positive, {POSITIVE})",
    NEGATIVE: f"var(--ppo-negative, {NEGATIVE})",
    KL: f"var(--ppo-kl, {KL})",
    CLIPPED: f"var(--ppo-clipped, {CLIPPED})",
    INK: f"var(--ppo-ink, {INK})",
    GRID: f"var(--ppo-grid, {GRID})",
    PAPER: f"var(--ppo-paper, {PAPER})",
}

# Lengths are in points, the units of the SVG. On a panel 340 CSS pixels wide, text of 10.5 has 11.8 pixels.
WIDTH, HEIGHT = 302.4, 230.4
TEXT = 10.5
CAP, DEPTH = 0.78 * TEXT, 0.22 * TEXT  # above and below the baseline
TOP, RIGHT, BOTTOM = 26, 12, 38
Points = numpy.ndarray  # [N, 2], in points of the figure


def number(value: float) -> str:
    """Write a number for a reader: at most six digits, and a true minus sign.

    >>> number(-2.4000000000000004)
    '−2.4'
    """
    return f"{value + 0.0:.6g}".replace("-", "−")


def text_width(text: str, weight: str = "normal") -> float:
    """Return a width that the text hardly exceeds in the common system fonts, in points."""
    narrow = sum(text.count(letter) for letter in " .ilt")
    width = (0.62 * (len(text) - narrow) + 0.32 * narrow) * TEXT
    return 1.2 * width if weight == "bold" else width


@contextlib.contextmanager
def own_style() -> Iterator[None]:
    """Draw by Matplotlib's defaults, whatever the settings of this machine."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield


def panel(
    x_label: str,
    y_label: str,
    x_ticks: dict[float, str],
    y_ticks: dict[float, str],
    x_limits: tuple[float, float],
    y_limits: tuple[float, float],
) -> tuple[Figure, Axes]:
    """Return a figure with one empty pair of axes, ready to draw on, in points.

    Tick labels that would touch an earlier one are left out: give the important ones first.
    """
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72), dpi=72)
    left = 30 + max(map(text_width, y_ticks.values()))
    width, height = WIDTH - left - RIGHT, HEIGHT - TOP - BOTTOM
    axes = figure.add_axes((left / WIDTH, BOTTOM / HEIGHT, width / WIDTH, height / HEIGHT))
    axes.patch.set_visible(False)
    axes.set(xlim=x_limits, ylim=y_limits)
    x_scale = width / (x_limits[1] - x_limits[0])
    y_scale = height / (y_limits[1] - y_limits[0])
    x_ticks = _apart(x_ticks, {x: (x * x_scale, text_width(text) + 4) for x, text in x_ticks.items()})
    y_ticks = _apart(y_ticks, {y: (y * y_scale, TEXT + 2) for y in y_ticks})
    axes.set_xticks(list(x_ticks), list(x_ticks.values()))
    axes.set_yticks(list(y_ticks), list(y_ticks.values()))
    # Tick marks have no length: gridlines and marks at the data say where a number belongs.
    axes.tick_params(length=0, pad=8, labelsize=TEXT, labelcolor=INK)
    axes.set_xlabel(x_label, fontsize=TEXT, color=INK, labelpad=3)
    figure.text(
        14 / WIDTH,
        (BOTTOM + height / 2) / HEIGHT,
        y_label,
        fontsize=TEXT,
        color=INK,
        rotation=90,
        rotation_mode="anchor",
        ha="center",
    )
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set(color=CLIPPED, linewidth=0.8)
    return figure, axes


def _apart(ticks: dict[float, str], extents: dict[float, tuple[float, float]]) -> dict[float, str]:
    """Keep the ticks whose label, given as centre and length, does not touch one kept before."""
    kept: dict[float, str] = {}
    for place, text in ticks.items():
        centre, length = extents[place]
        if all(abs(centre - extents[other][0]) >= (length + extents[other][1]) / 2 for other in kept):
            kept[place] = text
    return kept


def heading(axes: Axes, text: str, colour: str, *, side: str) -> None:
    """Write in bold above the axes, at the left or the right end."""
    x = axes.bbox.x0 if side == "left" else axes.bbox.x1
    y = axes.bbox.y1 + 0.8 * TEXT
    axes.figure.text(x / WIDTH, y / HEIGHT, text, ha=side, fontsize=TEXT, color=colour, weight="bold")


def dot(axes: Axes, x: float, y: float, shape: str, colour: str) -> None:
    """Mark a point, with a thin rim in the colour of the paper."""
    axes.plot(x, y, shape, color=colour, markersize=8, markeredgecolor=PAPER, zorder=5, clip_on=False)


def disc(axes: Axes, x: float, y: float) -> Points:
    """Return the points that a dot covers, in points of the figure."""
    angle = numpy.linspace(0, 2 * numpy.pi, 16)
    return axes.transData.transform((x, y)) + 4.5 * numpy.column_stack([numpy.cos(angle), numpy.sin(angle)])


def points_along(axes: Axes, x: Sequence[float], y: Sequence[float]) -> Points:
    """Return points at most one unit apart on the line through the data, in points of the figure."""
    corners = axes.transData.transform(numpy.column_stack([x, y]))
    steps = [max(2, int(numpy.hypot(*(b - a))) + 2) for a, b in zip(corners[:-1], corners[1:], strict=True)]
    return numpy.concatenate(
        [numpy.linspace(a, b, n) for a, b, n in zip(corners[:-1], corners[1:], steps, strict=True)]
    )


AROUND = [(1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)]


def spots(
    points: Points, directions: Sequence[tuple[int, int]], distances: Sequence[float]
) -> Iterator[tuple[float, float, str]]:
    """Yield where a label may stand, best first, as x, baseline and alignment.

    Near comes before far, then the first direction before the others, then the middle of the points before
    their ends. A direction is one of the eight in AROUND, such as (1, 0) for the right.
    """
    shift = {1: DEPTH, 0: (DEPTH - CAP) / 2, -1: -CAP}
    align = {1: "left", 0: "center", -1: "right"}
    middle = (len(points) - 1) / 2
    outward = sorted(range(0, len(points), 3), key=lambda index: abs(index - middle))
    for distance in distances:
        for right, up in directions:
            away = distance / (right**2 + up**2) ** 0.5
            for x, y in points[outward]:
                yield float(x + right * away), float(y + up * away + shift[up]), align[right]


def write(
    axes: Axes,
    text: str,
    where: Iterable[tuple[float, float, str]],
    taken: list[Points],
    colour: str,
    *,
    weight: str = "normal",
) -> None:
    """Write a label at the first of the spots where it touches none of the taken points; then take its place.

    A spot too near the edge of the axes is moved inside. Without a free spot, the least crowded is used.
    """
    area, width, obstacles = axes.bbox, text_width(text, weight), numpy.concatenate(taken)
    shift = {"left": 0.0, "center": width / 2, "right": width}
    best = (len(obstacles) + 1, 0.0, 0.0, "left")  # more crowded than any spot
    for x, y, align in where:
        left = min(max(x - shift[align], area.x0), area.x1 - width)
        low = min(max(y - DEPTH, area.y0), area.y1 - DEPTH - CAP)
        inside = (obstacles > (left - 2, low - 1)) & (obstacles < (left + width + 2, low + DEPTH + CAP + 1))
        touched = int(inside.all(axis=1).sum())
        if touched < best[0]:
            best = touched, left, low, align
        if not touched:
            break
    _, left, low, align = best
    place = ((left + shift[align]) / WIDTH, (low + DEPTH) / HEIGHT)
    axes.figure.text(*place, text, ha=align, fontsize=TEXT, color=colour, weight=weight)
    # The space around a label is its own too, or two labels would read as one.
    columns, rows = numpy.meshgrid(
        numpy.arange(left - 4, left + width + 4, 2), numpy.arange(low - 2, low + DEPTH + CAP + 2, 2)
    )
    taken.append(numpy.column_stack([columns.ravel(), rows.ravel()]))
