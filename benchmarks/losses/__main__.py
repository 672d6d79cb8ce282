"""Measure ours beside the peers and write the page: python -m benchmarks.losses PYTHON [--quick]

PYTHON is that of the peers' environment, for all sides. --quick is one short round, to try the benchmark itself: its
numbers are not judged. Without PYTHON the page is written anew from the last results. The result is 1 if an answer
differs, or if a goal is missed and does not say why.
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tqdm import tqdm

from benchmarks.losses import page
from benchmarks.losses.goals import cases
from benchmarks.losses.verdict import faults

ROOT = Path(__file__).parent.parent.parent
ROUNDS, SECONDS = 3, 1.0
QUICK_ROUNDS, QUICK_SECONDS = 1, 0.01
DISTRIBUTIONS = ("torch", "verl", "torchrl", "trl", "liger-kernel")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("python", nargs="?")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    if chosen.python:
        if not agree(chosen.python):
            print("Nothing is timed: the answers differ by more than rounding.")
            return 1
        made = made_by(chosen.python) | {"quick": chosen.quick}
        times = (QUICK_ROUNDS, QUICK_SECONDS) if chosen.quick else (ROUNDS, SECONDS)
        page.write_results({"made": made, "measured": measure(chosen.python, *times)})
    results = page.read_results()
    page.write(results)
    print(page.summary(results))
    if results["made"]["quick"]:
        print("A short round to try the benchmark: not judged.")
        return 0
    found = faults(results["measured"])
    print("\n".join(found))
    return 1 if found else 0


def agree(python: str) -> bool:
    """Compare the answers of all sides with ours, a process for each."""
    sides = dict.fromkeys(side for case in cases(1) for side in case.rounds if side not in ("ours", "floor"))
    good = True
    for side in sides:
        print(f"Comparing the answers of {side} ...", flush=True)
        good &= run(python, "check", side) == 0
    return good


def measure(python: str, rounds: int, seconds: float) -> list[dict]:
    """All measurements, a process for each. In each round all sides of a case run one after the other."""
    planned = [
        (number, case, side)
        for number in range(rounds)
        for case in cases(rounds)
        for side, count in case.rounds.items()
        if number < count
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "measurement.json"
        # The bar is for a terminal: elsewhere every step would be a line.
        for number, case, side in tqdm(planned, unit="process", disable=None):
            size, limit = "x".join(map(str, case.size)), str(seconds if case.timed else 0)
            if run(python, "measure", str(file), case.operation, size, side, limit):
                raise SystemExit(f"{case.operation}, {size}, {side} could not be measured")
            where = {"operation": case.operation, "size": case.size, "side": side, "round": number}
            found.append(where | json.loads(file.read_text(encoding="utf-8")))
    return found


def run(python: str, module: str, *arguments: str) -> int:
    command = [python, "-W", "ignore", "-m", f"benchmarks.losses.{module}", *arguments]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def made_by(python: str) -> dict:
    """When, on which machine and with which releases."""
    code = f"from importlib.metadata import version; print(*map(version, {DISTRIBUTIONS!r}))"
    versions = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    processor = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{processor[1] if processor else platform.machine()}, {os.cpu_count()} cores, "
        f"{memory / 2**30:.0f} GiB",
        "versions": dict(zip(DISTRIBUTIONS, versions, strict=True)),
    }


if __name__ == "__main__":
    sys.exit(main())
