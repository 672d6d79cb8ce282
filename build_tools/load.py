"""load: content/**/*.md -> Bank. The only reader of content.

Two passes: each file by itself, then what holds between files (ids, links, errata). An item with a fault is left out
of the bank, so that no later stage reports the consequences of a fault that is already named.
"""

from collections.abc import Iterator
from pathlib import Path

from build_tools import blocks
from build_tools.errors import Fault, Place, did_you_mean
from build_tools.model import Bank, Document, Item, Section, Word
from build_tools.names import check_names
from build_tools.prose import anchors, placeholders
from build_tools.references import check_references
from build_tools.schema import BLOCK, FRONT_MATTER, HEADINGS, KINDS
from build_tools.source import SLUG, RawItem, split
from build_tools.tex_check import check_tex
from build_tools.yaml_text import Mapping, read

# The authoring guide stands beside what it describes and is no page of the site.
NOT_CONTENT = ("README.md",)


def load(root: Path) -> tuple[Bank, list[Fault]]:
    """Reads every content file under `root`/content."""
    documents, faults = [], []
    known: list[tuple[str, Place]] = []
    for path in sorted((root / "content").rglob("*.md")):
        if path.name in NOT_CONTENT:
            continue
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
    return bank, [
        *faults,
        *_duplicate_ids(known),
        *check_references(bank, frozenset(id_ for id_, _ in known), root),
    ]


def load_file(path: Path, root: Path) -> tuple[Document | None, list[tuple[str, Place]], list[Fault]]:
    """One file: its document, every id it claims (those of faulty items too), and its faults."""
    name = path.relative_to(root).as_posix()
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        column = error.start - (error.object.rfind(b"\n", 0, error.start) + 1) + 1
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
    if kind != "page" and not raw.items:
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
            f'"{each.name}" is not known here; only items have values',
        )
    items = []
    for each in raw.items:
        item, more = _item(each, kind)
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
        found += [(id_, each.body.place(offset)) for id_, offset in anchors(each.body)]
    return found


def _front(front: Mapping, report: blocks.Report) -> tuple[str | None, str, int | None]:
    kind = blocks.word(front.get("kind"), report)
    if kind is None or kind.text not in KINDS:
        if kind is not None:
            report(
                kind.place, "unknown-kind", f'"{kind.text}" is not a kind; {did_you_mean(kind.text, KINDS)}'
            )
        else:
            report(front.place, "missing-key", f'the key "kind" is missing; known: {", ".join(KINDS)}')
        return None, "", None
    blocks.keys(front, FRONT_MATTER, kind.text, report)
    title = blocks.word(front.get("title"), report)
    if title is not None:
        _check_title(title, report)
    level = blocks.word(front.get("level"), report)
    if level is not None and level.text not in ("1", "2", "3", "4", "5"):
        report(level.place, "bad-level", f'"{level.text}" is not a level; the levels are 1 to 5')
        level = None
    return kind.text, title.text if title else "", int(level.text) if level else None


def _check_title(title: Word, report: blocks.Report) -> None:
    if not title.text.strip():
        report(title.place, "no-title", "the title is empty; write a few words")
    for sign in "$\\`{":
        if sign in title.text:
            report(title.place, "bad-title", f'a title is plain text; "{sign}" does not belong into it')
            return


def _item(raw: RawItem, kind: str) -> tuple[Item | None, list[Fault]]:
    faults: list[Fault] = []

    def report(place: Place, code: str, message: str) -> None:
        faults.append(Fault(place, code, message))

    _check_title(raw.title, report)
    if raw.id is None:
        report(raw.title.place, "no-id", 'the item has no id; write "## Title {#permanent-id}"')
    elif not SLUG.fullmatch(raw.id.text):
        report(
            raw.id.place, "bad-id", f'"{raw.id.text}" must be lower-case words joined by hyphens, like ex-2-1'
        )
    block: Mapping | None = None
    if raw.block is not None:
        block, more = read(raw.block.text, raw.block.path, raw.block.line)
        faults += more
        if block is None:
            return None, faults
    if block is None:
        block = Mapping((), raw.title.place)
    blocks.keys(block, BLOCK, kind, report)
    item = Item(
        kind=kind,
        id=raw.id.text if raw.id else "",
        title=raw.title.text,
        place=raw.title.place,
        sections=tuple(_sections(raw, kind, report)),
        topics=blocks.slugs(block.get("topics"), report),
        see=blocks.words_of(block.get("see"), report),
        errata=blocks.slugs(block.get("errata"), report),
        aliases=blocks.slugs(block.get("aliases"), report),
        embed=blocks.word(block.get("embed"), report),
        verdict=_verdict(blocks.word(block.get("verdict"), report), report),
        given=blocks.given(block.get("given"), report),
        values=blocks.values(block.get("values"), report),
        checks=blocks.checks(block.get("checks"), kind, report),
        answer=blocks.answer(block.get("answer"), kind, report),
        figure=blocks.figure(block.get("figure"), report),
    )
    # A name is looked up only where the block itself could be read; else each use of a lost name would be a fault.
    return item, faults or check_names(item, _name_places(block))


def _name_places(block: Mapping) -> dict[str, Place]:
    return {
        name.text: name.place
        for key in ("given", "values")
        if isinstance(entries := block.get(key), Mapping)
        for name, _ in entries.entries
    }


def _verdict(verdict: Word | None, report: blocks.Report) -> Word | None:
    if verdict is not None and verdict.text not in ("true", "false"):
        report(
            verdict.place,
            "bad-verdict",
            f'"{verdict.text}" is not a verdict; write "true" or "false", in quotes',
        )
    return verdict


def _sections(raw: RawItem, kind: str, report: blocks.Report) -> Iterator[Section]:
    if kind == "page":
        yield Section("", raw.body)
        return
    if raw.stray is not None:
        report(
            raw.stray,
            "stray-prose",
            f"prose stands before the first ### heading; put it under {HEADINGS[kind][0].name}",
        )
    expected = HEADINGS[kind]
    order = " > ".join(f"[{h.name}]" if not h.required else h.name for h in expected)
    position, seen = 0, set()
    for section, place in raw.sections:
        index = next((i for i, h in enumerate(expected) if h.name == section.heading), None)
        if index is None:
            report(
                place,
                "unknown-heading",
                f'"{section.heading}" is not a heading of a {kind} item; {did_you_mean(section.heading, [h.name for h in expected])}',
            )
            continue
        if index < position or (section.heading in seen and not expected[index].repeats):
            report(
                place,
                "misplaced-heading",
                f'"{section.heading}" is out of order or repeated; the order is {order}',
            )
            continue
        position = index
        seen.add(section.heading)
        if not section.prose.text:
            report(
                place,
                "empty-section",
                f'nothing stands under "{section.heading}"; write it or delete the heading',
            )
        yield section
    for heading in expected:
        if heading.required and heading.name not in seen:
            report(
                raw.title.place,
                "missing-section",
                f'the heading "### {heading.name}" is missing; the order is {order}',
            )


def _duplicate_ids(known: list[tuple[str, Place]]) -> list[Fault]:
    first: dict[str, Place] = {}
    faults = []
    for id_, place in known:
        if id_ in first:
            faults.append(
                Fault(
                    place,
                    "duplicate-id",
                    f'the id "{id_}" is taken in {first[id_]}; ids are permanent and unique, choose another',
                )
            )
        else:
            first[id_] = place
    return faults
