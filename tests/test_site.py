import pytest

from build_tools.config import Config
from build_tools.errors import ContentError
from build_tools.site import build, check, make
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
figure: {name: clipped-surrogate, A: y, mark: x}
```
### Front
{=x}
### Back
{=y}
"""


def files(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "cache" not in path.parts
    }


def test_check_is_build_without_writing(project):
    config = project({"a.md": CARD})
    before = files(config.root)

    checked = check(config, use_cache=False)
    assert files(config.root) == before
    built = build(config, use_cache=False)

    assert checked.pages == built.pages
    assert checked.faults == built.faults == ()
    assert files(config.pages) == {page.uri: page.text.encode() for page in built.pages}
    assert len(built.pages) == 1


@pytest.mark.parametrize("command", [check, build])
def test_faults_stop_both_in_the_same_way(project, command):
    config = project({"a.md": CARD})
    build(config, use_cache=False)
    before = files(config.pages)
    config = project({"b.md": CARD.replace("= 6", "= 7")})

    with pytest.raises(ContentError) as caught:
        command(config, use_cache=False)

    assert [fault.code for fault in caught.value.faults] == ["duplicate-id", "wrong-digits"]
    assert caught.value.faults == make(config, use_cache=False).faults
    assert files(config.pages) == before


def test_a_second_build_changes_no_byte_and_follows_a_removed_file(project):
    config = project({"a.md": CARD, "b.md": CARD.replace("card}", "other}")})

    build(config)
    first = files(config.pages)
    entries = {path.name: path.read_bytes() for path in config.cache.iterdir()}
    build(config)
    assert files(config.pages) == first
    assert {path.name: path.read_bytes() for path in config.cache.iterdir()} == entries

    (config.root / "content" / "b.md").unlink()
    build(config)
    assert files(config.pages) == {"a.md": first["a.md"]}
    assert len(list(config.cache.iterdir())) == 2, "the outcome and the figure of the one item that is left"


def test_with_the_cache_and_without_it_the_pages_are_the_same(project):
    config = project({"a.md": CARD})

    fresh = check(config, use_cache=False).pages
    assert not config.cache.exists()
    assert check(config).pages == fresh, "the first run with a cache"
    assert check(config).pages == fresh, "the second"


def test_a_preview_shows_the_faults_on_their_page(project):
    config = project(
        {
            "a.md": CARD,
            "b.md": CARD.replace("card}", "other}").replace("= 6", "= 7"),
            "c.md": "no front matter",
        }
    )

    result = make(config, use_cache=False)
    pages = {page.uri: page.text for page in result.pages}

    assert [fault.place.path for fault in result.faults] == ["content/b.md", "content/c.md"]
    assert "This page has faults" not in pages["a.md"] and "A card" in pages["a.md"]
    assert "content/b.md:10:24: wrong-digits" in pages["b.md"] and "A card" not in pages["b.md"]
    assert "content/c.md:1:1: front-matter" in pages["c.md"]


def test_the_content_of_this_project_holds(config):
    result = check(Config(ROOT, config.libraries, config.figures), use_cache=False)

    counts = result.counts()
    assert counts["items"] >= 6
    assert counts.pop("equations refused") == 0
    assert min(counts.values()) > 0
