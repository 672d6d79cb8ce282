import re

import pytest

from build_tools import markup
from build_tools.atlas import relative
from build_tools.errors import Fault, Place
from build_tools.site import check, make

HEAD = "---\nkind: recall\ntitle: Cards\n---\n"


def card(id_, keys="", front="One.", back="Two.", title="A card"):
    return f"## {title} {{#{id_}}}\n```yaml\ntopics: [a]\n{keys}```\n### Front\n{front}\n### Back\n{back}\n"


@pytest.fixture
def pages(project):
    def build(files):
        return {page.uri: page.text for page in check(project(files), use_cache=False).pages}

    return build


@pytest.mark.parametrize(
    ("uri", "target", "expected"),
    [
        ("a.md", "b.md", "b.md"),
        ("a.md", "x/b.md", "x/b.md"),
        ("x/a.md", "b.md", "../b.md"),
        ("x/a.md", "y/b.md", "../y/b.md"),
        ("x/a.md", "x/b.md", "b.md"),
        ("x/a.md", "x/a.md", "a.md"),
    ],
)
def test_relative_paths(uri, target, expected):
    assert relative(uri, target) == expected


def test_links_lead_home_from_the_page_that_shows_them(pages):
    page = "---\nkind: page\ntitle: Page\n---\n## Part {#part}\n```yaml\nembed: card\nsee: [x/cards.md#card]\n```\nText.\n"
    front = "[a](#card) [b](../y/part.md#part) [c](https://example.org) [d](cards.md)"

    found = pages({"x/cards.md": HEAD + card("card", front=front), "y/part.md": page})

    assert f"\n{front}\n" in found["x/cards.md"]
    assert (
        "[a](../x/cards.md#card) [b](part.md#part) [c](https://example.org) [d](../x/cards.md)"
        in found["y/part.md"]
    )
    assert "Explained in: [A card](../x/cards.md#card)" in found["y/part.md"]


def test_each_id_stands_once_even_where_an_item_is_embedded(pages):
    page = "---\nkind: page\ntitle: Page\n---\n## Part {#part}\n```yaml\nembed: card\n```\n"
    keys = "given: {x: 2}\nvalues:\n  y: surrogate(x, 3) = 6\nchecks: [{claim: A, holds: 'surrogate(x, 3) == 6', unless: {x: 3}}]\naliases: [old]\n"

    found = pages({"cards.md": HEAD + card("card", keys, "{=x}", "{=y}"), "page.md": page})

    def ids(text):
        return re.findall(r'id: \'([^\']+)\'|id="([^"]+)"|\{ #(\S+) \}', text)

    at_home = {next(filter(None, groups)) for groups in ids(found["cards.md"])}
    assert at_home == {"card", "old", "card-solution", "card-computation", "card-evidence"}
    assert [next(filter(None, groups)) for groups in ids(found["page.md"])] == ["part"]
    assert "Show the computation" in found["page.md"]


def test_signs_of_html_are_shown_and_not_obeyed(pages):
    keys = "given: {x: 2}\nchecks: [{claim: A & B > C, holds: 'surrogate(x, 3) < 7', unless: 'surrogate(x, 3) > 7'}]\n"

    text = pages({"cards.md": HEAD + card("card", keys, "{=x}")})["cards.md"]

    assert "A &amp; B &gt; C." in text
    assert "<code>surrogate(<wbr>x, 3) &lt; 7</code>" in text
    assert "<strong>Holds:</strong> 6 &lt; 7" in text
    assert "<code>surrogate(<wbr>x, 3) &gt; 7</code>: 6 &gt; 7" in text


def test_an_erratum_names_who_rests_on_it(pages):
    errata = (
        "---\nkind: erratum\ntitle: Errata\n---\n## Wrong {#wrong}\n### Claim\nOne.\n### Correction\nTwo.\n"
    )
    cards = (
        HEAD
        + card("b", "errata: [wrong]\n", title="Second")
        + card("c")
        + card("a", "errata: [wrong]\n", title="First")
    )

    found = pages({"cards.md": cards, "errata.md": errata})

    assert "Corrected in: [Second](cards.md#b), [First](cards.md#a)" in found["errata.md"]
    assert found["cards.md"].count("Corrects an earlier claim: [Wrong](errata.md#wrong)") == 2


def test_spoilers_stay_out_of_the_search_index_and_hints_do_not():
    assert "data-search-exclude" in markup.details("S", "text", "solution", "id")
    assert "data-search-exclude" not in markup.details("S", "text", "hint", "id", spoiler=False)
    assert (
        markup.details("S", "text", "hint", None, spoiler=False)
        == "/// details | S\n    type: hint\n\ntext\n///"
    )


def test_quotes():
    assert markup.quoted("it's") == "'it''s'"
    assert markup.front_matter('a: "b"', "c.md") == "---\ntitle: 'a: \"b\"'\nsource: 'c.md'\n---"


def test_a_notice_shows_faults_and_no_html():
    notice = markup.notice([Fault(Place("a.md", 1, 2), "x", "<script> & more")])

    assert "<code>a.md:1:2: x: &lt;script&gt; &amp; more</code>" in notice
    assert "<script>" not in notice


def test_an_item_whose_erratum_or_embedded_item_has_a_fault_is_still_shown(project):
    page = "---\nkind: page\ntitle: Page\n---\n## Part {#part}\n```yaml\nembed: card\n```\nText.\n"
    broken = HEAD + card("card", "given: {x: 2}\nvalues:\n  y: x * 2 = 5\n", "{=x}", "{=y}")

    result = make(project({"cards.md": broken, "page.md": page}), use_cache=False)

    assert [fault.code for fault in result.faults] == ["wrong-digits"]
    assert "Text." in {page.uri: page.text for page in result.pages}["page.md"]
