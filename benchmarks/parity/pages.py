"""The two pages of the documentation that come from the rows."""

import math
import subprocess
import sys
from collections.abc import Iterable, Mapping

from benchmarks.markdown import table
from benchmarks.parity.differences import Difference, differences
from benchmarks.parity.ours import functions, missing
from benchmarks.parity.pairs import Pair, Peer, peers
from benchmarks.parity.run import called
from benchmarks.parity.samples import SEEDS, sample
from benchmarks.parity.verdict import ERROR, ours_and_right

DIFFERENCES = "docs/library/differences.md"
COMING_FROM = "docs/library/coming-from.md"
BEGIN = "<!-- From here on made by `make parity`: edit benchmarks/parity/, not this page. -->"

# What the code of a peer calls beside the peer.
ENGINES = {"torch", "jnp", "jax", "array", "unwhitened", "np"}

# Characters of code that fit a line of a page.
WIDTH = 70
# Between two codes that are formatted together.
CUT = "\n# ----\n"

HEAD_OF_DIFFERENCES = f"""---
source: {DIFFERENCES}
---
# How libraries differ

The same loss has different names in different libraries, and the same name stands for different numbers. `make parity` runs the functions of seven libraries and those of `ppo_core` on the same inputs, in an environment of its own. Where the results are equal, the [tables for those who come from one of them](coming-from.md) say which call is which. Where they are not, the input is made so small that the right answer can be worked out by hand, and the row stands here.

Nothing here rests on reading: each number was computed by the release that is named. A later release may do better; the command fails when a row is no longer true.

"""

HEAD_OF_COMING_FROM = f"""---
source: {COMING_FROM}
---
# Coming from TRL, verl, OpenRLHF, torchtune, torchrl, rlax

For each library: its arguments, its functions, and then the calls that give the same numbers. Both sides of a call are run as they stand here, on random inputs with masks, and must agree; [how libraries differ](differences.md) says where no call agrees. The names of the inputs are those of the [reference](reference.md); `mask` is True where a token counts.

"""


def texts(recorded: Mapping) -> dict[str, str]:
    """Each page by its path."""
    return {DIFFERENCES: differences_page(recorded), COMING_FROM: coming_from_page()}


def differences_page(recorded: Mapping) -> str:
    parts = [HEAD_OF_DIFFERENCES + BEGIN, "## Where all agree {#equal}", _agreement(recorded)]
    found = {
        (each["peer"], each["subject"], each["what"], each["given"]): each for each in recorded["differences"]
    }
    shown = [row for row in differences() if not missing(row.ours)]
    faults = [row for row in shown if row.fault]
    conventions = [row for row in shown if not row.fault]
    parts += ["## Where an answer is wrong {#wrong}", *_subjects(faults, found, recorded["versions"])]
    parts += [
        "## Where only the convention differs {#conventions}",
        "Both answers are right for what their library promises. Whoever moves a number from one to the other must "
        "know which is which. By hand is what the words of the row say; the setting that gives the other answer is "
        "named below.",
        *_subjects(conventions, found, recorded["versions"]),
    ]
    return "\n\n".join(parts) + "\n"


def coming_from_page() -> str:
    parts = [HEAD_OF_COMING_FROM + BEGIN]
    for peer in peers():
        parts += [f"## {peer.title} {{#{peer.name}}}", peer.names, _arguments(peer), _functions(peer)]
        parts += [f"### Calls of {peer.title}", *_calls(peer)]
    return "\n\n".join(parts) + "\n"


def _agreement(recorded: Mapping) -> str:
    rows = []
    for peer in peers():
        versions = recorded["versions"][peer.name]
        calls = [pair for pair in peer.pairs if not missing(pair.ours)]
        slopes = sum(pair.slope is not None for pair in calls)
        engines = ", ".join(
            f"{name} {version.split('+')[0]}"
            for name, version in versions.items()
            if name != peer.distribution
        )
        rows.append((peer.title, versions[peer.distribution], engines, str(len(calls)), str(slopes)))
    return (
        "Each pair of calls runs on three random inputs in float32, most of them with padding or with holes in the "
        "mask. The results agree to a part in 100,000, and so do the gradients where they are compared.\n\n"
        + table(("Library", "Release", "Runs on", "Pairs of calls", "With gradient"), rows)
    )


