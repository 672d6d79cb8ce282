"""The oldest torch: what the package admits is what `make oldest` installs and what the README says."""

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = {"lab", "ppo_core", "reference"}
# Looks at the repository, not at what the library computes; `make oldest` leaves it out.
SURFACE = "test_library_surface.py"


def script():
    """The script as a module; scripts/ is no package."""
    spec = importlib.util.spec_from_file_location("oldest", ROOT / "scripts" / "oldest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


oldest = script()


def test_the_floor_is_named_once_and_told_in_the_readme():
    assert f"torch>={oldest.floor()}" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert oldest.requirements()[0] == f"torch=={oldest.floor()}.0"
    told = re.findall(r"PyTorch (\d+\.\d+) or newer", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert told == [oldest.floor()]


def test_a_floor_that_is_not_understood_stops_the_script(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["torch>=2.6,!=2.7"]\n')
    monkeypatch.setattr(oldest, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="requires torch>=2.6,!=2.7"):
        oldest.floor()


def test_what_the_tests_of_the_library_import_is_installed():
    assert {each.partition("==")[0] for each in oldest.requirements()} == {"torch", *oldest.TOOLS}
    paths = [path for path in (ROOT / "tests" / "library").rglob("*.py") if path.name != SURFACE]
    imported = set().union(*map(packages, paths))
    assert imported - OURS - sys.stdlib_module_names == {"torch", *oldest.TOOLS}
    assert SURFACE in (ROOT / "Makefile").read_text(encoding="utf-8")


def packages(path: Path) -> set[str]:
    """The packages that a file imports from elsewhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.partition(".")[0])
    return found
