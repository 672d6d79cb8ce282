"""Time one side of one operation and measure its memory, in a process of its own:

python -m benchmarks.losses.measure FILE OPERATION SIZE SIDE SECONDS

SIZE is like 64x2048. With 0 SECONDS the memory alone is measured.
"""

import ctypes
import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.losses.inputs import Size, Source
from benchmarks.losses.operations import OPERATIONS, run

WARM_UP, LEAST, MOST = 2, 7, 200
# Bytes. From 32 MiB on the allocator learns nothing from it.
LARGE = 31 * 2**20
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def main() -> int:
    file, name, size_text, side, seconds = sys.argv[1:]
    size = tuple(int(part) for part in size_text.split("x"))
    found = measure(name, size, side, float(seconds))
    Path(file).write_text(json.dumps(found), encoding="utf-8")
    return 0


def measure(name: str, size: Size, side: str, seconds: float) -> dict:
    operation = OPERATIONS[name]
    function = operation.sides[side]()
    source = Source("cpu", torch.float32)
    small, x = operation.make(operation.small, source), operation.make(size, source)

    def call() -> object:
        return run(function, x, operation.slopes)

    found: dict = {}
    if "compiled" not in side:
        # What is set up once is no memory of the operation. Whoever compiles does so in the process: not measured.
        run(function, small, operation.slopes)
        found["peak"], found["gradients"] = peak(call)
    if seconds:
        found |= timed(call, seconds)
    return found


def peak(call: Callable[[], object]) -> tuple[int, int]:
    """The most memory that a call takes beyond what stood before, and the part of it that is its gradients."""
    ctypes.CDLL(None).malloc_trim(0)
    # 5 sets the high-water mark to what stands now.
    CLEAR.write_text("5", encoding="ascii")
    before = _kibibytes("VmRSS")
    _, gradients = call()
    return 1024 * (_kibibytes("VmHWM") - before), sum(each.nbytes for each in gradients.values())


def timed(call: Callable[[], object], seconds: float) -> dict:
    """Call for so many seconds, but at least LEAST times; what the call returns is freed between the clocks."""
    settle_allocator()
    for _ in range(WARM_UP):
        call()
    times: list[float] = []
    while len(times) < LEAST or (sum(times) < seconds and len(times) < MOST):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
        del result
    return {
        "seconds": statistics.median(times),
        "smallest": min(times),
        "largest": max(times),
        "repeats": len(times),
    }


def settle_allocator() -> None:
    """Have large memory come and go once, as it has in every process that trains.

    Until then the allocator of Linux gives back what is freed at every call and asks for it again, or does not, by
    the chance of where things lie; that costs a page fault for each 4 KiB, more than most of what is measured.
    """
    torch.empty(LARGE, dtype=torch.uint8).fill_(0)


def _kibibytes(name: str) -> int:
    return int(re.search(rf"^{name}:\s+(\d+) kB$", STATUS.read_text(encoding="ascii"), re.MULTILINE)[1])


if __name__ == "__main__":
    sys.exit(main())