def _subjects(rows: Iterable[Difference], found: Mapping, versions: Mapping) -> list[str]:
    parts = []
    by_subject: dict[str, list[Difference]] = {}
    for row in rows:
        by_subject.setdefault(row.subject, []).append(row)
    for subject, of_subject in by_subject.items():
        parts.append(f"### {subject}")
        groups: dict[tuple[str, ...], list[Difference]] = {}
        for row in of_subject:
            groups.setdefault((row.given, row.by_hand, row.why), []).append(row)
        parts += [_one(group, found, versions) for group in groups.values()]
    return parts


def _one(group: list[Difference], found: Mapping, versions: Mapping) -> str:
    """All that a library and ours give for one input, the right answer above it and the reason below."""
    first = group[0]
    lines = []
    for row in group:
        (peer,) = [peer for peer in peers() if peer.name == row.peer]
        theirs = found[row.peer, row.subject, row.what, row.given]
        lines.append((f"{peer.title} {versions[peer.name][peer.distribution]}", row.what, _result(theirs)))
    lines += dict.fromkeys(
        ("ppo_core", _names(functions(row.ours)), _result(ours_and_right(row)[0])) for row in group
    )
    right = ours_and_right(first)[1]
    answer = "" if right == ERROR else f" → **{_number(right)}**"
    return (
        f"Input: {first.given}.\n\nBy hand: {first.by_hand}{answer}.\n\n"
        + table(("Library", "Function", "Gives"), lines)
        + f"\n\n{first.why}"
    )


def _arguments(peer: Peer) -> str:
    rows = [(f"`{theirs}`", f"`{ours}`", note) for theirs, ours, note in peer.arguments]
    return table((f"Argument in {peer.title}", "In ppo_core", "Mind"), rows)


def _functions(peer: Peer) -> str:
    rows = [
        (pair.subject, _names(_theirs(pair.theirs)), _names(functions(pair.ours))) for pair in _shown(peer)
    ]
    return table(("What", f"In {peer.title}", "In ppo_core"), rows)


def _theirs(code: str) -> list[str]:
    """The functions of the peer that its code calls: what is left without the engine and the inputs."""
    inputs = sample("full", SEEDS[0])
    return [name for name in called(code) if name.split(".")[0] not in {*ENGINES, *inputs}]


def _calls(peer: Peer) -> list[str]:
    """Each pair as it runs."""
    pairs = _shown(peer)
    codes = _formatted([f"# {peer.title}\n{pair.theirs}\n# ppo_core\n{pair.ours}\n" for pair in pairs])
    return [
        f"**{pair.subject}**{'. ' * bool(pair.note)}{pair.note}\n\n```py\n{code}\n```"
        for pair, code in zip(pairs, codes, strict=True)
    ]


def _formatted(codes: list[str]) -> list[str]:
    """Each code in lines that fit a page."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", str(WIDTH), "-"]
    text = subprocess.run(command, input=CUT.join(codes), capture_output=True, text=True, check=True).stdout
    return [code.strip() for code in text.split(CUT.strip())]


def _shown(peer: Peer) -> list[Pair]:
    return [pair for pair in peer.pairs if not missing(pair.ours)]


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _result(result: Mapping) -> str:
    if "error" in result:
        # The advice that follows the fault is for whoever made it.
        return f"an error: {result['error'].split(': ', 1)[1].split(';')[0]}"
    return _number(result["value"])


def _number(value: object) -> str:
    """A number with five digits, or a list of them; a list of one as its number."""
    if isinstance(value, list):
        return _number(value[0]) if len(value) == 1 else f"[{', '.join(map(_number, value))}]"
    if isinstance(value, str):
        return {"nan": "NaN", "inf": "∞", "-inf": "−∞"}[value]
    number = float(f"{value:.4e}")
    if number == 0:
        return "0"
    text = (
        f"{number:.5g}"
        if 1e-4 <= abs(number) < 1e6
        else f"{number:.4e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    )
    return text.replace("-", "−", 1) if math.copysign(1, number) < 0 else text
