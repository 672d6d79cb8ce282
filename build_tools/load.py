"""load: content/**/*.md -> Bank. The only reader of content.

Two passes: each file by itself, then what holds between files (ids, links, errata). An item with a fault is left out
of the bank, so that no later stage reports the consequences of a fault that is already named.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from build_tools import blocks
from build_tools.errors import Fault, Place, did_you_mean
from build_tools.items import check_title, read_item
from build_tools.model import Bank, Document
from build_tools.prose import anchors, placeholders
from build_tools.references import check_references, parts
from build_tools.schema import FRONT_MATTER, ITEM_KINDS, KINDS, LISTS
from build_tools.source import RawItem, split
from build_tools.tex_check import check_tex
from build_tools.yaml_text import Mapping, read

# The authoring guide stands beside what it describes and is no page of the site.
NOT_CONTENT = ("README.md",)


def load(root: Path) -> tuple[Bank, list[Fault]]:
    """Reads every content file under `root`/content."""
    documents, faults = [], []
    known: list[tuple[str, Place]] = []
    paths = sorted((root / "content").rglob("*.md"))
    files = [path for path in paths if path.name not in NOT_CONTENT and path.is_file()]
    for path in files:
        document, ids, more = load_file(path, root)
        faults += more
        known += ids
        if document is not None:
            documents.append(document)
    if not documents and not faults:
        faults.append(
            Fault(
                Place("content", 1, 1),
                "no-content",
                "no .md file stands under content/; write one (see the authoring guide)",
            )
        )
    bank = Bank(tuple(documents))
    items = [item for document in documents for item in document.items]
    uris = frozenset(path.relative_to(root / "content").as_posix() for path in files)
    made = {id_: item.place for item in items for id_ in parts(item)}
    aliases = [(alias.text, alias.place) for item in items for alias in item.aliases]
    shorts = [(short.text, short.place) for item in items for short, _ in item.abbreviations]
    return bank, [
        *faults,
        *(
            Fault(
                place,
                "duplicate-id",
                f'the id "{id_}" is taken in {first}; ids are permanent and unique, choose another',
            )
            for id_, place, first in _repeated([*made.items(), *known, *aliases])
        ),
        *(
            Fault(place, "duplicate-name", f'"{short}" is explained in {first} already; keep one of the two')
            for short, place, first in _repeated(shorts)
        ),
        *check_references(bank, frozenset(id_ for id_, _ in known), uris, root),
    ]


def load_file(path: Path, root: Path) -> tuple[Document | None, list[tuple[str, Place]], list[Fault]]:
    """One file: its document, every id it claims (those of faulty items too), and its faults."""
    name = path.relative_to(root).as_posix()
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8").split("\n")
        line, column = len(before), len(before[-1]) + 1
        byte = error.object[error.start]
        return (
            None,
            [],
            [
                Fault(
                    Place(name, line, column),
                    "not-utf-8",
                    f"the byte 0x{byte:02x} is not UTF-8; save the file as UTF-8",
                )
            ],
        )
    raw, faults = split(text, name)
    if raw is None:
        return None, [], faults

    def report(place: Place, code: str, message: str) -> None:
        faults.append(Fault(place, code, message))

    front, more = read(raw.front.text, name, raw.front.line)
    faults += more
    if front is None:
        return None, _claimed(raw.items), faults
    kind, title, level = _front(front, report)
    if kind is None:
        return None, _claimed(raw.items), faults
    if kind in LISTS and raw.items:
        report(
            raw.items[0].title.place,
            "stray-item",
            f"a file of kind {kind} holds no items of its own, it lists those of others; move this one elsewhere",
        )
        raw = dataclasses.replace(raw, items=())
    if kind in ITEM_KINDS and not raw.items:
        report(
            Place(name, 1, 1),
            "no-items",
            f'a file of kind {kind} holds items; write one, starting with "## Title {{#id}}"',
        )
    faults += check_tex(raw.intro)
    for each in placeholders(raw.intro):
        report(
            raw.intro.place(each.offset),
            "unknown-name",
            f'"{each.name}" is not known here; only items have values, so move the sentence into one',
        )
    items = []
    for each in raw.items:
        item, more = read_item(each, kind)
        faults += more
        if item is not None and not more:
            items.append(item)
    uri = path.relative_to(root / "content").as_posix()
    return Document(name, uri, kind, title, level, raw.intro, tuple(items)), _claimed(raw.items), faults


def _claimed(raw: tuple[RawItem, ...]) -> list[tuple[str, Place]]:
    found = []
    for each in raw:
        if each.id:
            found.append((each.id.text, each.id.place))
        found += [(anchor.id, each.body.place(anchor.offset)) for anchor in anchors(each.body)]
    return found


def _front(front: Mapping, report: blocks.Report) -> tuple[str | None, str, int | None]:
    kind = blocks.word(front.get("kind"), report)
    if kind is None or kind.text not in KINDS:
        if kind is not None:
            report(
                kind.place, "unknown-kind", f'"{kind.text}" is not a kind; {did_you_mean(kind.text, KINDS)}'
            )
        elif front.get("kind") is None:
            report(front.place, "missing-key", f'the key "kind" is missing; known: {", ".join(KINDS)}')
        return None, "", None
    blocks.keys(front, FRONT_MATTER, kind.text, report)
    title = blocks.word(front.get("title"), report)
    if title is not None:
        check_title(title, report)
    level = blocks.word(front.get("level"), report)
    if level is not None and level.text not in ("1", "2", "3", "4", "5"):
        report(level.place, "bad-level", f'"{level.text}" is not a level; the levels are 1 to 5')
        level = None
    return kind.text, title.text if title else "", int(level.text) if level else None


def _repeated(known: list[tuple[str, Place]]) -> Iterator[tuple[str, Place, Place]]:
    """Every name that has stood before, with its place and that of the first."""
    first: dict[str, Place] = {}
    for name, place in known:
        if name in first:
            yield name, place, first[name]
        else:
            first[name] = place
