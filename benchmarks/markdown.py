"""Tables of Markdown for the pages that a benchmark writes."""

import html
import re
from collections.abc import Iterable


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines)


def cell(text: str) -> str:
    """The code in a cell may break between the words of a name: a column is narrower than many a name."""
    return re.sub("`([^`]+)`", lambda code: breakable(code[1]), text.replace("|", "\\|"))


def breakable(code: str) -> str:
    breaks = re.sub(r"[_.(]", r"\g<0><wbr>", html.escape(code))
    return f"<code>{breaks}</code>"
