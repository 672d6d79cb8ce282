"""docs/library/speed.md, from the results."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.losses import plots
from benchmarks.losses.goals import GOALS, Goal, cases
from benchmarks.losses.operations import OPERATIONS
from benchmarks.losses.verdict import AT_LEAST, Found, beyond, find, is_met, rounds
from benchmarks.markdown import table

ROOT = Path(__file__).parent.parent.parent
FOLDER = Path(__file__).parent / "results"
RESULTS, CUDA = FOLDER / "cpu.json", FOLDER / "cuda.json"
PAGE = "docs/library/speed.md"
BEGIN = "<!-- From here on made by `make bench`: edit benchmarks/losses/, not this page. -->"
TITLES = {
    "verl": "verl",
    "torchrl": "torchrl, vectorised",
    "TRL": "TRL",
    "Liger": "Liger-Kernel, in chunks",
    "plain": "plain PyTorch",
    "floor": "the floor",
    "ours": "ours",
}
RELEASES = {
    "torch": "torch",
    "verl": "verl",
    "torchrl": "torchrl",
    "trl": "TRL",
    "liger-kernel": "Liger-Kernel",
}

# Operations that `cuda` alone measures.
ON_GPU_ONLY = {"logits_loss": "logits to policy loss"}

HEAD = f"""---
source: {PAGE}
---
# How fast it is

The functions of `ppo_core` beside those of other libraries that give the same numbers, and beside what the memory of the machine allows. Times depend on the machine, so the results here are ratios: how many times as long the other one takes.

## How it is measured {{#how}}

- **The same answers first.** Before anything is timed, value and gradient of ours and of each other library are compared on the inputs that are timed. If they differ by more than rounding, nothing is measured. Where libraries differ by convention, as in [how libraries differ](differences.md), the settings are chosen so that they do not: verl's whitening of the advantages and its dual clip are left out.
- **Forward and backward.** A time is that of the value together with the gradients of all inputs that a training step needs, in float32. Advantages have no gradient; there it is the call alone. Each side gets its inputs in the form that it wants, ready made.
- **A process for each measurement.** It imports one library and calls the function once for the memory, twice to warm up, and then at least 7 times for at least a second. Its time is the median of these. Compilation is not part of it. Before the clock starts, 31 MiB are allocated and freed, as happens in every process that trains: from then on the allocator of Linux keeps what is freed for the next call.
- **Three rounds.** In each, ours, the others and the floor run one after the other, so that a slow moment of the machine hits all. A ratio is taken within a round; the table gives the median of the three, with the smallest and the largest.
- **The floor** reads each input and writes each gradient as often as any way to compute them must, and computes nothing: the inputs once; logits twice, because the gradient needs the sum over the whole vocabulary. From hidden states it is the three matrix products.
- **Memory** is the most that the process holds during the call, less what it held before. Where it says so, the gradients themselves are taken off.

The packages, sizes and goals stand in the files of `benchmarks/losses/`. To run all again, in about twenty minutes on a machine that does nothing else:

```
make bench
```

"""

ON_A_GPU = """## On a GPU {#gpu}

Not measured yet. One script measures the same operations in bfloat16 and float32, the log-probabilities at 8 × 2048 tokens and a vocabulary of 151936 beside Liger's Triton kernels, and writes its table here. It is made for a GPU with 140 GB of memory, and needs the libraries of `benchmarks/parity/peers.txt` and less than four minutes:

