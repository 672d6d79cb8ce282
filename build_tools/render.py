"""render: Drawn -> Page. Strings in, strings out: ordinary Markdown with raw HTML where Markdown has no word for it."""

import html
import posixpath
from collections.abc import Mapping

from build_tools.digits import shown
from build_tools.errors import Fault
from build_tools.model import Bank, Document, Drawn, Item, Page, Word, Worked
from build_tools.prose import fill, typeset, values_by_name
from build_tools.snippet import snippet

# What a reader opens. Answers stay out of the search index; whatever is in it opens on a hit.
_SPOILER = {"data-search-exclude": ""}


def render(
    bank: Bank, drawn: Mapping[str, Drawn], references: Mapping[str, str], faults: tuple[Fault, ...] = ()
) -> list[Page]:
    """One page for each document; `faults` are shown on the pages they concern (while an author previews)."""
    homes = {item.id: document for document in bank.documents for item in document.items}
    book = _Book(drawn, homes, references)
    return [
        book.page(document, [f for f in faults if f.place.path == document.path])
        for document in bank.documents
    ]


class _Book:
    """What a page must know of the others: where each item lives, and where functions are documented."""

    def __init__(
        self, drawn: Mapping[str, Drawn], homes: Mapping[str, Document], references: Mapping[str, str]
    ):
        self.drawn = drawn
        self.homes = homes
        self.references = references

    def page(self, document: Document, faults: list[Fault]) -> Page:
        front = f"---\ntitle: {_quoted(document.title)}\nsource: {_quoted(document.path)}\n---\n"
        parts = [front, f"# {document.title}"]
        parts += [_notice(faults)] if faults else []
        parts += [document.intro.text] if document.intro.text else []
        for item in document.items:
            if item.id in self.drawn:
                parts.append(self.item(self.drawn[item.id], document.uri, document.level))
        return Page(document.uri, document.path, "\n\n".join(parts) + "\n")

    def item(self, drawn: Drawn, uri: str, level: int | None, embedded: bool = False) -> str:
        """The item as Markdown. Where it is embedded its heading is a link home, and its ids stay at home."""
        item = drawn.worked.item
        ids = _Ids(item.id, embedded)
        heading = f"## {item.title} {{ #{item.id} }}"
        if embedded:
            heading = f'<p class="item-title" markdown="span">[{item.title}]({self.link(uri, item.id)})</p>'
        parts = [heading, *(f'<a id="{alias.text}"></a>' for alias in item.aliases if not embedded)]
        parts += [facts] if (facts := _facts(item, level)) else []
        return "\n\n".join([*parts, *self.body(drawn, uri, ids)])

    def body(self, drawn: Drawn, uri: str, ids: "_Ids") -> list[str]:
        item = drawn.worked.item
        texts: dict[str, list[str]] = {}
        for section in item.sections:
            text = fill(section.prose, _printed(item), values_by_name(item.values))
            texts.setdefault(section.heading, []).append(self.rebase(text, item, uri))
        one = {heading: "\n\n".join(found) for heading, found in texts.items()}
        hints = [
            _details(f"Hint {n}" if len(texts["Hint"]) > 1 else "Hint", hint, "hint", ids.part(f"hint-{n}"))
            for n, hint in enumerate(texts.get("Hint", []), 1)
        ]
        figure = _figure(drawn)
        trap = (
            [_div("trap", f'<p class="trap-title">Trap</p>\n\n{one["Trap"]}', ids.part("trap"))]
            if "Trap" in one
            else []
        )
        proof = self.proof(drawn.worked, uri, ids)

        def solution(summary: str, *parts: str) -> str:
            inside = "\n\n".join(filter(None, [*parts, figure, *trap]))
            return _details(summary, inside, "solution", ids.part("solution"), _SPOILER)

        match item.kind:
            case "exercise":
                return [one["Question"], *hints, solution("Solution", one["Solution"], _answer(item)), *proof]
            case "why" | "edge-case":
                return [one["Question"], *hints, solution("Answer", one["Answer"]), *proof]
            case "true-false":
                verdict = f'<p class="verdict"><strong>{item.verdict.text.capitalize()}.</strong></p>'
                ask = '<p class="ask">True or false? Say why before you look.</p>'
                return [
                    _claim(one["Claim"]),
                    ask,
                    solution("Verdict and reason", verdict, one["Why"]),
                    *proof,
                ]
            case "spot-the-error":
                ask = '<p class="ask">What is wrong with it?</p>'
                parts = ("**The error.** " + one["Error"], "**Put right.** " + one["Correction"])
                return [_claim(one["Claim"]), ask, solution("The error, and the correction", *parts), *proof]
            case "recall":
                return [one["Front"], solution("Answer", one["Back"]), *proof]
            case "erratum":
                users = [
                    i
                    for i in self.homes
                    if self.homes[i].kind != "erratum" and _leans(self.drawn, i, item.id)
                ]
                links = ", ".join(f"[{self.drawn[i].worked.item.title}]({self.link(uri, i)})" for i in users)
                corrected = (
                    [f'<p class="item-see" markdown="span">Corrected in: {links}</p>'] if links else []
                )
                parts = ["**Claimed.** " + one["Claim"], "**True.** " + one["Correction"]]
                return [*parts, *([figure] if figure else []), *corrected, *proof]
        embedded = [_div("live-item", self.embedded(item.embed, uri), None)] if item.embed else []
        return [*filter(None, [one[""]]), *([figure] if figure else []), *embedded, *proof]

    def embedded(self, word: Word, uri: str) -> str:
        drawn = self.drawn.get(word.text)
        return self.item(drawn, uri, self.homes[word.text].level, embedded=True) if drawn else ""

    def proof(self, worked: Worked, uri: str, ids: "_Ids") -> list[str]:
        """What was computed and why it can be believed; then where it is explained, and what was corrected."""
        item = worked.item
        parts = []
        if code := snippet(item, worked.outcome):
            calls = ", ".join(self.api(name, uri, f.module) for name, f in worked.outcome.functions.items())
            text = f"```python\n{code}\n```" + (f"\n\nFunctions: {calls}." if calls else "")
            parts.append(
                _details("Show the computation", text, "computation", ids.part("computation"), _SPOILER)
            )
        if item.checks:
            parts.append(
                _details("Why we can be sure", _evidence(worked), "evidence", ids.part("evidence"), _SPOILER)
            )
        if item.see:
            parts.append(
                f'<p class="item-see" markdown="span">Explained in: {", ".join(self.see(word, uri) for word in item.see)}</p>'
            )
        if item.errata:
            links = ", ".join(
                f"[{self.drawn[w.text].worked.item.title}]({self.link(uri, w.text)})"
                for w in item.errata
                if w.text in self.drawn
            )
            parts.append(f'<p class="item-errata" markdown="span">Corrected here: {links}</p>')
        return parts

    def api(self, name: str, uri: str, module: str) -> str:
        return f"[`{name}`]({_relative(uri, self.references[module])}#{module}.{name})"

    def see(self, word: Word, uri: str) -> str:
        path, _, anchor = word.text.partition("#")
        title = self.drawn[anchor].worked.item.title if anchor in self.drawn else path
        if not anchor:
            title = next((d.title for d in self.homes.values() if d.uri == path), path)
        return f"[{title}]({_relative(uri, path)}{'#' + anchor if anchor else ''})"

    def link(self, uri: str, id_: str) -> str:
        home = self.homes[id_].uri
        return f"#{id_}" if home == uri else f"{_relative(uri, home)}#{id_}"

    def rebase(self, text: str, item: Item, uri: str) -> str:
        """Links as seen from the page that shows the item, which may be another one."""
        home = self.homes[item.id].uri
        if home == uri:
            return text
        from build_tools.model import Prose
        from build_tools.prose import links

        for link in reversed(links(Prose(text, "", 1))):
            if "://" in link.target or link.target.startswith("mailto:"):
                continue
            path, _, anchor = link.target.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(home), path)) if path else home
            moved = _relative(uri, target) + (f"#{anchor}" if anchor else "")
            text = text[: link.offset] + moved + text[link.offset + len(link.target) :]
        return text


