"""From the measurements to ratios, and whether each goal is met."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.losses.goals import GOALS, Goal
from benchmarks.losses.inputs import Size

AT_LEAST = ("faster",)
BYTES = 4  # of a float32


class Found(NamedTuple):
    """The median over the rounds, with the smallest and the largest."""

    ratio: float
    smallest: float
    largest: float


def rounds(measured: Sequence[dict], operation: str, size: Size, side: str) -> list[dict]:
    """What was measured of one side, in the order of the rounds."""
    found = [
        each
        for each in measured
        if (each["operation"], tuple(each["size"]), each["side"]) == (operation, size, side)
    ]
    return sorted(found, key=lambda each: each["round"])


def find(goal: Goal, measured: Sequence[dict]) -> Found | None:
    """The ratio that the goal is about, round by round; None where it was not measured."""
    ours = rounds(measured, goal.operation, goal.size, goal.ours)
    other = rounds(measured, goal.operation, goal.smaller or goal.size, goal.beside)
    if goal.kind == "memory":
        above = [beyond(each) for each in ours]
        logits = BYTES * math.prod(goal.size)
        below = [logits] * len(ours) if goal.beside == "logits" else [beyond(each) for each in other]
    else:
        above, below = ([each["seconds"] for each in side] for side in (ours, other))
    if goal.kind == "faster":
        above, below = below, above
    ratios = [a / b for a, b in zip(above, below, strict=True)] if len(above) == len(below) else []
    return Found(statistics.median(ratios), min(ratios), max(ratios)) if ratios else None


def beyond(measurement: dict) -> int:
    """The bytes beyond inputs and gradients."""
    return max(measurement["peak"] - measurement["gradients"], 0)


def is_met(goal: Goal, found: Found) -> bool:
    return found.ratio >= goal.bound if goal.kind in AT_LEAST else found.ratio <= goal.bound


def faults(measured: Sequence[dict], goals: Sequence[Goal] = GOALS) -> list[str]:
    """Goals that were not measured, and those that are missed and do not say why."""
    said = []
    for goal in goals:
        where = f"{goal.operation}, {' x '.join(map(str, goal.size))}, {goal.ours} beside {goal.beside} ({goal.kind})"
        found = find(goal, measured)
        if found is None:
            said.append(f"{where}: not measured")
        elif not is_met(goal, found) and not goal.why:
            said.append(
                f"{where}: {found.ratio:.3g} where {goal.bound} is asked for, and the goal has no `why`"
            )
    return said
