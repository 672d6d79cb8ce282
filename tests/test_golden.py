"""Small content of every kind, and the Markdown it becomes, byte for byte.

Both are kept by hand: where a page changes on purpose, read the difference and change the file.
"""

from pathlib import Path

import pytest

from build_tools.config import Config
from build_tools.schema import KINDS
from build_tools.site import Result, build, check
from conftest import ROOT

GOLDEN = ROOT / "tests" / "golden"


@pytest.fixture(scope="module")
def result(config) -> Result:
    return check(Config(GOLDEN, config.libraries, config.figures), use_cache=False)


def read(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode("utf-8")
        for path in folder.rglob("*.md")
    }


def expected() -> dict[str, str]:
    return read(GOLDEN / "pages")


def test_every_kind_is_there(result):
    assert {document.kind for document in result.bank.documents} == set(KINDS)


@pytest.mark.parametrize("uri", sorted(expected()))
def test_page(result, uri):
    assert {page.uri: page.text for page in result.pages}[uri] == expected()[uri]


def test_there_are_no_other_pages(result):
    assert sorted(page.uri for page in result.pages) == sorted(expected())


def test_build_writes_what_check_found(result, project, config):
    copied = project(read(GOLDEN / "content"))
    built = build(copied, use_cache=False)

    assert built.pages == result.pages
    assert read(copied.pages) == expected()


def test_a_changed_byte_is_noticed(result, project):
    path = GOLDEN / "content" / "cards" / "recall.md"
    changed = check(
        project(
            {
                "cards/recall.md": path.read_text(encoding="utf-8").replace("That.", "That!"),
                "page.md": PAGE,
                "topics/testing.md": "---\nkind: topic\ntitle: Testing\n---\n",
            }
        ),
        use_cache=False,
    )

    (page,) = [page for page in changed.pages if page.uri == "cards/recall.md"]
    assert page.text != expected()["cards/recall.md"]
    assert page.text.replace("That!", "That.") == expected()["cards/recall.md"]


PAGE = "---\nkind: page\ntitle: A page\n---\n## A part {#part}\nText.\n"