class _Ids:
    """Ids of the parts of an item; none where the item is only embedded, so that each id stands once."""

    def __init__(self, item: str, embedded: bool):
        self.item = item
        self.embedded = embedded

    def part(self, name: str) -> str | None:
        return None if self.embedded else f"{self.item}-{name}"


def _leans(drawn: Mapping[str, Drawn], id_: str, erratum: str) -> bool:
    return id_ in drawn and any(word.text == erratum for word in drawn[id_].worked.item.errata)


def _printed(item: Item) -> dict[str, str]:
    return {g.name: g.printed for g in item.given} | {v.name: v.printed for v in item.values}


def _facts(item: Item, level: int | None) -> str:
    kind = {"true-false": "True or false", "spot-the-error": "Spot the error", "edge-case": "Edge case"}.get(
        item.kind, item.kind.capitalize()
    )
    if item.kind in ("page", "erratum"):
        return ""
    topics = " ".join(f'<span class="topic">{topic.text.replace("-", " ")}</span>' for topic in item.topics)
    return f'<p class="item-facts">{kind}{f" · Level {level}" if level else ""} · {topics}</p>'


def _claim(text: str) -> str:
    return '<blockquote class="claim" markdown="block">\n\n' + text + "\n\n</blockquote>"


def _answer(item: Item) -> str:
    if item.answer is None:
        return ""
    value = values_by_name(item.values)[item.answer.value.text]
    return f'<p class="answer">Answer: <strong>{typeset(value.printed)}</strong></p>'


