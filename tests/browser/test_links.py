"""The built HTML itself: every item is an anchor, and no link leads nowhere."""

import json
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from browser.conftest import ROOT

ITEMS = json.loads((ROOT / "tests" / "cases" / "items.json").read_text(encoding="utf-8"))["items"]


class Anchors(HTMLParser):
    """Collects the ids and the link targets of one page."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids += [found["id"]] if found.get("id") else []
        self.targets += [found["href"]] if tag == "a" and found.get("href") else []
        self.targets += [found["src"]] if tag in ("img", "script") and found.get("src") else []


def read(folder: Path) -> dict[Path, Anchors]:
    # The page for addresses that do not exist has absolute links, because it is shown at any of them.
    paths = [path for path in folder.rglob("*.html") if path.name != "404.html"]
    return {path: Anchors(path.read_text(encoding="utf-8")) for path in paths}


def broken(pages: dict[Path, Anchors]) -> list[str]:
    found = []
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or target.startswith("javascript:"):
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not goal.exists():
                found.append(f"{path.name}: {target}: no such file")
            elif parts.fragment and goal in pages and unquote(parts.fragment) not in pages[goal].ids:
                found.append(f"{path.name}: {target}: no such anchor")
    return found


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Anchors]:
    return read(site.resolve())


def test_every_item_is_an_anchor_and_stands_once(pages):
    ids = [id_ for page in pages.values() for id_ in page.ids]

    assert [each["id"] for each in ITEMS if ids.count(each["id"]) != 1] == []


def test_no_id_stands_twice_on_a_page(pages):
    # Material gives its search field and its palette the same ids on each page; within a page they are unique.
    twice = {path.name: {i for i in page.ids if page.ids.count(i) > 1} for path, page in pages.items()}

    assert {name: ids for name, ids in twice.items() if ids} == {}


def test_no_link_leads_nowhere(pages):
    assert sum(len(page.targets) for page in pages.values()) > 1000
    assert broken(pages) == []


def test_a_broken_link_is_noticed(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html">b</a><a href="#x">x</a><p id="y"></p>', encoding="utf-8"
    )

    assert broken(read(tmp_path.resolve())) == ["a.html: b.html: no such file", "a.html: #x: no such anchor"]
