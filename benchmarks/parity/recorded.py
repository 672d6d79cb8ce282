"""What the peers gave when `make parity` last ran: committed, so that the tests need no peers.

Of the random inputs one seed is kept, in seven digits.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.parity.compare import differ
from benchmarks.parity.run import Plain
from benchmarks.parity.samples import SEEDS

FILE = Path(__file__).parent / "recorded.json"
DIGITS = 7
SEED = SEEDS[0]
# What two machines may differ by, relative.
ROUNDING = 1e-5


def read() -> dict:
    return json.loads(FILE.read_text(encoding="utf-8"))


def of(report: Mapping) -> dict:
    """What is kept of a whole report."""
    pairs = [
        {"peer": x["peer"], "subject": x["subject"], **_kept(x["theirs"])}
        for x in report["pairs"]
        if x["seed"] == SEED
    ]
    differences = [
        {key: x[key] for key in ("peer", "subject", "what", "given")} | _kept(x["theirs"])
        for x in report["differences"]
    ]
    return {"versions": report["versions"], "pairs": pairs, "differences": differences}


def settled(new: Mapping, old: Mapping) -> dict:
    """The new record, with the old numbers where the random inputs give the same: machines round differently."""
    before = {(row["peer"], row["subject"]): row for row in old["pairs"]}
    pairs = [
        known if (known := before.get((row["peer"], row["subject"]))) and _same(row, known) else row
        for row in new["pairs"]
    ]
    return {**new, "pairs": pairs}


def _same(row: Mapping, known: Mapping) -> bool:
    return row.keys() == known.keys() and not any(
        differ(row[key], known[key], ROUNDING) for key in ("value", "slope") if key in row
    )


def text(recorded: Mapping) -> str:
    """One line for each result."""
    lines = [f'{{"versions": {json.dumps(recorded["versions"])},']
    for key in ("pairs", "differences"):
        rows = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in recorded[key])
        lines.append(f'"{key}": [\n{rows}\n]' + ("," if key == "pairs" else "}"))
    return "\n".join(lines) + "\n"


def _kept(result: Mapping) -> dict:
    return {key: _rounded(value) for key, value in result.items() if key in ("value", "slope", "error")}


def _rounded(value: Plain) -> Plain:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return value if isinstance(value, str) else float(f"{value:.{DIGITS}g}")
