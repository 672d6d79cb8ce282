import shutil
import subprocess
import sys

import pytest

from build_tools.__main__ import main
from conftest import ROOT

CARD = """\
---
kind: recall
title: Cards
---
## A card {#card}
```yaml
topics: [a]
given: {x: 2}
values:
  y: surrogate(x, 3) = 6
checks:
  - {claim: It is six, holds: 'surrogate(x, 3) == 6', unless: {x: 3}}
```
### Front
{=x}
### Back
{=y}
"""


@pytest.fixture
def root(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "content").mkdir()
    (tmp_path / "content" / "a.md").write_text(CARD, encoding="utf-8")
    return tmp_path


def test_check_says_what_holds_and_writes_no_page(root, capsys):
    assert main(["check", "--root", str(root)]) == 0

    assert capsys.readouterr() == (
        "1 pages, 1 items, 1 values, 1 checks, 0 figures, 0 equations generated, 0 equations typed and true, 0 equations refused: all hold.\n",
        "",
    )
    assert not (root / "build" / "pages").exists()


def test_build_writes_the_pages(root, capsys):
    assert main(["build", "--no-cache", "--root", str(root)]) == 0

    assert capsys.readouterr().err == ""
    assert [path.name for path in (root / "build" / "pages").iterdir()] == ["a.md"]
    assert not (root / "build" / "cache").exists()


def test_faults_give_status_1(root, capsys):
    (root / "content" / "a.md").write_text(CARD.replace("= 6\n", "= 7\n"), encoding="utf-8")

    assert main(["check", "--no-cache", "--root", str(root)]) == 1

    assert capsys.readouterr().err == (
        'content/a.md:10:24: wrong-digits: "y" is printed as 7, but the result is 6, which rounds to 6\n'
        "1 fault; nothing was written.\n"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, "run this in the folder that holds pyproject.toml"),
        (("[tool.build_tools]", "[tool.other]"), "the table [tool.build_tools] is missing"),
        (("{ppo_core =", "{no_such_library ="), 'there is no package "no_such_library"'),
        (("{ppo_core =", '{"ppo_core.nothing" ='), '"ppo_core.nothing" cannot be imported'),
    ],
)
def test_a_bad_configuration_gives_status_2_and_no_traceback(root, capsys, change, message):
    path = root / "pyproject.toml"
    if change is None:
        path.unlink()
    else:
        text = path.read_text(encoding="utf-8")
        assert change[0] in text
        path.write_text(text.replace(*change), encoding="utf-8")

    assert main(["check", "--no-cache", "--root", str(root)]) == 2

    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["deploy"])

    assert caught.value.code == 2
    assert "invalid choice: 'deploy'" in capsys.readouterr().err


def test_as_a_module(root):
    (root / "content" / "a.md").write_text("", encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "build_tools", "check", "--root", str(root)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[0].startswith("content/a.md:1:1: empty-file: ")
