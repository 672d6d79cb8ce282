"""Whether two results are the same numbers."""

import math

from benchmarks.parity.run import Plain

# Near 0 a relative error means nothing: what float32 leaves there.
FLOOR = 2e-6


def differ(
    theirs: Plain, ours: Plain, tolerance: float, place: str = "", *, floor: float = FLOOR
) -> str | None:
    """Say where two results differ; None: nowhere. NaN equals NaN here, and no number."""
    if isinstance(theirs, list) != isinstance(ours, list):
        return f"{place or 'the result'}: one is a list and the other a number"
    if isinstance(theirs, list):
        if len(theirs) != len(ours):
            return f"{place or 'the result'}: {len(theirs)} and {len(ours)} elements"
        for index, pair in enumerate(zip(theirs, ours, strict=True)):
            found = differ(*pair, tolerance, f"{place}[{index}]", floor=floor)
            if found:
                return found
        return None
    if same_number(theirs, ours, tolerance, floor):
        return None
    return f"{place or 'the result'}: theirs {theirs}, ours {ours}"


def same_number(a: float | str, b: float | str, tolerance: float, floor: float) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return str(a) == str(b)
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=floor)


def where_counted(value: Plain, mask: list) -> Plain:
    """Put 0 where the mask is False."""
    if isinstance(mask, list):
        return [where_counted(*pair) for pair in zip(value, mask, strict=True)]
    return value if mask else 0.0
