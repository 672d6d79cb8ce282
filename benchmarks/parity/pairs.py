"""One call of a peer and one of ours that must give the same numbers."""

import functools
import importlib
import pkgutil
from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    """A row of the tables "Coming from ...".

    `theirs` and `ours` are the code that runs and that the page shows: the names of `samples` are there, and
    the last line is the result. `on` is the kind of mask.
    """

    subject: str
    theirs: str
    ours: str
    on: str = "padded"
    # Compare the results where the mask is True alone: the peer leaves other numbers elsewhere.
    counted: bool = False
    # Compare the gradient of the sum of the result into this input too.
    slope: str | None = None
    # What the reader must know beside the code.
    note: str = ""
    tolerance: float = 1e-5


@dataclass(frozen=True)
class Peer:
    """All rows of one peer. `names` are the names that its code uses beside those of `samples`, as shown."""

    name: str
    title: str
    distribution: str
    names: str
    # Names of arguments and settings: theirs, ours, and what else changes.
    arguments: tuple[tuple[str, str, str], ...]
    pairs: tuple[Pair, ...]


@functools.cache
def peers() -> tuple[Peer, ...]:
    """All peers, in the order of the pages."""
    from benchmarks.parity import rows

    found = [
        importlib.import_module(f"{rows.__name__}.{m.name}").PEER for m in pkgutil.iter_modules(rows.__path__)
    ]
    order = ("trl", "verl", "openrlhf", "torchtune", "torchrl", "rlax", "liger")
    return tuple(sorted(found, key=lambda peer: order.index(peer.name)))
