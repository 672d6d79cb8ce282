"""The page of a topic and the index of all items; and the link to report an item."""

import dataclasses

import pytest

from build_tools.site import check

ITEM = """\
---
kind: exercise
title: Cards
level: 3
---
## First {#first}
```yaml
topics: [clipping, reward]
```
### Question
One.
### Hint
Two.
### Solution
Three.

## Second {#second}
```yaml
topics: [clipping]
```
### Question
One.
### Hint
Two.
### Solution
Three.
"""
FILES = {
    "cards.md": ITEM,
    "topics/clipping.md": "---\nkind: topic\ntitle: The clip\n---\nThe band.\n",
    "topics/reward.md": "---\nkind: topic\ntitle: Reward\n---\n",
    "items.md": "---\nkind: index\ntitle: All items\n---\n",
}


@pytest.fixture
def pages(project):
    def make(report: str | None = None) -> dict[str, str]:
        config = dataclasses.replace(project(FILES), report=report)
        return {page.uri: page.text for page in check(config, use_cache=False).pages}

    return make


def test_a_topic_lists_its_items_in_their_order(pages):
    text = pages()["topics/clipping.md"]

    assert text.endswith(
        "# The clip\n\nThe band.\n\n"
        '- [First](../cards.md#first) <span class="note">Exercise · Level 3</span>\n'
        '- [Second](../cards.md#second) <span class="note">Exercise · Level 3</span>\n'
    )
    assert "Second" not in pages()["topics/reward.md"]


def test_the_index_lists_topics_and_items(pages):
    text = pages()["items.md"]

    assert '- [The clip](topics/clipping.md) <span class="note">2</span>' in text
    assert '- [Reward](topics/reward.md) <span class="note">1</span>' in text
    assert (
        "## Cards { #index-cards }\n\n"
        '- [First](cards.md#first) <span class="note">Exercise · Level 3 · '
        "[The clip](topics/clipping.md), [Reward](topics/reward.md)</span>"
    ) in text


def test_an_item_leads_to_its_topics(pages):
    assert '<span class="topic">[The clip](topics/clipping.md)</span>' in pages()["cards.md"]


def test_a_reader_can_report_an_item_where_an_address_is_configured(pages):
    text = pages("https://example.org/new?item={id}")["cards.md"]

    assert "[Report this item](https://example.org/new?item=first)" in text
    assert "[Report this item](https://example.org/new?item=second)" in text
    assert "Report" not in pages()["cards.md"]
