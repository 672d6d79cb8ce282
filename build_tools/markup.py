"""Pieces of Markdown and HTML. Strings in, strings out."""

import html
from collections.abc import Iterable

from build_tools.errors import Fault


def quoted(text: str) -> str:
    """YAML in single quotes, where nothing but the quote itself needs care."""
    return "'" + text.replace("'", "''") + "'"


def front_matter(title: str, source: str) -> str:
    return f"---\ntitle: {quoted(title)}\nsource: {quoted(source)}\n---"


def details(summary: str, text: str, type_: str, id_: str | None, *, spoiler: bool = True) -> str:
    """A block that a reader opens. Spoilers stay out of the search index; whatever is in it opens on a hit."""
    attributes = [f"id: {quoted(id_)}"] if id_ else []
    attributes += ["data-search-exclude: ''"] if spoiler else []
    attrs = f"    attrs: {{{', '.join(attributes)}}}\n" if attributes else ""
    return f"/// details | {summary}\n    type: {type_}\n{attrs}\n{text}\n///"


def div(class_: str, text: str, id_: str | None = None) -> str:
    identity = f' id="{id_}"' if id_ else ""
    return f'<div class="{class_}"{identity} markdown="block">\n\n{text}\n\n</div>'


def claim(text: str) -> str:
    return f'<blockquote class="claim" markdown="block">\n\n{text}\n\n</blockquote>'


def line(class_: str, text: str) -> str:
    """A paragraph of its own class, with Markdown inside."""
    return f'<p class="{class_}" markdown="span">{text}</p>'


def figure(panels: Iterable[str]) -> str:
    return f'<figure class="figure" data-search-exclude><div class="panels">{"".join(panels)}</div></figure>'


def notice(faults: Iterable[Fault]) -> str:
    """Shown to an author who previews a page that has faults."""
    rows = "\n".join(f"<li><code>{html.escape(str(fault))}</code></li>" for fault in faults)
    return (
        '<div class="admonition danger"><p class="admonition-title">This page has faults</p>'
        f"<ul>\n{rows}\n</ul></div>"
    )
