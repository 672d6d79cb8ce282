"""Time and memory against size, both on logarithmic scales, so that growth shows as a slope."""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from benchmarks.losses.goals import cases
from benchmarks.losses.inputs import Size
from benchmarks.losses.verdict import rounds
from build_tools.svg import to_svg
from lab import drawing
from lab.figures.lines import Line, draw_lines, grid


class Growth(NamedTuple):
    """What a plot is about: which sizes lie on its axis, and the number that each has there."""

    title: str
    axis: str
    place: Callable[[Size], int | None]


GROWTHS = {
    "gae": Growth("advantages", "steps of each of 8 answers", lambda size: size[1] if size[0] == 8 else None),
    "policy": Growth("clipped policy loss", "tokens", lambda size: size[0] * size[1]),
    "logprobs": Growth("log-probabilities", "vocabulary, at 1024 tokens", lambda size: size[2]),
    "hidden": Growth("hidden states to policy loss", "tokens, vocabulary 32 000", lambda size: size[0]),
}
STYLES = {
    "ours": (drawing.POSITIVE, ()),
    "verl": (drawing.NEGATIVE, ()),
    "torchrl": (drawing.KL, ()),
    "TRL": (drawing.KL, (5, 2)),
    "plain": (drawing.INK, ()),
    "Liger": (drawing.NEGATIVE, (5, 2)),
    "floor": (drawing.CLIPPED, (1.5, 1.5)),
}
UNITS = {
    "seconds": ("time", {-6: "1 µs", -5: "10 µs", -4: "0.1 ms", -3: "1 ms", -2: "10 ms", -1: "0.1 s", 0: "1 s", 1: "10 s"}),
    "peak": ("memory", {3: "1 kB", 4: "10 kB", 5: "0.1 MB", 6: "1 MB", 7: "10 MB", 8: "0.1 GB", 9: "1 GB", 10: "10 GB"}),
}  # fmt: skip


def texts(measured: Sequence[dict]) -> dict[str, str]:
    """Each plot by the name of its file."""
    found = {}
    for operation in GROWTHS:
        for quantity, (word, _) in UNITS.items():
            drawn = draw(operation, quantity, measured)
            if drawn:
                figure, alt = drawn
                svg = to_svg(figure, alt=alt, key=f"speed-{operation}-{word}", colours=drawing.COLOURS)
                found[f"{operation}-{word}.svg"] = svg + "\n"
    return found


@drawing.own_style()
def draw(operation: str, quantity: str, measured: Sequence[dict]) -> tuple[Figure, str] | None:
    """One panel with what it shows in words; None where too little was measured."""
    growth, (word, ticks) = GROWTHS[operation], UNITS[quantity]
    lines = {side: points(operation, side, quantity, measured) for side in STYLES}
    # What the floor holds is no bound on the memory.
    lines = {
        side: line
        for side, line in lines.items()
        if len(line) > 1 and not (side == "floor" and quantity == "peak")
    }
    if "ours" not in lines:
        return None
    xs = [x for line in lines.values() for x, _ in line]
    ys = [y for line in lines.values() for _, y in line]
    figure, axes = drawing.panel(
        x_label=growth.axis,
        y_label=word,
        x_ticks={math.log10(x): f"{x:,}".replace(",", "\N{NARROW NO-BREAK SPACE}") for x, _ in lines["ours"]},
        y_ticks={exponent: text for exponent, text in ticks.items() if _low(ys) <= exponent <= _high(ys)},
        x_limits=_around(math.log10(min(xs)), math.log10(max(xs))),
        y_limits=(_low(ys), _high(ys)),
    )
    drawing.heading(axes, f"{growth.title}: {word}", drawing.INK, side="left")
    places = [exponent for exponent in ticks if _low(ys) < exponent < _high(ys)]
    taken = grid(axes, y=places)
    drawn = [
        Line(side, *zip(*[(math.log10(x), math.log10(y)) for x, y in line], strict=True), *STYLES[side])
        for side, line in lines.items()
    ]
    draw_lines(axes, drawn, taken)
    said = "; ".join(
        f"{side} from {_said(line[0][1], quantity)} to {_said(line[-1][1], quantity)}"
        for side, line in lines.items()
    )
    return figure, (
        f"The {word} of {growth.title}, {growth.axis} from {min(xs)} to {max(xs)}, both scales logarithmic: {said}."
    )


def points(operation: str, side: str, quantity: str, measured: Sequence[dict]) -> list[tuple[int, float]]:
    """Place and median over the rounds; what is too small to be measured, 0 bytes, has no place on the scale."""
    found = {}
    for case in cases(1):
        place = GROWTHS[operation].place(case.size) if case.operation == operation else None
        values = [
            each[quantity] for each in rounds(measured, operation, case.size, side) if each.get(quantity)
        ]
        if place and values:
            found[place] = statistics.median(values)
    return sorted(found.items())


def _around(low: float, high: float) -> tuple[float, float]:
    return low - 0.06 * (high - low), high + 0.08 * (high - low)


def _low(ys: list[float]) -> float:
    return math.floor(math.log10(min(ys)) * 2) / 2 - 0.1


def _high(ys: list[float]) -> float:
    return math.ceil(math.log10(max(ys)) * 2) / 2 + 0.3


def _said(value: float, quantity: str) -> str:
    factors = {1e9: "GB", 1e6: "MB", 1e3: "kB"} if quantity == "peak" else {1.0: "s", 1e-3: "ms", 1e-6: "µs"}
    factor = next((each for each in factors if value >= each), min(factors))
    return f"{float(f'{value / factor:.2g}'):g} {factors[factor]}"
