import pytest

from build_tools.load import load

CARD = "## {title} {{#{id}}}\n```yaml\ntopics: [a]\n{keys}```\n### Front\nOne.\n### Back\nTwo.\n"


def card(id_, title="A card", keys=""):
    return CARD.format(id=id_, title=title, keys=keys)


def cards(*items):
    return "---\nkind: recall\ntitle: Cards\n---\n" + "\n".join(items)


def test_every_file_becomes_a_page_in_order_of_its_path(project):
    config = project(
        {
            "b/x.md": cards(card("x")),
            "a.md": cards(card("y"), card("z")),
            "README.md": "Not content.",
            "b/notes.txt": "x",
        }
    )
    (config.root / "content" / "folder.md").mkdir()

    bank, faults = load(config.root)

    assert faults == []
    assert [(d.path, d.uri, d.kind, d.title, d.level) for d in bank.documents] == [
        ("content/a.md", "a.md", "recall", "Cards", None),
        ("content/b/x.md", "b/x.md", "recall", "Cards", None),
    ]
    assert [[item.id for item in d.items] for d in bank.documents] == [["y", "z"], ["x"]]


def test_all_fields_of_an_item(project):
    text = """\
---
kind: true-false
title: Claims
---
## A claim {#claim}
```yaml
topics: [a, b]
see: [a.md]
aliases: [old]
verdict: "false"
given: {x: 2.0}
values:
  y: x * 2 = 4.0
checks:
  - claim: It is so
    holds: y > x
    unless: {x: -1}
figure: {name: curve, mark: y}
```
### Claim
{=x}
### Why
{=y}
"""
    bank, faults = load(project({"a.md": text}).root)

    assert faults == []
    (item,) = bank.documents[0].items
    assert (item.kind, item.id, item.title, str(item.place)) == (
        "true-false",
        "claim",
        "A claim",
        "content/a.md:5:4",
    )
    assert [w.text for w in item.topics + item.see + item.aliases + (item.verdict,)] == [
        "a",
        "b",
        "a.md",
        "old",
        "false",
    ]
    assert [(g.name, g.printed) for g in item.given] == [("x", "2.0")]
    assert [(v.name, v.expression.text, v.printed) for v in item.values] == [("y", "x * 2", "4.0")]
    assert [(c.claim.text, c.holds.text) for c in item.checks] == [("It is so", "y > x")]
    assert item.figure.name.text == "curve"
    assert [(s.heading, s.prose.text) for s in item.sections] == [("Claim", "{=x}"), ("Why", "{=y}")]


@pytest.mark.parametrize("text", [cards(card("x")).replace("\n", "\r\n"), "\ufeff" + cards(card("x"))])
def test_line_ends_and_marks_of_other_systems(project, text):
    bank, faults = load(project({"a.md": text}).root)

    assert faults == []
    assert [s.prose.text for s in bank.documents[0].items[0].sections] == ["One.", "Two."]


def test_an_item_with_a_fault_is_left_out_and_the_others_stay(project):
    bank, faults = load(project({"a.md": cards(card("x", keys="nonsense: 1\n"), card("y"))}).root)

    assert [f.code for f in faults] == ["unknown-key"]
    assert [item.id for item in bank.documents[0].items] == ["y"]


def test_faults_of_the_block_and_of_the_prose_are_reported_together(project):
    text = cards(
        card("x", keys="see: yes\n").replace("Two.", "$\\nosuch$\n#### Deep"), card("Y").replace("One.", "")
    )

    codes = sorted(f.code for f in load(project({"a.md": text}).root)[1])

    assert codes == ["bad-id", "bad-tex", "empty-section", "heading", "yaml-truth"]


@pytest.mark.parametrize(
    ("items", "places"),
    [
        ([card("x"), card("x")], ["content/a.md:14:13"]),
        ([card("x"), card("y"), card("x"), card("x")], ["content/a.md:23:13", "content/a.md:32:13"]),
        ([card("x"), card("y", keys="aliases: [x]\n")], ["content/a.md:17:11"]),
        ([card("x", keys="aliases: [z]\n"), card("y", keys="aliases: [z]\n")], ["content/a.md:18:11"]),
        ([card("x"), card("x-solution")], ["content/a.md:14:13"]),
        ([card("x"), card("x-trap")], []),
    ],
)
def test_ids_are_unique(project, items, places):
    _, faults = load(project({"a.md": cards(*items)}).root)

    assert [(f.code, str(f.place)) for f in faults] == [("duplicate-id", place) for place in places]


def test_the_column_of_a_bad_byte_counts_characters(project):
    _, (fault,) = load(
        project(
            {
                "a.md": "é é\nüü \xff".encode("latin-1")
                .replace(b"\xe9", "é".encode())
                .replace(b"\xfc", "ü".encode())
            }
        ).root
    )

    assert (fault.code, str(fault.place)) == ("not-utf-8", "content/a.md:2:4")


def test_a_project_without_content(tmp_path):
    _, (fault,) = load(tmp_path)

    assert (fault.code, str(fault.place)) == ("no-content", "content:1:1")
