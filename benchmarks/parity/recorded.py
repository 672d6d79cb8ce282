"""What the peers gave when `make parity` last ran: committed, so that the tests need no peers.

Of the random inputs one seed is kept, in seven digits.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.parity.run import Plain
from benchmarks.parity.samples import SEEDS

FILE = Path(__file__).parent / "recorded.json"
DIGITS = 7
SEED = SEEDS[0]


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