```
python -m benchmarks.losses.cuda
```"""


def read_results() -> dict:
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def write_results(results: Mapping) -> None:
    """One line for each measurement, its numbers in four digits."""
    lines = ",\n".join(json.dumps(_rounded(each)) for each in results["measured"])
    text = f'{{"made": {json.dumps(results["made"])},\n"measured": [\n{lines}\n]}}\n'
    RESULTS.write_text(text, encoding="utf-8")


def _rounded(measurement: Mapping) -> dict:
    return {
        key: float(f"{value:.4g}") if isinstance(value, float) else value
        for key, value in measurement.items()
    }


def write(results: Mapping) -> None:
    for name, svg in plots.texts(results["measured"]).items():
        (FOLDER / name).write_text(svg, encoding="utf-8")
    (ROOT / PAGE).write_text(text(results), encoding="utf-8")


def text(results: Mapping) -> str:
    made, measured = results["made"], results["measured"]
    faster = [goal for goal in GOALS if goal.kind == "faster"]
    near = [goal for goal in GOALS if goal.kind in ("within", "growth")]
    memory = [goal for goal in GOALS if goal.kind == "memory"]
    parts = [
        HEAD + BEGIN,
        *(_trial() if made["quick"] else []),
        "## Beside other libraries {#ratios}",
        "How many times as long the other one takes. In brackets the smallest and the largest of the rounds. What is "
        "asked was set before the work began, and raised where it was beaten by far.",
        _verdicts(faster, results),
        "verl has no packed rows: it gets the same sequences one a row, padded to the longest.",
        "## Beside what the memory allows {#floor}",
        "How many times as long ours takes as the floor; and for four times as many steps, as for one.",
        _verdicts(near, results),
        "## Memory {#memory}",
        "The most that ours holds beyond its inputs and their gradients, as a share: of the logits, or of what plain "
        "PyTorch holds.",
        _verdicts(memory, results),
        *_missed(measured),
        "## How it grows {#growth}",
        "Both scales of each plot are logarithmic: a straight line that rises by one unit on each is linear growth.",
        *_figures(measured),
        "## All that was measured {#all}",
        _everything(measured),
        "## With which machine and releases {#versions}",
        _versions(made),
        gpu(),
    ]
    return "\n\n".join(parts) + "\n"


def summary(results: Mapping) -> str:
    """The verdicts for a terminal."""
    lines = []
    for goal in GOALS:
        found = find(goal, results["measured"])
        shown = _found(goal, found) if found else "not measured"
        lines.append(f"{_what(goal)}, {_size(goal.size)}, {_beside(goal)}: {shown}; asked: {_asked(goal)}")
    return "\n".join(lines)


def gpu() -> str:
    if not CUDA.exists():
        return ON_A_GPU
    found = json.loads(CUDA.read_text(encoding="utf-8"))
    rows = [
        (
            _title(each["operation"]),
            _size(each["size"]),
            each["dtype"],
            TITLES.get(each["side"], each["side"]),
            f"{each['ratio']:.2f}" if "ratio" in each else each["error"],
            f"{each['share']:.0%}" if "share" in each else "",
            f"{each['beyond'] / 1e9:.2f} GB" if "beyond" in each else "",
        )
        for each in found["rows"]
    ]
    return (
        f"## On a GPU {{#gpu}}\n\nMeasured on {found['made']['date']} with {found['made']['device']}, which copies "
        f"{found['made']['copy'] / 1e9:.0f} GB a second, and torch {found['made']['torch']}. The ratio is that time over "
        "ours; the share is that of the copy bandwidth: the time of the floor over that time. `python -m "
        "benchmarks.losses.cuda` measures again.\n\n"
        + table(("Operation", "Size", "Type", "Who", "Ratio", "Share", "Memory beyond gradients"), rows)
    )


def _trial() -> list[str]:
    return [
        '!!! warning "Not yet the measurement"\n    These numbers are from one short round on a machine that did other things too. They are not judged.'
    ]


def _verdicts(goals: Sequence[Goal], results: Mapping) -> str:
    rows = []
    for goal in goals:
        found = find(goal, results["measured"])
        judged = (
            ""
            if results["made"]["quick"] or not found
            else ", met"
            if is_met(goal, found)
            else ", **missed**"
        )
        rows.append(
            (
                f"{_what(goal)}, {_size(goal.size)}",
                _beside(goal),
                _found(goal, found) if found else "not measured",
                _asked(goal) + judged,
            )
        )
    return table(("Operation", "Beside", "Ratio", "Asked"), rows)


def _missed(measured: Sequence[dict]) -> list[str]:
    """Why goals are missed, if any are."""
    missed = [
        goal for goal in GOALS if goal.why and (found := find(goal, measured)) and not is_met(goal, found)
    ]
    if not missed:
        return []
    return [
        "## What is missed, and why {#missed}",
        "\n".join(
            f"- **{_what(goal)}, {_size(goal.size)}, beside {_beside(goal)}.** {_why(goal, measured)}"
            for goal in missed
        ),
    ]


def _why(goal: Goal, measured: Sequence[dict]) -> str:
    """The reason, with the ratio of the one beside to the floor where it asks for that."""
    beside = Goal(goal.operation, goal.size, "within", "floor", 0, ours=goal.beside)
    found = find(beside, measured)
    return goal.why.format(floor=_number(found.ratio) if found else "not measured")


def _figures(measured: Sequence[dict]) -> list[str]:
    drawn = plots.texts(measured)
    return [
        '<figure class="figure" data-search-exclude markdown="0"><div class="panels">\n'
        + "\n".join(
            f'--8<-- "{(FOLDER / name).relative_to(ROOT)}"'
            for name in drawn
            if name.startswith(f"{operation}-")
        )
        + "\n</div></figure>"
        for operation in plots.GROWTHS
        if any(name.startswith(f"{operation}-") for name in drawn)
    ]


def _everything(measured: Sequence[dict]) -> str:
    rows = []
    for case in cases(1):
        for side in case.rounds:
            found = rounds(measured, case.operation, case.size, side)
            if found:
                times = [each["seconds"] * 1e3 for each in found if "seconds" in each]
                held = [beyond(each) / 1e6 for each in found if "peak" in each and side != "floor"]
                of_floor = (
                    find(Goal(case.operation, case.size, "within", "floor", 0, ours=side), measured)
                    if times
                    else None
                )
                rows.append(
                    (
                        OPERATIONS[case.operation].title,
                        _size(case.size),
                        side,
                        _range(times),
                        _number(of_floor.ratio) if of_floor else "",
                        _range(held),
                    )
                )
    return (
        "/// details | Time in ms, as a multiple of the floor, and memory beyond inputs and gradients in MB\n"
        + table(("Operation", "Size", "Who", "ms", "× floor", "MB"), rows)
        + "\n///"
    )


def _versions(made: Mapping) -> str:
    names = ", ".join(
        f"{RELEASES[name]} {version.split('+')[0]}" for name, version in made["versions"].items()
    )
    return f"{made['machine']}, no GPU; {names}; on {made['date']}."


def _title(operation: str) -> str:
    return OPERATIONS[operation].title if operation in OPERATIONS else ON_GPU_ONLY[operation]


def _what(goal: Goal) -> str:
    title = OPERATIONS[goal.operation].title
    return f"{title}, compiled" if goal.ours == "ours compiled" else title


def _size(size: Iterable[int]) -> str:
    return " × ".join(map(str, size))


def _beside(goal: Goal) -> str:
    if goal.smaller:
        return f"ours, {_size(goal.smaller)}"
    return "the logits" if goal.beside == "logits" else TITLES[goal.beside]


def _asked(goal: Goal) -> str:
    bound = f"{goal.bound:.0%}" if goal.kind == "memory" else f"{goal.bound:g}"
    return f"≥ {bound}" if goal.kind in AT_LEAST else f"≤ {bound}"


def _found(goal: Goal, found: Found) -> str:
    ratio, smallest, largest = (
        f"{_number(100 * each)}%" if goal.kind == "memory" else _number(each) for each in found
    )
    return f"**{ratio}** ({smallest} to {largest})"


def _range(values: Sequence[float]) -> str:
    if not values:
        return ""
    low, high = _number(min(values)), _number(max(values))
    return low if low == high else f"{low} to {high}"


def _number(value: float) -> str:
    """Three digits, and no exponent.

    >>> _number(0.01234), _number(2.3), _number(1234.5)
    ('0.0123', '2.30', '1230')
    """
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    return f"{rounded:.0f}" if rounded >= 100 else f"{rounded:#.3g}".rstrip(".")
