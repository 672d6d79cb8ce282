"""RawItem -> Item: the fields of the block, the sections of the kind, and the faults of both."""

from collections.abc import Iterator

from build_tools import blocks
from build_tools.errors import Fault, Place, did_you_mean
from build_tools.model import Item, Section, Word
from build_tools.names import check_names
from build_tools.prose import figure_marks, inner_blocks
from build_tools.schema import BLOCK, HEADINGS
from build_tools.source import SLUG, RawItem
from build_tools.tex_check import check_tex
from build_tools.yaml_text import Mapping, read


def check_title(title: Word, report: blocks.Report) -> None:
    if not title.text.strip():
        report(title.place, "no-title", "the title is empty; write a few words")
    blocks.plain_text(title, "a title", report)


def read_item(raw: RawItem, kind: str) -> tuple[Item | None, list[Fault]]:
    """The item, as far as it could be read, and all that is wrong with it."""
    faults: list[Fault] = []

    def report(place: Place, code: str, message: str) -> None:
        faults.append(Fault(place, code, message))

    if not raw.closed:
        return None, faults
    check_title(raw.title, report)
    if raw.id is None:
        report(raw.title.place, "no-id", 'the item has no id; write "## Title {#permanent-id}"')
    elif not SLUG.fullmatch(raw.id.text):
        report(
            raw.id.place, "bad-id", f'"{raw.id.text}" must be lower-case words joined by hyphens, like ex-2-1'
        )
    sections = tuple(_sections(raw, kind, report))
    for section in sections:
        faults += check_tex(section.prose)
    block: Mapping | None = Mapping((), raw.title.place)
    if raw.block is not None:
        block, more = read(raw.block.text, raw.block.path, raw.block.line)
        faults += more
        if block is None:
            return None, faults
    blocks.keys(block, BLOCK, kind, report)
    item = Item(
        kind=kind,
        id=raw.id.text if raw.id else "",
        title=raw.title.text,
        place=raw.title.place,
        sections=sections,
        topics=blocks.slugs(block.get("topics"), report),
        see=blocks.words_of(block.get("see"), report),
        errata=blocks.slugs(block.get("errata"), report),
        aliases=blocks.slugs(block.get("aliases"), report),
        embed=blocks.word(block.get("embed"), report),
        abbreviations=blocks.abbreviations(block.get("abbreviations"), report),
        verdict=_verdict(blocks.word(block.get("verdict"), report), report),
        given=blocks.given(block.get("given"), report),
        values=blocks.values(block.get("values"), report),
        checks=blocks.checks(block.get("checks"), kind, report),
        answer=blocks.answer(block.get("answer"), kind, report),
        figure=blocks.figure(block.get("figure"), report),
    )
    if kind == "page" and (raw.block is None or not faults):
        _figure_place(item, report)
    # A name is looked up only where the block itself could be read; else each use of a lost name would be a fault.
    return item, faults or check_names(item, _name_places(block))


def _figure_place(item: Item, report: blocks.Report) -> None:
    """In running prose the author says where the figure stands; items have a place for it."""
    marks = [
        section.prose.place(mark) for section in item.sections for mark in figure_marks(section.prose.text)
    ]
    if item.figure and not marks:
        report(
            item.figure.name.place,
            "figure-place",
            "the figure has no place; write {figure} on a line of its own where it is to stand",
        )
    for place in marks[1:] if item.figure else marks:
        why = "the figure stands above already" if item.figure else "no figure is named in the yaml block"
        report(place, "figure-place", f"{why}; delete this line")


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
        if raw.block is None and not raw.body.text:
            report(
                raw.title.place, "empty-section", "nothing stands under this heading; write it or delete it"
            )
        yield Section("", raw.body)
        return
    if raw.stray is not None:
        report(
            raw.stray,
            "stray-prose",
            f"prose stands before the first ### heading; put it under {HEADINGS[kind][0].name} "
            "(data stands in a ```yaml block directly under the title)",
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
            seen.add(section.heading)
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
        for offset in inner_blocks(section.prose):
            report(
                section.prose.place(offset),
                "heading",
                "a section holds no heading and no /// block of its own; write a line in **bold** instead",
            )
        yield section
    for heading in expected:
        if heading.required and heading.name not in seen:
            report(
                raw.title.place,
                "missing-section",
                f'the heading "### {heading.name}" is missing; the order is {order}',
            )
