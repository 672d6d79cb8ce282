import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from build_tools.cache import Cache
from conftest import ROOT


def test_what_was_put_is_there(tmp_path):
    cache = Cache(tmp_path / "cache", "mark")
    key = cache.key("stage", ["data", 0.1, None])

    assert cache.get(key) is None
    cache.put(key, {"x": [0.1 + 0.2, True, "é"]})

    assert Cache(tmp_path / "cache", "mark").get(key) == {"x": [0.30000000000000004, True, "é"]}
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [f"{key}.json"]


def test_a_key_rests_on_stage_mark_and_data(tmp_path):
    keys = {
        Cache(tmp_path, mark).key(stage, data)
        for mark in "ab"
        for stage in "cd"
        for data in (["e"], ["e", "f"], "e")
    }

    assert len(keys) == 12
    assert Cache(tmp_path, "a").key("c", ["e"]) == Cache(None, "a").key("c", ["e"])


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b'{"x": 1'])
def test_a_damaged_entry_counts_as_absent(tmp_path, damage):
    cache = Cache(tmp_path, "mark")
    key = cache.key("stage", 1)
    cache.put(key, {"x": 1})
    (tmp_path / f"{key}.json").write_bytes(damage)

    assert cache.get(key) is None
    cache.put(key, {"x": 2})
    assert cache.get(key) == {"x": 2}


def test_without_a_folder_nothing_is_kept(tmp_path):
    cache = Cache(None, "mark")
    cache.put("key", 1)
    cache.prune()

    assert cache.get("key") is None
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    cache = Cache(tmp_path / "file" / "cache", "mark")

    cache.put("key", 1)
    cache.prune()

    assert cache.get("key") is None


def test_prune_keeps_what_was_asked_for(tmp_path):
    for key in ("old", "kept"):
        Cache(tmp_path, "mark").put(key, 1)
    cache = Cache(tmp_path, "mark")
    cache.get("kept")
    (tmp_path / "notes.txt").write_text("not an entry", encoding="utf-8")

    cache.prune()

    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.json", "notes.txt"]


# Runs the command line in a fresh process and prints what it imported.
RUN = """
import json, sys
from build_tools.__main__ import main
status = main(sys.argv[1:])
print(json.dumps([status, sorted({name.split(".")[0] for name in sys.modules} & {"torch", "matplotlib", "ppo_core", "lab"})]))
"""
HEAVY = ["lab", "matplotlib", "ppo_core", "torch"]


@pytest.fixture
def project_copy(tmp_path) -> Path:
    """The real project's content and libraries, so that a library can be changed."""
    for name in ("content", "ppo_core", "lab", "build_tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs" / "library", tmp_path / "docs" / "library")
    for page in (ROOT / "docs").glob("*.md"):
        shutil.copy(page, tmp_path / "docs")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def imported(root: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, "check", "--root", str(root)],
        cwd=root,  # the copies of the libraries are found first
        capture_output=True,
        text=True,
        check=True,
    )
    status, modules = json.loads(done.stdout.splitlines()[-1])
    assert status == 0, done.stderr
    return modules


def test_an_unchanged_project_imports_no_torch_and_a_changed_library_does(project_copy):
    assert imported(project_copy) == HEAVY
    assert imported(project_copy) == [], "the second run computes nothing"

    entries = {path.name: path.read_bytes() for path in (project_copy / "build" / "cache").iterdir()}
    assert entries
    with (project_copy / "ppo_core" / "ratios.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")

    assert imported(project_copy) == HEAVY
    after = {path.name: path.read_bytes() for path in (project_copy / "build" / "cache").iterdir()}
    assert after.keys().isdisjoint(entries), "every key rests on the source of the libraries"
    assert sorted(after.values()) == sorted(entries.values()), "and the same was computed again"
