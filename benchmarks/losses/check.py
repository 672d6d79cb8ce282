"""Compare the answers, value and gradient, of ours and of those who are measured beside it:

python -m benchmarks.losses.check SIDE

The result is 1 where they differ by more than rounding. `plain` and `ours compiled` are checked too.
"""

import sys
from collections.abc import Iterable

import torch
from torch import Tensor

from benchmarks.losses.goals import cases
from benchmarks.losses.inputs import Source, Tensors
from benchmarks.losses.operations import OPERATIONS, run

# Of the largest number of the result: the rounding of float32 in sums of up to a million terms.
TOLERANCE = 2e-5


def main() -> int:
    side = sys.argv[1]
    faults = []
    for case in cases(1):
        if side in case.rounds and case.timed:
            faults += differences(case.operation, case.size, side)
    print("\n".join(faults))
    return 1 if faults else 0


def differences(name: str, size: tuple[int, ...], side: str) -> list[str]:
    """Say what differs between ours and that side."""
    operation = OPERATIONS[name]
    x = operation.make(size, Source("cpu", torch.float32))
    ours, theirs = (run(operation.sides[who](), x, operation.slopes) for who in ("ours", side))
    where = f"{operation.title}, {' x '.join(map(str, size))}, {side}"
    return [f"{where}: {fault}" for fault in compare(ours, theirs, x["mask"] if "mask" in x else None)]


def compare(
    ours: tuple[Tensors, Tensors],
    theirs: tuple[Tensors, Tensors],
    mask: Tensor | None,
    tolerance: float = TOLERANCE,
) -> Iterable[str]:
    """Say which result or gradient differs; what is not counted is no answer, and what one side lacks neither.

    The gradients are those of the same inputs on both sides, and the first result is always there.
    """
    for kind, (a, b) in zip(("", "gradient into "), zip(ours, theirs, strict=True), strict=True):
        if next(iter(a), None) not in b and a:
            yield f"{kind}{next(iter(a))} is missing"
        for name in a.keys() & b.keys():
            mine, other = a[name].detach().float(), b[name].detach().float()
            if mine.shape != other.shape:
                yield f"{kind}{name} has the shape {list(other.shape)}, ours {list(mine.shape)}"
                continue
            if mask is not None and mask.shape == mine.shape:
                mine, other = mine.where(mask, 0), other.where(mask, 0)
            off = (mine - other).abs().max() / mine.abs().max()
            # Written so that NaN fails too.
            if not off <= tolerance:
                yield f"{kind}{name} differs by {off:.2g} of its largest number, which is more than {tolerance:g}"


if __name__ == "__main__":
    sys.exit(main())
