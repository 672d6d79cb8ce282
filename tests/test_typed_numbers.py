"""A number typed into an item or a page is found at its place by the whole build."""

import pytest

from build_tools.equations import check_prose
from build_tools.load import load
from build_tools.site import make
from conftest import ROOT

ITEM = """\
---
kind: {kind}
title: Items
{front}---
## An item {{#item}}
```yaml
{block}
given: {{x: 2}}
values:
  y: x * 3 = 6
```
{body}
"""


def planted(project, kind, body, front="", block="topics: [a]"):
    text = ITEM.format(kind=kind, front=front, block=block, body=body)
    config = project({"a.md": text})
    return text, make(config, use_cache=False)


# What comes before the planted text, by kind: keys of the file, keys of the item, and prose that uses its names.
SECTIONS = [
    ("exercise", "level: 2\n", "topics: [a]", "### Question\nWhat?\n### Hint\n{=x}\n### Solution\n{==y}; "),
    ("exercise", "level: 2\n", "topics: [a]", "### Question\n{==y}, "),
    ("why", "", "topics: [a]", "### Question\nWhy?\n### Answer\n{==y}.\n\n"),
    ("edge-case", "", "topics: [a]", "### Question\nWhy?\n### Answer\n{==y}\n### Trap\n*"),
    ("recall", "", "topics: [a]", "### Front\n{=x}\n### Back\n{=y}: "),
    ("true-false", "", 'topics: [a]\nverdict: "true"', "### Claim\n{=x}\n### Why\n{=y}; "),
    ("spot-the-error", "", "topics: [a]", "### Claim\n{=x}\n### Error\n{=y}\n### Correction\n- "),
    ("erratum", "", "aliases: [other]", "### Claim\n{=x}\n### Correction\n{=y}, "),
    ("page", "", "aliases: [other]", "\n{==y}\n\n- "),
]
REST = {"exercise": "\n### Hint\n{=x}\n### Solution\n{=y}\n", "edge-case": "*\n"}


@pytest.mark.parametrize(
    ("number", "wrong"), [("1.0986", "1.0986"), ("$y = 7$", "7$"), ("2 × 1.0986 = 2.1973", "2.1973")]
)
@pytest.mark.parametrize(("kind", "front", "block", "before"), SECTIONS)
def test_a_planted_number_is_found_at_its_place(project, kind, front, block, before, number, wrong):
    rest = "\n" if "### Solution" in before else REST.get(kind, "\n")
    text, result = planted(project, kind, before + number + rest, front, block)

    (fault,) = result.faults
    lines = text[: text.index(wrong)].split("\n")
    assert (fault.place.line, fault.place.column) == (len(lines), len(lines[-1]) + 1)
    assert result.equations.faults == (fault,)


def test_without_the_planted_number_all_is_well(project):
    body = "### Front\n{=x}\n### Back\n{==y}, 2 × 1.0986 = 2.1972, ${=x} \\times 3 = {=y}$\n"
    _, result = planted(project, "recall", body)

    assert result.faults == ()
    counts = result.counts()
    assert (
        counts["equations generated"],
        counts["equations typed and true"],
        counts["equations refused"],
    ) == (1, 2, 0)


def test_a_claim_may_be_false_on_purpose_but_its_numbers_are_not_typed(project):
    body = "### Claim\n${=x} \\times 3 = {=x}$NUMBER\n### Error\nThe product.\n### Correction\n{==y}\n"

    assert planted(project, "spot-the-error", body.replace("NUMBER", ""))[1].faults == ()
    (fault,) = planted(project, "spot-the-error", body.replace("NUMBER", " and 0.25"))[1].faults
    assert fault.code == "typed-number"


def test_wrong_digits_are_named_once_and_not_as_a_false_equation_too(project):
    body = "### Front\n{=x}\n### Back\n${=x} \\times 3 = {=y}$\n"
    text = ITEM.format(kind="recall", front="", block="topics: [a]", body=body).replace("= 6\n", "= 7\n")

    assert [fault.code for fault in make(project({"a.md": text}), use_cache=False).faults] == ["wrong-digits"]


def test_an_introduction_is_read_too(project):
    page = "---\nkind: page\ntitle: A page\n---\nIt has 1000 words.\n\n## A part {#part}\nText.\n"
    (fault,) = make(project({"a.md": page}), use_cache=False).faults

    assert str(fault).startswith('content/a.md:5:8: typed-number: "1000"')


def test_a_changed_digit_in_this_project_s_typed_equations_is_noticed():
    """One equation of the real content, with its result exchanged for another number."""
    written = r"${=ceiling} \times {=A} = {=clipped}$"
    items = [item for document in load(ROOT)[0].documents for item in document.items]
    item = next(item for item in items if item.id == "ex-2-1")
    section = next(section for section in item.sections if written in section.prose.text)
    at = section.prose.place(section.prose.text.index(written) + written.index("{=clipped}"))
    printed = {g.name: g.printed for g in item.given} | {v.name: v.printed for v in item.values}
    values = {v.name: v for v in item.values}

    assert check_prose(section.prose, printed, values).faults == ()
    fault, *_ = check_prose(section.prose, printed | {"clipped": "2.5"}, values).faults
    assert (fault.code, fault.place) == ("false-equation", at)


@pytest.mark.parametrize(
    ("kind", "title", "found"), [("page", "Sources", 0), ("page", "More", 1), ("recall", "Sources", 1)]
)
def test_a_list_of_sources_is_a_section_of_a_page_with_that_title(project, kind, title, found):
    body = (
        "- Someone, 2017\n"
        if kind == "page"
        else "```yaml\ntopics: [a]\n```\n### Front\nWho?\n### Back\n- Someone, 2017\n"
    )
    text = f"---\nkind: {kind}\ntitle: A page\n---\n## {title} {{#part}}\n{body}"

    assert [f.code for f in make(project({"a.md": text}), use_cache=False).faults] == ["typed-number"] * found
