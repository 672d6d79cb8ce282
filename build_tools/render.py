"""render: Drawn -> Page. Strings in, strings out: ordinary Markdown with raw HTML where Markdown has no word for it."""

import html
import re
from collections.abc import Mapping

from build_tools import listing, markup
from build_tools.abbreviations import explain
from build_tools.atlas import Atlas, chart, topic_slug
from build_tools.digits import shown
from build_tools.errors import Fault
from build_tools.model import Bank, Document, Drawn, Item, Page, Worked
from build_tools.prose import fill, place_figure, typeset, values_by_name
from build_tools.snippet import snippet


def render(
    bank: Bank,
    drawn: Mapping[str, Drawn],
    references: Mapping[str, str],
    report: str | None = None,
    faults: tuple[Fault, ...] = (),
) -> list[Page]:
    """One page for each document; `faults` are shown on the pages they concern, to an author who previews."""
    atlas = chart(bank, references, report)
    by_path: dict[str, list[Fault]] = {}
    for fault in faults:
        by_path.setdefault(fault.place.path, []).append(fault)
    pages = [_page(document, by_path.pop(document.path, []), atlas, drawn) for document in bank.documents]
    # What is left concerns files that could not be read as documents at all.
    return pages + [_unreadable(path, found) for path, found in by_path.items() if path.endswith(".md")]


def _page(document: Document, faults: list[Fault], atlas: Atlas, drawn: Mapping[str, Drawn]) -> Page:
    # A running page is read from its top and explains an abbreviation once; items are read one by one.
    seen: set[str] = set()
    parts = [markup.front_matter(document.title, document.path), f"# {document.title}"]
    parts += [markup.notice(faults)] if faults else []
    parts += [explain(document.intro.text, document.uri, atlas, seen)] if document.intro.text else []
    if document.kind == "topic":
        parts += [listing.topic(topic_slug(document.uri), document.uri, atlas)]
    if document.kind == "index":
        parts += listing.index(document.uri, atlas)
    for item in document.items:
        if item.id in drawn:
            known = seen if item.kind == "page" else set()
            parts.append(_item(drawn[item.id], document.uri, atlas, drawn, known))
    return Page(document.uri, document.path, "\n\n".join(parts) + "\n")


def _unreadable(path: str, faults: list[Fault]) -> Page:
    parts = [markup.front_matter(path, path), f"# {path}", markup.notice(faults)]
    return Page(path.removeprefix("content/"), path, "\n\n".join(parts) + "\n")


def _item(each: Drawn, uri: str, atlas: Atlas, drawn: Mapping[str, Drawn], seen: set[str]) -> str:
    item = each.worked.item
    parts = [f"## {item.title} {{ #{item.id} }}", *(f'<a id="{alias.text}"></a>' for alias in item.aliases)]
    embedded = drawn.get(item.embed.text) if item.embed else None
    shown_here = markup.div("live-item", _embedded(embedded, uri, atlas)) if embedded else ""
    return "\n\n".join(filter(None, [*parts, *_body(each, uri, atlas, item.id, seen, shown_here)]))


def _embedded(each: Drawn, uri: str, atlas: Atlas) -> str:
    """The item on a page that is not its home: its title leads home, and its ids stay there."""
    title = markup.line("item-title", atlas.to_item(uri, each.worked.item.id))
    return "\n\n".join(filter(None, [title, *_body(each, uri, atlas, None, set())]))


def _body(
    each: Drawn, uri: str, atlas: Atlas, id_: str | None, seen: set[str], embedded: str = ""
) -> list[str]:
    item = each.worked.item
    texts = _texts(item, uri, atlas, seen)
    return [
        _facts(item, uri, atlas),
        _question(each, texts),
        embedded,
        *_answers(each, texts, id_),
        *_proof(each.worked, uri, atlas, id_),
    ]


_ASKS = {"true-false": "True or false? Say why before you look.", "spot-the-error": "What is wrong with it?"}


def _facts(item: Item, uri: str, atlas: Atlas) -> str:
    if item.kind in ("page", "erratum"):
        return ""
    topics = " ".join(
        f'<span class="topic">{atlas.to_topic(uri, topic.text)}</span>' for topic in item.topics
    )
    return markup.line("item-facts", f"{listing.sort_of(item, atlas)} · {topics}")


def _texts(item: Item, uri: str, atlas: Atlas, seen: set[str]) -> dict[str, list[str]]:
    """The filled prose under each heading; abbreviations in `seen` were explained before."""
    printed = {g.name: g.printed for g in item.given} | {v.name: v.printed for v in item.values}
    values = values_by_name(item.values)
    texts: dict[str, list[str]] = {}
    # What an entry of the glossary is about needs no link to itself.
    seen.update(short.text for short, _ in item.abbreviations)
    for section in item.sections:
        text = atlas.rebased(fill(section.prose, printed, values), item.id, uri)
        texts.setdefault(section.heading, []).append(explain(text, uri, atlas, seen))
    return texts


def _question(each: Drawn, texts: Mapping[str, list[str]]) -> str:
    """What stands in the open."""
    item = each.worked.item
    match item.kind:
        case "page":
            return place_figure(texts[""][0], markup.figure(each.panels))
        case "erratum":
            return f"**Claimed.** {texts['Claim'][0]}\n\n**True.** {texts['Correction'][0]}"
        case "true-false" | "spot-the-error":
            return f'{markup.claim(texts["Claim"][0])}\n\n<p class="ask">{_ASKS[item.kind]}</p>'
        case "recall":
            return texts["Front"][0]
    return texts["Question"][0]


