"""The bank is complete: every item of the list, its verdict and its numbers, links both ways, counts that do not fall."""

import json
import re
from pathlib import Path

import pytest

from build_tools.prose import links
from build_tools.site import Result, check

ITEMS = json.loads((Path(__file__).parent / "cases" / "items.json").read_text(encoding="utf-8"))["items"]
# Counts of the whole content, as `python -m build_tools check` prints them. They may rise; when one has, write the new
# count here. What lowers one must say why in its commit.
AT_LEAST = {
    "pages": 39,
    "items": 60,
    "values": 594,
    "checks": 264,
    "figures": 21,
    "equations generated": 43,
    "equations typed and true": 22,
}


@pytest.fixture(scope="module")
def result(config) -> Result:
    return check(config)


@pytest.fixture(scope="module")
def found(result):
    return {item.id: item for document in result.bank.documents for item in document.items}


def test_the_list_is_whole():
    assert len(ITEMS) == 51


@pytest.mark.parametrize("listed", ITEMS, ids=lambda each: each["id"])
def test_an_item_is_there_with_its_facts(found, result, listed):
    item = found[listed["id"]]
    home = next(document for document in result.bank.documents if item in document.items)

    assert item.kind == listed["kind"]
    assert home.level == listed.get("level")
    if listed["kind"] == "true-false":
        assert item.verdict.text == str(listed["verdict"]).lower()
    assert {word.text for word in item.errata} >= set(listed.get("errata", []))
    printed = {value.printed for value in item.values}
    assert printed >= set(listed.get("numbers", {}).values()), "every number is a computed value"
    text = "\n".join(section.prose.text for section in item.sections)
    for number in listed.get("numbers", {}).values():
        names = [value.name for value in item.values if value.printed == number]
        assert any(f"{{={name}}}" in text or f"{{=={name}}}" in text for name in names), (
            f"{number} stands in the text"
        )


def test_counts_do_not_fall(result):
    counts = result.counts()

    assert {name: min(counts[name], least) for name, least in AT_LEAST.items()} == AT_LEAST
    assert set(counts) - set(AT_LEAST) == {"equations refused"}, "every count has its floor"
    assert counts["equations refused"] == 0


def learn_pages(result):
    return [d for d in result.bank.documents if d.uri.startswith("learn/") and d.uri != "learn/glossary.md"]


def test_every_learn_page_has_a_computed_number_with_a_check(result):
    pages = learn_pages(result)

    assert len(pages) >= 10
    for document in pages:
        assert any(item.values for item in document.items), document.uri
        assert any(item.checks for item in document.items), document.uri


def test_learn_pages_and_items_link_both_ways(result):
    """Each learn page sends readers to items, and items of the bank send readers to it."""
    bank = {d.uri for d in result.bank.documents if d.uri.startswith(("exercises/", "question-bank/"))}
    for document in learn_pages(result):
        out = {
            link.target.removeprefix("../").partition("#")[0]
            for item in document.items
            for section in item.sections
            for link in links(section.prose)
        }
        back = {
            word.text.partition("#")[0]
            for other in result.bank.documents
            if other.uri in bank
            for item in other.items
            for word in item.see
        }
        assert out & bank, f"{document.uri} names no item to practise"
        assert document.uri in back, f"no item leads to {document.uri}"


def test_every_exercise_has_hints_and_every_bank_item_says_where_it_is_explained(result):
    for document in result.bank.documents:
        for item in document.items:
            if item.kind == "exercise":
                assert any(section.heading == "Hint" for section in item.sections), item.id
            if item.kind not in ("page", "erratum"):
                assert item.see, item.id
                assert item.topics, item.id
                assert not re.search(r"[$\\]", item.title), item.id
