"""Run one peer on all its inputs, in the peers' environment: python -m benchmarks.parity.record PEER FILE"""

import contextlib
import importlib.metadata
import inspect
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from benchmarks.parity.differences import differences
from benchmarks.parity.pairs import peers
from benchmarks.parity.peers import names_of
from benchmarks.parity.run import result
from benchmarks.parity.samples import SEEDS, sample

# Who computes the peer's numbers, beside the peer itself.
ENGINES = {"rlax": ("jax",), "torchrl": ("torch", "tensordict")}


def main() -> int:
    name, file = sys.argv[1:]
    warnings.simplefilter("ignore")
    (peer,) = [each for each in peers() if each.name == name]
    names = names_of(name)
    found = {
        "version": importlib.metadata.version(peer.distribution),
        "engines": {each: importlib.metadata.version(each) for each in ENGINES.get(name, ("torch",))},
        "arguments": sorted({theirs for theirs, _, _ in peer.arguments} & set(parameters(names))),
        "pairs": [
            {
                "seed": seed,
                "subject": pair.subject,
                **result(pair.theirs, names | sample(pair.on, seed), pair.slope),
            }
            for pair in peer.pairs
            for seed in SEEDS
        ],
        "differences": [
            {"subject": row.subject, "what": row.what, "given": row.given, **result(row.theirs, names)}
            for row in differences()
            if row.peer == name
        ],
    }
    Path(file).write_text(json.dumps(found), encoding="utf-8")
    return 0


def parameters(names: dict[str, object]) -> Iterator[str]:
    """The names of all arguments of the functions and methods that a peer's rows may call."""
    for value in names.values():
        for thing in vars(value).values() if inspect.ismodule(value) else (value, type(value)):
            methods = vars(thing).values() if inspect.isclass(thing) else ()
            for function in filter(callable, (thing, *methods)):
                # Not every callable has a signature that can be read.
                with contextlib.suppress(TypeError, ValueError):
                    yield from inspect.signature(function).parameters


if __name__ == "__main__":
    sys.exit(main())
