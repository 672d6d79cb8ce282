"""Lists of items: the page of a topic, and the index of them all."""

from collections.abc import Iterable

from build_tools.atlas import Atlas
from build_tools.model import Item

# The order in which lists show the kinds: to practise first, to look up last.
_ORDER = ("exercise", "true-false", "spot-the-error", "why", "edge-case", "recall")
_SORTS = {"true-false": "True or false", "spot-the-error": "Spot the error", "edge-case": "Edge case"}


def sort_of(item: Item, atlas: Atlas) -> str:
    """What a reader has before them: "Exercise · Level 2"."""
    level = atlas.homes[item.id].level
    return _SORTS.get(item.kind, item.kind.capitalize()) + (f" · Level {level}" if level else "")


def topic(slug: str, uri: str, atlas: Atlas) -> str:
    """The items about one topic."""
    items = _ordered(atlas.items[id_] for id_ in atlas.about.get(slug, []))
    return "\n".join(f"- {atlas.to_item(uri, item.id)} {_note(sort_of(item, atlas))}" for item in items)


def index(uri: str, atlas: Atlas) -> list[str]:
    """All topics, then all items under the page that holds them, each with its topics."""
    parts = []
    if atlas.topics:
        counts = {slug: len(atlas.about.get(slug, [])) for slug in sorted(atlas.topics)}
        rows = [f"- {atlas.to_topic(uri, slug)} {_note(str(count))}" for slug, count in counts.items()]
        parts += ["## By topic { #by-topic }", "\n".join(rows)]
    pages: dict[str, list[Item]] = {}
    for item in _ordered(item for item in atlas.items.values() if item.kind not in ("page", "erratum")):
        pages.setdefault(atlas.homes[item.id].uri, []).append(item)
    for page, items in pages.items():
        slug = page.removesuffix(".md").replace("/", "-")
        parts.append(f"## {atlas.titles[page]} {{ #index-{slug} }}")
        parts.append("\n".join(_row(item, uri, atlas) for item in items))
    return parts


def _ordered(items: Iterable[Item]) -> list[Item]:
    """By kind; within a kind as they stand in the files."""
    return sorted(items, key=lambda item: _ORDER.index(item.kind))


def _row(item: Item, uri: str, atlas: Atlas) -> str:
    topics = ", ".join(atlas.to_topic(uri, topic.text) for topic in item.topics)
    return f"- {atlas.to_item(uri, item.id)} {_note(f'{sort_of(item, atlas)} · {topics}')}"


def _note(text: str) -> str:
    return f'<span class="note">{text}</span>'