def _figure(drawn: Drawn) -> str:
    if not drawn.panels:
        return ""
    return f'<figure class="figure" data-search-exclude><div class="panels">{"".join(drawn.panels)}</div></figure>'


def _evidence(worked: Worked) -> str:
    rows = []
    for check, outcome in zip(worked.item.checks, worked.outcome.checks, strict=True):
        if check.instead:
            change = f"<code>{html.escape(check.instead.text)}</code>"
        else:
            changes = ", ".join(f"{name} = {shown(number)}" for name, number in outcome.changes.items())
            change = f"with <code>{html.escape(changes)}</code>"
        rows.append(
            "<li>"
            f'<p class="check-claim">{html.escape(check.claim.text)}.</p>'
            f'<p class="check-call"><code>{html.escape(check.holds.text)}</code></p>'
            f'<p class="check-result holds"><strong>Holds:</strong> {html.escape(outcome.result.text)}</p>'
            f'<p class="check-result fails"><strong>Fails, as it must,</strong> {change}: {html.escape(outcome.counter.text)}</p>'
            "</li>"
        )
    return (
        "<p>Each claim was executed when this page was built; a change of the inputs that must break it was executed as well.</p>\n\n"
        f'<ul class="checks">{"".join(rows)}</ul>'
    )


def _details(summary: str, text: str, type_: str, id_: str | None, attributes: Mapping[str, str] = {}) -> str:  # noqa: B006
    pairs = ({"id": id_} if id_ else {}) | dict(attributes)
    attrs = (
        f"    attrs: {{{', '.join(f'{key}: {_quoted(value)}' for key, value in pairs.items())}}}\n"
        if pairs
        else ""
    )
    return f"/// details | {summary}\n    type: {type_}\n{attrs}\n{text}\n///"


def _div(class_: str, text: str, id_: str | None) -> str:
    return f'<div class="{class_}"{f" id={chr(34)}{id_}{chr(34)}" if id_ else ""} markdown="block">\n\n{text}\n\n</div>'


def _notice(faults: list[Fault]) -> str:
    lines = "\n".join(f"<li><code>{html.escape(str(fault))}</code></li>" for fault in faults)
    return f'<div class="admonition danger"><p class="admonition-title">This page has faults</p><ul>\n{lines}\n</ul></div>'


def _relative(uri: str, target: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(uri) or ".")


def _quoted(text: str) -> str:
    """YAML in single quotes, where nothing but the quote itself needs care."""
    return "'" + text.replace("'", "''") + "'"
