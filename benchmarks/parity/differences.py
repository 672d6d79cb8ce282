"""Small inputs on which a peer and ppo_core disagree, and the right answer worked out by hand."""

import functools
import importlib
import pkgutil
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """A row of the page "How libraries differ".

    `theirs` and `ours` are code as in `pairs.Pair`, without its names: each input is in the code. `right` is
    arithmetic on plain numbers, evaluated with nothing but `math`; it is the right answer. `shown` is that
    arithmetic in words, `why` what goes wrong. `fault` is False where the peer's answer is right for what it
    promises and only another convention: then `right` is what the words of the row promise.
    """

    peer: str
    subject: str
    what: str
    given: str
    theirs: str
    ours: str
    right: str
    by_hand: str
    why: str
    fault: bool = True
    # How near ours comes to the right answer, relative to it.
    tolerance: float = 1e-5


@functools.cache
def differences() -> tuple[Difference, ...]:
    """All rows, in the order of the page."""
    from benchmarks.parity import cases

    names = sorted(module.name for module in pkgutil.iter_modules(cases.__path__))
    return tuple(row for name in names for row in importlib.import_module(f"{cases.__name__}.{name}").ROWS)
