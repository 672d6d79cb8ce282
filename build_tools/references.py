"""What items point at in other files: links, errata, embedded items. Every target must exist."""

import posixpath
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from build_tools.atlas import topic_slug
from build_tools.errors import EXTERNAL, Fault, did_you_mean
from build_tools.model import Bank, Document, Item, Prose, Word
from build_tools.prose import anchors, links


@dataclass(frozen=True)
class Targets:
    pages: Mapping[str, Set[str]]  # the ids on each page
    items: Set[str]
    errata: Set[str]
    topics: Set[str]
    # Every id that is written down, and every page that is there, faulty ones too, so that one fault does not breed
    # others.
    claimed: Set[str]
    files: Set[str]
    docs: Path


def check_references(bank: Bank, claimed: Set[str], files: Set[str], root: Path) -> list[Fault]:
    items = [item for document in bank.documents for item in document.items]
    targets = Targets(
        pages={d.uri: frozenset(id_ for item in d.items for id_ in ids(item)) for d in bank.documents},
        items=frozenset(item.id for item in items if item.kind != "page"),
        errata=frozenset(item.id for item in items if item.kind == "erratum"),
        topics=frozenset(topic_slug(d.uri) for d in bank.documents if d.kind == "topic"),
        claimed=claimed,
        files=files,
        docs=root / "docs",
    )
    faults: list[Fault] = []
    for document in bank.documents:
        faults += _prose(document, document.intro, targets)
        for item in document.items:
            if targets.topics:
                faults += _words(item.topics, targets.topics, targets, "a topic with a page of its own")
            faults += _words(item.errata, targets.errata, targets, "an entry of the errata page")
            faults += _words(
                (item.embed,) if item.embed else (),
                targets.items,
                targets,
                "a question, an exercise or an erratum",
            )
            for word in item.see:
                path, _, anchor = word.text.partition("#")
                if problem := _missing(path, anchor, targets):
                    faults.append(Fault(word.place, "unknown-link", problem))
            for section in item.sections:
                faults += _prose(document, section.prose, targets)
    return faults


def _words(words: tuple[Word, ...], known: Set[str], targets: Targets, what: str) -> Iterator[Fault]:
    for word in words:
        sound = any(word.text in ids for ids in targets.pages.values())
        if word.text not in known and (sound or word.text not in targets.claimed):
            yield Fault(
                word.place, "unknown-link", f'"{word.text}" is not {what}; {did_you_mean(word.text, known)}'
            )


def _prose(document: Document, prose: Prose, targets: Targets) -> Iterator[Fault]:
    for link in links(prose):
        at = prose.place(link.offset)
        if link.target.startswith(EXTERNAL):
            continue
        path, _, anchor = link.target.partition("#")
        if ":" in path or path.startswith("/") or not link.target:
            yield Fault(
                at,
                "bad-link",
                f'"{link.target}" must be https://... or a path relative to this file, like ../errata.md#id',
            )
            continue
        here = posixpath.dirname(document.uri)
        target = posixpath.normpath(posixpath.join(here, path)) if path else document.uri
        if problem := _missing(target, anchor, targets):
            yield Fault(at, "unknown-link", problem)


def _missing(path: str, anchor: str, targets: Targets) -> str | None:
    """Why the target does not exist; None if it does. A page of docs/ is only looked for, not read."""
    if path not in targets.pages:
        if path in targets.files or not path.startswith(("..", "/")) and (targets.docs / path).is_file():
            return None
        return f'there is no page "{path}"; {did_you_mean(path, targets.files)}'
    here = targets.pages[path]
    if not anchor or anchor in here:
        return None
    elsewhere = next((uri for uri, ids in targets.pages.items() if anchor in ids), None)
    if elsewhere is not None:
        return f'"{anchor}" is not on {path} but on {elsewhere}'
    faulty = targets.claimed - {id_ for ids in targets.pages.values() for id_ in ids}
    if any(anchor == id_ or anchor.startswith(f"{id_}-") for id_ in faulty):
        return None
    return f'"{anchor}" is not an id on {path}; {did_you_mean(anchor, here)}'


def ids(item: Item) -> list[str]:
    """Every id that the item has on its page: its own, and those that headings in running prose carry."""
    return [
        item.id,
        *parts(item),
        *(anchor.id for section in item.sections for anchor in anchors(section.prose)),
    ]


def parts(item: Item) -> list[str]:
    """The ids that `render` gives to parts of the item."""
    headings = [section.heading for section in item.sections]
    found = [f"hint-{n + 1}" for n in range(headings.count("Hint"))]
    found += ["solution"] if item.kind not in ("page", "erratum") else []
    found += ["trap"] if "Trap" in headings else []
    found += ["computation"] if item.values else []
    found += ["evidence"] if item.checks else []
    return [f"{item.id}-{part}" for part in found]
