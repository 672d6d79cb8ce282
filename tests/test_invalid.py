"""Each file (or folder) under invalid/ is a project's content; the .txt beside it says what `check` must print.

The expected lines are written by hand. A new kind of fault needs a file here: the last tests see to it.
"""

import ast
import random
import shutil
from pathlib import Path

import pytest

from build_tools.__main__ import main
from build_tools.config import Config
from build_tools.site import make
from conftest import ROOT

INVALID = ROOT / "tests" / "invalid"
CASES = sorted(path.stem for path in INVALID.glob("*.txt"))


def copy_content(case: str, target: Path) -> None:
    folder = INVALID / case
    if folder.is_dir():
        shutil.copytree(folder, target)
    else:
        target.mkdir()
        shutil.copy(INVALID / f"{case}.md", target)


def expected(case: str) -> list[str]:
    return (INVALID / f"{case}.txt").read_text(encoding="utf-8").splitlines()


def faults(case: str, root: Path, config: Config) -> list[str]:
    copy_content(case, root / "content")
    return [
        str(fault) for fault in make(Config(root, config.libraries, config.figures), use_cache=False).faults
    ]


def test_there_are_cases_and_each_has_its_two_halves():
    halves = {path.stem for path in INVALID.iterdir() if path.suffix == ".md" or path.is_dir()}

    assert len(CASES) > 150
    assert set(CASES) == halves


@pytest.mark.parametrize("case", CASES)
def test_bad_content(case, tmp_path, config):
    assert expected(case), "the expected file is empty"
    assert faults(case, tmp_path, config) == expected(case)


def test_a_wrong_expectation_is_noticed(tmp_path, config):
    wrong = [line.replace(":12:14:", ":12:15:") for line in expected("wrong-digits-too-low")]

    assert wrong != expected("wrong-digits-too-low")
    assert faults("wrong-digits-too-low", tmp_path, config) != wrong


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with the faults of several files, and with pages from an earlier build."""
    copy_content("many-faults", tmp_path / "content")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "build" / "pages").mkdir(parents=True)
    (tmp_path / "build" / "pages" / "old.md").write_text("as it was\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("command", ["check", "build"])
def test_all_faults_in_one_run_and_nothing_is_written(command, root, capsys):
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}

    status = main([command, "--no-cache", "--root", str(root)])

    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert status == 1
    assert printed.out == ""
    assert lines[:-1] == expected("many-faults")
    assert lines[-1] == f"{len(expected('many-faults'))} faults; nothing was written."
    assert len({line.split(":")[0] for line in lines[:-1]}) == 3, "faults in several files"
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def codes_in(source: str) -> set[str]:
    """The codes of the faults that a module can report: Fault(place, "code", ...), report(...) and fail(...)."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and len(node.args) >= 2:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            code = node.args[1]
            if name in ("Fault", "report", "fail") and isinstance(code, ast.Constant):
                found.add(code.value)
    return found


def codes_of_the_tools() -> set[str]:
    return {
        code
        for path in (ROOT / "build_tools").glob("*.py")
        for code in codes_in(path.read_text(encoding="utf-8"))
    }


def codes_of_the_cases(cases: list[str]) -> set[str]:
    return {line.split(": ")[1] for case in cases for line in expected(case)}


def test_every_code_of_the_tools_has_a_case():
    assert len(codes_of_the_tools()) > 40
    assert codes_of_the_tools() - codes_of_the_cases(CASES) == set()


def test_a_code_without_a_case_is_noticed():
    without = [case for case in CASES if "open-fence" not in codes_of_the_cases([case])]

    assert codes_of_the_tools() - codes_of_the_cases(without) == {"open-fence"}
    assert codes_in(
        'report(at, "new-code", "text")\nFault(at, "other-code", f"{x}")\nself.fail(n, "third", "")'
    ) == {
        "new-code",
        "other-code",
        "third",
    }


def test_every_code_of_the_cases_is_one_of_the_tools():
    assert codes_of_the_cases(CASES) <= codes_of_the_tools()


# What an author may leave behind by a slip of the hand.
SLIPS = (
    "{",
    "}",
    "[",
    "]",
    "$",
    "=",
    "\n",
    "#",
    "`",
    "'",
    '"',
    ":",
    "-",
    "{=x}",
    "1e999",
    "\\",
    "\0",
    "é",
    ")",
    ",",
)


def slipped(text: str, dice: random.Random) -> str:
    """The text with something lost, something added or two lines swapped."""
    at = dice.randrange(len(text))
    match dice.randrange(3):
        case 0:
            return text[:at] + text[at + dice.randrange(1, 12) :]
        case 1:
            return text[:at] + dice.choice(SLIPS) + text[at:]
    lines = text.split("\n")
    one, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "\n".join(lines)


def test_no_slip_ends_in_a_crash(project):
    dice = random.Random(1)
    sources = [
        path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "tests" / "golden" / "content").rglob("*.md"))
    ]
    faulty = 0
    for _ in range(60):
        text = slipped(slipped(dice.choice(sources), dice), dice)

        result = make(project({"a.md": text}), use_cache=False)

        faulty += bool(result.faults)
        assert all(fault.place.path == "content/a.md" and "\n" not in str(fault) for fault in result.faults)
    assert faulty > 30
