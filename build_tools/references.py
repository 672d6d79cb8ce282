"""What items point at in other files: links, errata, embedded items. Every target must exist."""

import posixpath
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from build_tools.errors import Fault, did_you_mean
from build_tools.model import Bank, Document, Item, Prose, Word
from build_tools.prose import anchors, links

_EXTERNAL = ("https://", "http://", "mailto:")
# Parts of an item that `render` gives an id of its own.
PARTS = ("solution", "trap", "computation", "evidence")


@dataclass(frozen=True)
class Targets:
    pages: Mapping[str, Set[str]]  # the ids on each page
    items: Set[str]
    errata: Set[str]
    # Every id that is written down, those of faulty items too, so that one fault does not breed others.
    claimed: Set[str]
    docs: Path


def check_references(bank: Bank, claimed: Set[str], root: Path) -> list[Fault]:
    items = [item for document in bank.documents for item in document.items]
    targets = Targets(
        pages={d.uri: frozenset(id_ for item in d.items for id_ in _ids(item)) for d in bank.documents},
        items=frozenset(item.id for item in items),
        errata=frozenset(item.id for item in items if item.kind == "erratum"),
        claimed=claimed,
        docs=root / "docs",
    )
    faults: list[Fault] = []
    for document in bank.documents:
        faults += _prose(document, document.intro, targets)
        for item in document.items:
            faults += _words(item.errata, targets.errata, targets, "an entry of the errata page")
            faults += _words((item.embed,) if item.embed else (), targets.items, targets, "an item")
            for word in item.see:
                path, _, anchor = word.text.partition("#")
                if problem := _missing(path, anchor, targets):
                    faults.append(Fault(word.place, "unknown-link", problem))
            for section in item.sections:
                faults += _prose(document, section.prose, targets)
    return faults


def _words(words: tuple[Word, ...], known: Set[str], targets: Targets, what: str) -> Iterator[Fault]:
    for word in words:
        if word.text not in known and (word.text in targets.items or word.text not in targets.claimed):
            yield Fault(
                word.place, "unknown-link", f'"{word.text}" is not {what}; {did_you_mean(word.text, known)}'
            )


def _prose(document: Document, prose: Prose, targets: Targets) -> Iterator[Fault]:
    for link in links(prose):
        at = prose.place(link.offset)
        if link.target.startswith(_EXTERNAL):
            continue
        path, _, anchor = link.target.partition("#")
        if ":" in path or path.startswith("/"):
            yield Fault(
                at, "bad-link", f'"{link.target}" must be https://..., or a path relative to this file'
            )
            continue
        here = posixpath.dirname(document.uri)
        target = posixpath.normpath(posixpath.join(here, path)) if path else document.uri
        if problem := _missing(target, anchor, targets):
            yield Fault(at, "unknown-link", problem)


def _missing(path: str, anchor: str, targets: Targets) -> str | None:
    """Why the target does not exist; None if it does. A page of docs/ is only looked for, not read."""
    if path not in targets.pages:
        if not path.startswith("..") and (targets.docs / path).is_file():
            return None
        return f'there is no page "{path}"; {did_you_mean(path, targets.pages)}'
    here = targets.pages[path]
    if not anchor or anchor in here:
        return None
    elsewhere = next((uri for uri, ids in targets.pages.items() if anchor in ids), None)
    if elsewhere is not None:
        return f'"{anchor}" is not on {path} but on {elsewhere}'
    if anchor in targets.claimed:
        return None
    return f'"{anchor}" is not an id on {path}; {did_you_mean(anchor, here)}'


def _ids(item: Item) -> list[str]:
    hints = sum(section.heading == "Hint" for section in item.sections)
    own = [
        item.id,
        *(f"{item.id}-{part}" for part in PARTS),
        *(f"{item.id}-hint-{n + 1}" for n in range(hints)),
    ]
    return own + [id_ for section in item.sections for id_, _ in anchors(section.prose)]
