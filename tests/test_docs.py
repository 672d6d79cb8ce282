"""Every Python block of the README and of docs/ runs, and prints what the comment beside the print says."""

import contextlib
import io
import re

import pytest

from conftest import ROOT

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PRINTS = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)
BLOCKS = [
    pytest.param(match[1], id=f"{path.relative_to(ROOT)}:{text[: match.start()].count(chr(10)) + 1}")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    for text in [path.read_text(encoding="utf-8")]
    for match in _BLOCK.finditer(text)
]


def printed(block: str) -> list[str]:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(block, "<block>", "exec"), {})
    return output.getvalue().splitlines()


def test_there_are_blocks():
    assert len(BLOCKS) >= 2


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_prints_what_it_says(block):
    expected = _PRINTS.findall(block)

    assert expected, "a block that prints nothing shows nothing"
    assert printed(block) == expected


def test_a_wrong_comment_is_noticed():
    block = "print(1 + 1)  # 3\n"

    assert printed(block) != _PRINTS.findall(block)
