"""Whether printed digits are the digits of a number."""

import math
import re
from decimal import Decimal
from typing import NamedTuple

from build_tools.model import Number

# A float64 computed in a few dozen operations is right to far more than this; a tie cannot be told from its
# neighbours any closer.
_NOISE = 1e-12


class Verdict(NamedTuple):
    ok: bool
    hint: str  # what to print instead, or why no digits fit


def unit(printed: str) -> float:
    """The value of one unit in the last printed place: 0.01 for 2.40, 0.1 for 2.4, 1 for 24, 1e-12 for 5.0e-11."""
    return float(Decimal(1).scaleb(Decimal(printed).as_tuple().exponent))


def verify(number: float, printed: str) -> Verdict:
    """Whether `number`, rounded to as many places as are printed, is what is printed.

    A number half-way between two printable ones is refused: people and programs round it differently, and one digit
    more settles it.
    """
    if not math.isfinite(number):
        return Verdict(False, f"the result is {number}, which has no digits; change an input")
    if printed.startswith("-") and float(printed) == 0:
        return Verdict(False, "zero has no sign; delete the minus")
    place = unit(printed)
    distance = abs(number - float(printed))
    noise = _NOISE * max(abs(number), place)
    if noise >= place / 2:
        return Verdict(
            False, "that is more digits than a computation in floats is right to; print at most twelve"
        )
    if abs(distance - place / 2) <= noise:
        return Verdict(
            False, f"{number!r} lies half-way between two numbers of that many digits; print one digit more"
        )
    if distance < place / 2:
        return Verdict(True, "")
    return Verdict(False, f"the result is {_shorten(number)}, which rounds to {rounded(number, printed)}")


def rounded(number: float, printed: str) -> str:
    """`number` with as many places as `printed` has, in the same notation."""
    if "e" in printed.lower():
        mantissa = printed.lower().split("e")[0]
        places = len(mantissa.split(".")[1]) if "." in mantissa else 0
        return _short_exponent(f"{number:.{places}e}")
    places = max(0, -Decimal(printed).as_tuple().exponent)
    text = f"{number:.{places}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def shown(number: Number) -> str:
    """A result for people: twelve significant digits, more than any page prints and fewer than rounding noise needs."""
    if isinstance(number, tuple):
        return f"[{', '.join(map(shown, number))}]"
    return str(number).lower() if isinstance(number, bool) else _shorten(number)


def _shorten(number: float) -> str:
    return _short_exponent(f"{number + 0.0:.12g}")  # the sum makes a zero of a negative zero


def _short_exponent(text: str) -> str:
    """1e-9 as people type it, where Python writes 1e-09."""
    return re.sub(r"e([-+])0", r"e\1", text)
