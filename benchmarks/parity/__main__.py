"""Compare with the peers and write the pages: python -m benchmarks.parity PYTHON [PEER ...]

PYTHON is that of the peers' environment. With names of peers only those are run again; the others are taken from
the last run. The result is 1 if a pair differs, or if a difference is not what its row says.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.parity import pages, recorded
from benchmarks.parity.compare import differ, where_counted
from benchmarks.parity.differences import differences
from benchmarks.parity.ours import missing, our_names
from benchmarks.parity.pairs import Pair, peers
from benchmarks.parity.run import plain, result
from benchmarks.parity.samples import SEEDS, sample
from benchmarks.parity.verdict import verdict

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "build" / "parity"
REPORT = ROOT / "build" / "parity.json"


def main() -> int:
    python, *chosen = sys.argv[1:]
    known = [peer.name for peer in peers()]
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        print(f"no peer {', '.join(unknown)}; there are {', '.join(known)}")
        return 2
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in chosen or known:
        print(f"Running {name} ...", flush=True)
        _record(python, name)
    theirs = {name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")) for name in known}
    old = [name for name in known if not _is_of_these_rows(name, theirs[name])]
    if old:
        print(f"the rows have changed since {', '.join(old)} ran: run again with them")
        return 2
    report = compare(theirs)
    REPORT.write_text(json.dumps(report, indent=1), encoding="utf-8")
    faults = [*_argument_faults(theirs), *_pair_faults(report), *_difference_faults(report)]
    print("\n".join(faults))
    waiting = sorted(
        {f"{each['peer']}: {each['subject']}: {each['waits']}" for each in report["pairs"] if "waits" in each}
    )
    if waiting:
        print("Not compared, because ours is not there:", *waiting, sep="\n  ")
    compared = [each for each in report["pairs"] if "waits" not in each]
    equal = sum(each["differ"] is None for each in compared)
    print(
        f"{equal} of {len(compared)} comparisons on random inputs equal, {len(report['differences'])} differences"
    )
    if faults:
        print("The pages are left as they are.")
        return 1
    kept = recorded.settled(recorded.of(report), recorded.read())
    for path, text in (
        {str(recorded.FILE.relative_to(ROOT)): recorded.text(kept)} | pages.texts(kept)
    ).items():
        if not (ROOT / path).exists() or (ROOT / path).read_text(encoding="utf-8") != text:
            print(f"{path} was stale and is written anew")
            (ROOT / path).write_text(text, encoding="utf-8")
    return 0


def compare(theirs: dict[str, dict]) -> dict:
    """Put the results of the peers beside ours."""
    report = {"versions": {}, "pairs": [], "differences": []}
    for peer in peers():
        results = theirs[peer.name]
        report["versions"][peer.name] = {peer.distribution: results["version"], **results["engines"]}
        by_key = {(each["subject"], each["seed"]): each for each in results["pairs"]}
        for pair in peer.pairs:
            for seed in SEEDS:
                report["pairs"].append(_compared(peer.name, pair, seed, by_key[pair.subject, seed]))
    found = {
        (name, each["subject"], each["what"], each["given"]): each
        for name, results in theirs.items()
        for each in results["differences"]
    }
    for row in differences():
        theirs_there = found[row.peer, row.subject, row.what, row.given]
        where = {"peer": row.peer, "subject": row.subject, "what": row.what, "given": row.given}
        report["differences"].append({**where, **verdict(row, theirs_there)})
    return report


def _is_of_these_rows(name: str, results: dict) -> bool:
    """Whether the results are those of the rows as they stand now."""
    (peer,) = [peer for peer in peers() if peer.name == name]
    pairs = {(pair.subject, seed) for pair in peer.pairs for seed in SEEDS}
    rows = {(row.subject, row.what, row.given) for row in differences() if row.peer == name}
    return pairs == {(each["subject"], each["seed"]) for each in results["pairs"]} and rows == {
        (each["subject"], each["what"], each["given"]) for each in results["differences"]
    }


def _record(python: str, name: str) -> None:
    # Nothing is compiled, no GPU is looked for, and one thread is enough.
    quiet = {
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "TORCHDYNAMO_DISABLE": "1",
        "JAX_PLATFORMS": "cpu",
    }
    command = [python, "-W", "ignore", "-m", "benchmarks.parity.record", name, str(RESULTS / f"{name}.json")]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **quiet, "PYTHONPATH": str(ROOT)}, check=True)


def _compared(peer: str, pair: Pair, seed: int, theirs: dict) -> dict:
    row = {"peer": peer, "subject": pair.subject, "seed": seed, "theirs": theirs}
    waits = missing(pair.ours)
    if waits:
        return row | {"waits": waits}
    inputs = sample(pair.on, seed)
    ours = result(pair.ours, our_names() | inputs, pair.slope)
    if "error" in theirs or "error" in ours:
        return row | {
            "ours": ours,
            "differ": f"theirs {theirs.get('error', 'runs')}; ours {ours.get('error', 'runs')}",
        }
    mask = plain(inputs["mask"])
    for key in ours:
        both = [
            where_counted(x[key], mask) if pair.counted and key == "value" else x[key] for x in (theirs, ours)
        ]
        found = differ(*both, pair.tolerance)
        if found:
            return row | {"ours": ours, "differ": f"{key}{found}"}
    return row | {"ours": ours, "differ": None}


def _argument_faults(theirs: dict[str, dict]) -> list[str]:
    return [
        f"{peer.title} has no argument {name}"
        for peer in peers()
        for name, _, _ in peer.arguments
        if name not in theirs[peer.name]["arguments"]
    ]


def _pair_faults(report: dict) -> list[str]:
    return [
        f"{each['peer']}, {each['subject']}, seed {each['seed']}: {each['differ']}"
        for each in report["pairs"]
        if each.get("differ")
    ]


def _difference_faults(report: dict) -> list[str]:
    return [
        f"{each['peer']}, {each['what']}: {each['fault']}" for each in report["differences"] if each["fault"]
    ]


if __name__ == "__main__":
    sys.exit(main())
