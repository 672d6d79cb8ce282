"""The first use of an abbreviation in an item or on a running page, outside code, maths, links and headings, is a link to its entry."""

import pytest

from build_tools.site import check

GLOSSARY = """---
kind: page
title: Words
---
## KL divergence {#kl}
```yaml
abbreviations: {KL: Kullback-Leibler}
```
KL is a divergence, TD is not.

## TD {#td}
```yaml
abbreviations: {TD: temporal difference, TD3: three times that}
```
TD without KL and without KL again.
"""
KL = '[KL](words.md#kl "Kullback-Leibler"){ .abbreviation }'


def cards(front, back="Two."):
    return f"---\nkind: recall\ntitle: Cards\n---\n## A card {{#card}}\n```yaml\ntopics: [a]\n```\n### Front\n{front}\n### Back\n{back}\n"


@pytest.fixture
def page(project):
    def build(uri, text):
        pages = check(project({"words.md": GLOSSARY, uri: text}), use_cache=False).pages
        return {page.uri: page.text for page in pages}[uri]

    return build


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("The KL, twice KL.", f"The {KL}, twice KL."),
        ("**KL**-regularised", f"**{KL}**-regularised"),
        ("`KL` and KL", f"`KL` and {KL}"),
        ("$KL$ and KL", f"$KL$ and {KL}"),
        ("[the KL](#card) and KL", f"[the KL](#card) and {KL}"),
        ('<span title="KL">x</span> KL', f'<span title="KL">x</span> {KL}'),
        ('"RL with KL" or KL', f'"RL with KL" or {KL}'),
        ("AKL, KLs, KL2 and kl", "AKL, KLs, KL2 and kl"),
        ("TD3", '[TD3](words.md#td "three times that"){ .abbreviation }'),
    ],
)
def test_the_first_use_is_a_link(page, front, expected):
    assert f"\n{expected}\n" in page("cards.md", cards(front))


def test_each_item_links_once_wherever_the_use_stands(page):
    assert (
        f"\nOne.\n\n/// details | Answer\n    type: solution\n    attrs: {{id: 'card-solution', data-search-exclude: ''}}\n\n{KL} and KL.\n"
        in page("cards.md", cards("One.", "KL and KL."))
    )


def test_a_link_is_as_seen_from_its_page(page):
    assert '[KL](../words.md#kl "Kullback-Leibler"){ .abbreviation }' in page("x/cards.md", cards("KL"))


def test_an_entry_does_not_link_to_itself_but_to_the_others(page):
    text = page("words.md", GLOSSARY)

    assert "\nKL is a divergence, [TD](words.md#td" in text
    assert "\nTD without KL and without KL again." in text


def test_a_running_page_explains_once_and_each_item_anew(page):
    running = page("page.md", "---\nkind: page\ntitle: P\n---\n## A {#a}\nKL.\n\n## B {#b}\nKL again.\n")
    two = cards("KL") + "\n## Another {#another}\n```yaml\ntopics: [a]\n```\n### Front\nKL\n### Back\nNo.\n"

    assert f"\n{KL}.\n" in running and "\nKL again.\n" in running
    assert page("cards.md", two).count(f"\n{KL}\n") == 2


def test_headings_stay_plain(page):
    text = page("page.md", "---\nkind: page\ntitle: P\n---\n## The KL {#a}\n### KL here {#b}\nKL.\n")

    assert "## The KL { #a }\n" in text and "\n### KL here {#b}\n" in text and f"\n{KL}.\n" in text


def test_the_introduction_of_a_page_is_explained_too(page):
    assert f"\n{KL} first, KL then.\n" in page(
        "page.md", "---\nkind: page\ntitle: P\n---\nKL first, KL then.\n\n## A {#a}\nText.\n"
    )
