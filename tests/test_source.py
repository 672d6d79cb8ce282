import pytest

from build_tools.source import split

FILE = """\
---
kind: recall
title: Cards
---

An introduction.

## First {#first}

```yaml
topics: [a]
```

### Front
One.

Two.

### Back
## Second   {#second}
Stray.
"""


def cut(text):
    raw, faults = split(text, "a.md")
    assert faults == []
    return raw


def test_a_file_is_cut_into_its_parts():
    raw = cut(FILE)
    first, second = raw.items

    assert (raw.front.text, raw.front.line) == ("kind: recall\ntitle: Cards", 2)
    assert (raw.intro.text, raw.intro.line) == ("An introduction.", 6)
    assert (first.title.text, first.title.place.line, first.title.place.column) == ("First", 8, 4)
    assert (first.id.text, first.id.place.line, first.id.place.column) == ("first", 8, 12)
    assert (first.block.text, first.block.line) == ("topics: [a]", 11)
    assert [(s.heading, s.prose.text, s.prose.line, place.line) for s, place in first.sections] == [
        ("Front", "One.\n\nTwo.", 15, 14),
        ("Back", "", 20, 19),
    ]
    assert first.stray is None
    assert (second.title.text, second.id.text, second.block) == ("Second", "second", None)
    assert (second.stray.line, second.stray.column) == (21, 1)


def test_the_place_of_a_character_of_prose():
    section, _ = cut(FILE).items[0].sections[0]

    assert str(section.prose.place(0)) == "a.md:15:1"
    assert str(section.prose.place(section.prose.text.index("w"))) == "a.md:17:2"


def item(body):
    return f"---\nkind: page\n---\n## A {{#a}}\n{body}"


@pytest.mark.parametrize(
    "body",
    [
        "```python\n# comment\n## comment\n### comment\n```",
        "~~~\n## x\n```\n## y\n~~~",
        "````\n```\n## x\n```\n````",
        "```yaml\n## a comment\na: 1\n```\nText",
        "   ```\n## x\n   ```",
        "Text #hash and\n\\#5 and",
    ],
)
def test_signs_that_are_no_headings(body):
    raw = cut(item(body))

    assert len(raw.items) == 1
    assert raw.items[0].sections == ()


@pytest.mark.parametrize("body", ["```\nnever closed", "```python\nx = 1\n```yaml\n```", "``` `x` ```"])
def test_headings_after_a_fence_that_is_none(body):
    raw = cut(item(f"Text\n{body}\n## B {{#b}}\n### C\n"))

    assert [each.title.text for each in raw.items] == ["A", "B"]
    assert [section.heading for section, _ in raw.items[1].sections] == ["C"]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("", "empty-file", 1),
        (" \n\n", "empty-file", 1),
        ("\n---\nkind: page\n---\n", "front-matter", 1),
        ("---\nkind: page\n", "front-matter", 1),
    ],
)
def test_files_that_are_none(text, code, line):
    raw, faults = split(text, "a.md")

    assert raw is None
    assert [(f.code, f.place.line) for f in faults] == [(code, line)]


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        ("# Title", "heading", 5),
        ("##B", "heading", 5),
        ("Text\n####More", "heading", 6),
        ("#5 is alive", "heading", 5),
        ("\n```yaml\na: 1\n### C\n", "open-fence", 6),
        ("```yaml\na: 1\n### C\n```python\n```", "open-fence", 5),
    ],
)
def test_faults_of_shape(body, code, line):
    _, faults = split(item(body), "a.md")

    assert [(f.code, f.place.line, f.place.column) for f in faults] == [(code, line, 1)]


def test_a_block_that_is_not_closed_does_not_hide_the_next_item():
    raw, _ = split(item("```yaml\na: 1\n### C\nText\n## B {#b}\n```yaml\nc: 2\n```\n"), "a.md")

    assert [(each.title.text, each.closed) for each in raw.items] == [("A", False), ("B", True)]
    assert raw.items[1].block.text == "c: 2"


def test_a_heading_without_words():
    (only,) = cut("---\nkind: page\n---\n##\nText").items

    assert (only.title.text, only.id) == ("", None)
