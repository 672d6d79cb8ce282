"""Abbreviations: the first use in each item becomes a link to the place that says what it stands for."""

import re
from collections.abc import Iterator

from build_tools.atlas import Atlas, relative
from build_tools.prose import LINK, code_and_maths

# Where no link may begin: links, HTML tags, what is quoted (titles of papers), footnotes' names, and headings, which
# tables of contents repeat.
_CLOSED = (
    LINK,
    re.compile(r"<[^<>]*>"),
    re.compile(r'"[^"\n]*"|“[^”\n]*”'),
    re.compile(r"^#{1,6}\s.*$", re.MULTILINE),
    re.compile(r"\[\^[^\]]*\]:?"),
)


def explain(text: str, uri: str, atlas: Atlas, seen: set[str]) -> str:
    """The Markdown on the page `uri`, with a link at the first use of each abbreviation not yet in `seen`."""
    parts, end = [], 0
    for match in _uses(text, atlas, seen):
        short = match[0]
        meaning, id_ = atlas.abbreviations[short]
        target = f"{relative(uri, atlas.homes[id_].uri)}#{id_}"
        # The title shows when the link is pointed at or reached by keyboard; following it works everywhere.
        parts += [text[end : match.start()], f'[{short}]({target} "{meaning}"){{ .abbreviation }}']
        end = match.end()
    return "".join([*parts, text[end:]])


def _uses(text: str, atlas: Atlas, seen: set[str]) -> Iterator[re.Match]:
    shorts = [re.escape(short) for short in atlas.abbreviations if short not in seen]
    found = list(re.finditer(rf"\b(?:{'|'.join(shorts)})\b", text)) if shorts else []
    if not found:
        return
    closed = code_and_maths(text) + [m.span() for pattern in _CLOSED for m in pattern.finditer(text)]
    for match in found:
        if match[0] not in seen and not any(start <= match.start() < end for start, end in closed):
            seen.add(match[0])
            yield match
