"""The tables of the authoring guide, from the schema. `python -m build_tools.guide FILE` renews them in place."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from build_tools.schema import ANSWER, BLOCK, CHECK, FRONT_MATTER, HEADINGS, KINDS, Key

_TABLE = re.compile(r"(<!-- table: ([a-z-]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def keys_table(keys: Iterable[Key]) -> str:
    rows = ["| key | form | where | meaning |", "|---|---|---|---|"]
    for key in keys:
        where = _where(key.kinds) + (", required" if key.required else "")
        rows.append(f"| `{key.name}` | `{key.form}` | {where} | {key.meaning} |")
    return "\n".join(rows) + "\n"


def _where(kinds: tuple[str, ...]) -> str:
    if len(kinds) <= 2:
        return ", ".join(kinds)
    others = [kind for kind in KINDS if kind not in kinds]
    return f"all but {', '.join(others)}" if others else "all"


def headings_table() -> str:
    rows = ["| kind | headings, in this order |", "|---|---|"]
    for kind, headings in HEADINGS.items():
        words = [f"{h.name} ..." if h.repeats else h.name for h in headings]
        rows.append(
            f"| `{kind}` | {', '.join(w if h.required else f'[{w}]' for w, h in zip(words, headings, strict=True))} |"
        )
    return "\n".join(rows) + "\n"


TABLES = {
    "front-matter": keys_table(FRONT_MATTER),
    "block": keys_table(BLOCK),
    "check": keys_table(CHECK),
    "answer": keys_table(ANSWER),
    "headings": headings_table(),
}


def renewed(text: str) -> str:
    """The guide with each table between `<!-- table: name -->` and `<!-- end -->` replaced by today's."""
    return _TABLE.sub(lambda match: match[1] + TABLES[match[2]], text)


if __name__ == "__main__":
    guide = Path(sys.argv[1])
    guide.write_text(renewed(guide.read_text(encoding="utf-8")), encoding="utf-8")
