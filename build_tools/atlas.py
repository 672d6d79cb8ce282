"""Where everything is: the page of each item, the documentation of each function, and links between pages."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from build_tools.errors import EXTERNAL
from build_tools.model import Bank, Document, Item, Prose, Word
from build_tools.prose import anchors, links


@dataclass(frozen=True)
class Atlas:
    homes: Mapping[str, Document]  # by item id
    items: Mapping[str, Item]
    titles: Mapping[str, str]  # by page
    headings: Mapping[str, str]  # inside running prose, by id
    corrected: Mapping[str, list[str]]  # by erratum: the items that rest on it
    topics: Mapping[str, str]  # by topic: its page
    about: Mapping[str, list[str]]  # by topic: the items about it
    abbreviations: Mapping[str, tuple[str, str]]  # what each stands for, and the item that explains it
    references: Mapping[str, str]  # by library: the page that documents it
    report: str | None  # where a reader reports an item: an address with {id} in it

    def to_item(self, uri: str, id_: str) -> str:
        """A link to the item, as written on the page `uri`."""
        home = self.homes[id_].uri
        target = f"#{id_}" if home == uri else f"{relative(uri, home)}#{id_}"
        return f"[{self.items[id_].title}]({target})"

    def to_items(self, uri: str, ids: list[str]) -> str:
        return ", ".join(self.to_item(uri, id_) for id_ in ids if id_ in self.items)

    def to_topic(self, uri: str, topic: str) -> str:
        """A link to the page of the topic; its name where it has none."""
        if topic not in self.topics:
            return topic.replace("-", " ")
        page = self.topics[topic]
        return f"[{self.titles[page]}]({relative(uri, page)})"

    def to_see(self, uri: str, word: Word) -> str:
        """A link to what `see` names: a page, or an item or heading on it."""
        path, _, anchor = word.text.partition("#")
        if anchor in self.items:
            return self.to_item(uri, anchor)
        target = relative(uri, path) + (f"#{anchor}" if anchor else "")
        return f"[{self.headings.get(anchor) or self.titles.get(path, path)}]({target})"

    def to_function(self, uri: str, module: str, name: str) -> str:
        return f"[`{name}`]({relative(uri, self.references[module])}#{module}.{name})"

    def rebased(self, text: str, item: str, uri: str) -> str:
        """The prose of an item with its links as seen from the page `uri`, which may not be its home."""
        home = self.homes[item].uri
        if home == uri:
            return text
        for link in reversed(links(Prose(text, "", 1))):
            if link.target.startswith(EXTERNAL):
                continue
            path, _, anchor = link.target.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(home), path)) if path else home
            moved = relative(uri, target) + (f"#{anchor}" if anchor else "")
            text = text[: link.offset] + moved + text[link.offset + len(link.target) :]
        return text


def chart(bank: Bank, references: Mapping[str, str], report: str | None) -> Atlas:
    homes = {item.id: document for document in bank.documents for item in document.items}
    items = {item.id: item for document in bank.documents for item in document.items}
    corrected: dict[str, list[str]] = {}
    about: dict[str, list[str]] = {}
    for item in items.values():
        for word in item.topics:
            about.setdefault(word.text, []).append(item.id)
        for word in item.errata:
            corrected.setdefault(word.text, []).append(item.id)
    return Atlas(
        homes=homes,
        items=items,
        titles={d.uri: d.title for d in bank.documents},
        headings={
            anchor.id: anchor.heading
            for item in items.values()
            for section in item.sections
            for anchor in anchors(section.prose)
        },
        corrected=corrected,
        topics={topic_slug(d.uri): d.uri for d in bank.documents if d.kind == "topic"},
        about=about,
        abbreviations={
            short.text: (meaning.text, item.id)
            for item in items.values()
            for short, meaning in item.abbreviations
        },
        references=references,
        report=report,
    )


def topic_slug(uri: str) -> str:
    """The topic whose page this is: its file's name."""
    return posixpath.basename(uri).removesuffix(".md")


def relative(uri: str, target: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(uri) or ".")