def _answers(each: Drawn, texts: Mapping[str, list[str]], id_: str | None) -> list[str]:
    """What a reader opens one by one: the hints, then the solution with its figure and its trap."""
    item = each.worked.item
    figure = [markup.figure(each.panels)] if each.panels else []

    def part(name: str) -> str | None:
        return f"{id_}-{name}" if id_ else None

    def solution(summary: str, *inside: str) -> str:
        trap = [f'<p class="trap-title">Trap</p>\n\n{text}' for text in texts.get("Trap", [])]
        traps = [markup.div("trap", text, part("trap")) for text in trap]
        return markup.details(summary, "\n\n".join([*inside, *figure, *traps]), "solution", part("solution"))

    found = texts.get("Hint", [])
    hints = [
        markup.details(
            f"Hint {n}" if len(found) > 1 else "Hint", hint, "hint", part(f"hint-{n}"), spoiler=False
        )
        for n, hint in enumerate(found, 1)
    ]
    match item.kind:
        case "exercise":
            return [*hints, solution("Solution", texts["Solution"][0], *_answer(item))]
        case "why" | "edge-case":
            return [*hints, solution("Answer", texts["Answer"][0])]
        case "true-false":
            verdict = f'<p class="verdict"><strong>{item.verdict.text.capitalize()}.</strong></p>'
            return [solution("Verdict and reason", verdict, texts["Why"][0])]
        case "spot-the-error":
            error = f"**The error.** {texts['Error'][0]}"
            return [
                solution("The error, and the correction", error, f"**Put right.** {texts['Correction'][0]}")
            ]
        case "recall":
            return [solution("Answer", texts["Back"][0])]
        case "erratum":
            return figure
    return []


def _answer(item: Item) -> list[str]:
    if item.answer is None:
        return []
    value = values_by_name(item.values)[item.answer.value.text]
    return [f'<p class="answer">Answer: <strong>{typeset(value.printed)}</strong></p>']


def _proof(worked: Worked, uri: str, atlas: Atlas, id_: str | None) -> list[str]:
    """What was computed and why it can be believed; then where it is explained, and what was corrected."""
    item = worked.item
    parts = []
    if code := snippet(item, worked.outcome):
        calls = ", ".join(
            atlas.to_function(uri, f.module, name) for name, f in worked.outcome.functions.items()
        )
        text = f"```python\n{code}\n```" + (f"\n\nFunctions: {calls}." if calls else "")
        parts.append(
            markup.details("Show the computation", text, "computation", id_ and f"{id_}-computation")
        )
    if item.checks:
        parts.append(
            markup.details("Why we can be sure", _evidence(worked), "evidence", id_ and f"{id_}-evidence")
        )
    if item.see:
        links = ", ".join(atlas.to_see(uri, word) for word in item.see)
        parts.append(markup.line("item-see", f"Explained in: {links}"))
    if errata := atlas.to_items(uri, [word.text for word in item.errata]):
        parts.append(markup.line("item-errata", f"Corrects an earlier claim: {errata}"))
    if corrected := atlas.to_items(uri, atlas.corrected.get(item.id, [])):
        parts.append(markup.line("item-see", f"Corrected in: {corrected}"))
    if atlas.report and id_ and item.kind not in ("page", "erratum"):
        parts.append(markup.line("item-report", f"[Report this item]({atlas.report.replace('{id}', id_)})"))
    return parts


_EXECUTED = (
    "<p>Each claim was executed when this page was built; "
    "so was a change of the inputs that must break it.</p>"
)


def _breakable(code: str) -> str:
    """Code that may break after a bracket or an underscore, and so not inside a word or a number on a phone."""
    code = re.sub(r"[(\[_]", r"\g<0><wbr>", html.escape(code))
    return _whole_numbers(code)


def _whole_numbers(text: str) -> str:
    """The text with its small numbers kept on one line: browsers break after the hyphen of 1e-12."""
    return re.sub(r"\b\d[\d.]*e-\d+", r'<span class="nobreak">\g<0></span>', text)


def _evidence(worked: Worked) -> str:
    rows = []
    for check, outcome in zip(worked.item.checks, worked.outcome.checks, strict=True):
        change = f"<code>{_breakable(check.instead.text)}</code>" if check.instead else ""
        if outcome.changes:
            changes = ", ".join(f"{name} = {shown(number)}" for name, number in outcome.changes.items())
            change = f"with <code>{html.escape(changes)}</code>"
        rows.append(
            "<li>"
            f'<p class="check-claim">{html.escape(check.claim.text)}.</p>'
            f'<p class="check-call"><code>{_breakable(check.holds.text)}</code></p>'
            f'<p class="check-result holds"><strong>Holds:</strong> {_whole_numbers(html.escape(outcome.result.text))}</p>'
            '<p class="check-result fails"><strong>Fails, as it must,</strong> '
            f"{change}: {_whole_numbers(html.escape(outcome.counter.text))}</p>"
            "</li>"
        )
    return f'{_EXECUTED}\n\n<ul class="checks">{"".join(rows)}</ul>'
