"""What a build costs beside plain MkDocs on the same Markdown: python benchmarks/build.py [ROUNDS]

Each figure is a whole process. Ours and plain MkDocs run in turn, so that a slow moment of the machine hits both;
the result is the median of the ratios of the pairs, with their spread. Everything happens in a copy of the project.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
# What the site is made of; some plots on it are those of the benchmarks.
COPIED = ("content", "docs", "ppo_core", "lab", "build_tools", "benchmarks", "mkdocs.yml", "pyproject.toml")
# The goal for a build when nothing has changed.
GOAL = 1.25


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        project.mkdir()
        for name in COPIED:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, project / name)
        run(project, "build_tools", "site")
        plain = plain_copy(project)
        run(plain, "mkdocs", "build", "--strict", "--quiet")
        print(f"{rounds} pairs each; times are medians, ratios are medians of pairs (smallest to largest)\n")
        print(f"{'case':34} {'ours':>8} {'plain MkDocs':>13} {'ratio':>6}")
        report("nothing changed", rounds, project, plain, lambda number: None)
        report("a sentence edited", rounds, project, plain, lambda number: edit_sentence(project, number))
        report("a number edited", rounds, project, plain, lambda number: edit_number(project, number))
        report("from nothing", rounds, project, plain, lambda number: shutil.rmtree(project / "build"))
    print(f"\nGoal when nothing changed: at most {GOAL}.")
    return 0


def plain_copy(project: Path) -> Path:
    """The same pages, theme and extensions without our plugin: what MkDocs alone would cost."""
    plain = project.parent / "plain"
    shutil.copytree(project, plain, ignore=shutil.ignore_patterns("build", "site"))
    shutil.copytree(project / "build" / "pages", plain / "docs", dirs_exist_ok=True)
    settings = (plain / "mkdocs.yml").read_text(encoding="utf-8")
    if "  - build_tools\n" not in settings:
        raise SystemExit("mkdocs.yml no longer lists the plugin as '  - build_tools'; adapt this benchmark")
    (plain / "mkdocs.yml").write_text(settings.replace("  - build_tools\n", ""), encoding="utf-8")
    return plain


def report(case: str, rounds: int, project: Path, plain: Path, prepare: Callable[[int], object]) -> None:
    ours, theirs = [], []
    for number in range(rounds):
        prepare(number)
        ours.append(run(project, "build_tools", "site"))
        theirs.append(run(plain, "mkdocs", "build", "--strict", "--quiet"))
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    print(
        f"{case:34} {statistics.median(ours):6.2f} s {statistics.median(theirs):11.2f} s "
        f"{statistics.median(ratios):6.2f}  ({min(ratios):.2f} to {max(ratios):.2f})"
    )


def edit_sentence(project: Path, number: int) -> None:
    path = project / "content" / "exercises" / "level-2.md"
    text = path.read_text(encoding="utf-8").split("\n<!-- edit")[0].rstrip()
    path.write_text(f"{text}\n\nOne more sentence, number {number}.\n", encoding="utf-8")


def edit_number(project: Path, number: int) -> None:
    """Another input of one exercise, with the digits that follow from it."""
    path = project / "content" / "exercises" / "level-2.md"
    text = path.read_text(encoding="utf-8")
    old, new = ("further: 3,", "further: 4,") if "further: 3," in text else ("further: 4,", "further: 3,")
    if old not in text:
        raise SystemExit("the exercise no longer has the input that this benchmark edits; choose another")
    path.write_text(text.replace(old, new), encoding="utf-8")


def run(folder: Path, *module: str) -> float:
    """Seconds of `python -m module` as a whole process; stops everything if it fails."""
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", *module], cwd=folder, env=environment, capture_output=True, text=True
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{' '.join(module)} failed:\n{done.stdout}{done.stderr}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
