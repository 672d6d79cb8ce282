"""What stands inside prose: placeholders, links, anchors; and filling the placeholders in."""

import ast
import re
from collections.abc import Mapping
from typing import NamedTuple

from build_tools.model import Expression, Prose, Value
from build_tools.tex import find_math

# {=name} or {==name}; TeX has its own use for {=}.
PLACEHOLDER = re.compile(r"\{(==?)([^{}=\n\\][^{}\n\\]*)\}")
_FIGURE_MARK = re.compile(r"^\{figure\}$", re.MULTILINE)
# In TeX: what takes the next group as its argument, so that the digits must stay together in braces.
_TAKES_GROUP = re.compile(r"(?:[_^}]|\\[A-Za-z]+)\s*$")
# [text](target), where the text may hold an image and the target may carry a title; [label]: target; href="target".
LINK = re.compile(
    r"""(?<!\\)(?P<image>!?)\[(?:[^\[\]\\]|\\.|!\[[^\[\]]*\]\([^()]*\))*\]\(\s*<?(?P<link>[^)\s>]*)>?(?:\s+"[^"]*")?\s*\)
      | ^[ ]{0,3}\[(?!\^)[^\[\]\n]+\]:[ \t]*<?(?P<definition>[^\s>]*)
      | <[a-z][^<>]*?\s(?:href|src)\s*=\s*["'](?P<html>[^"']*)""",
    re.MULTILINE | re.VERBOSE | re.IGNORECASE,
)
_ANCHOR = re.compile(r"^#{1,6} (?P<heading>.*?)\s*\{[^}]*#(?P<id>[A-Za-z0-9_-]+)[^}]*\}\s*$", re.MULTILINE)
_CODE = re.compile(
    r"^( {0,3})(`{3,}|~{3,})[^\n]*\n(?:.*?\n)??\1? {0,3}\2[`~]*[ \t]*$|(?<!`)(`+)(?!`)(?:.|\n(?!\n))+?(?<!`)\3(?!`)",
    re.MULTILINE | re.DOTALL,
)


class Link(NamedTuple):
    target: str
    offset: int  # of the target
    image: bool


class Anchor(NamedTuple):
    id: str
    offset: int  # of the id
    heading: str


class Placeholder(NamedTuple):
    name: str
    equation: bool  # {==name}
    offset: int


def placeholders(prose: Prose) -> list[Placeholder]:
    return [Placeholder(m[2], m[1] == "==", m.start()) for m in PLACEHOLDER.finditer(prose.text)]


def links(prose: Prose) -> list[Link]:
    """Links and images outside code and maths."""
    hidden = code_and_maths(prose.text)
    return [
        Link(m[kind], m.start(kind), bool(m["image"]))
        for m in LINK.finditer(prose.text)
        for kind in ("link", "definition", "html")
        if m[kind] is not None
        if not any(start <= m.start() < end for start, end in hidden)
    ]


def code_and_maths(text: str) -> list[tuple[int, int]]:
    """Where code and maths stand, in which nothing else has a meaning."""
    return [m.span() for m in _CODE.finditer(text)] + [(span.start, span.end) for span in find_math(text)]


def figure_marks(text: str) -> list[int]:
    """Offsets of the lines {figure}, outside code."""
    return [m.start() for m in _FIGURE_MARK.finditer(without_code(text))]


def place_figure(text: str, figure: str) -> str:
    """The text with the figure where its line {figure} stands; as it is if it has none."""
    for start in figure_marks(text):
        return text[:start] + figure + text[start + len("{figure}") :]
    return text


def anchors(prose: Prose) -> list[Anchor]:
    """Headings inside running prose that carry an id."""
    return [Anchor(m["id"], m.start("id"), m["heading"]) for m in _ANCHOR.finditer(without_code(prose.text))]


def inner_blocks(prose: Prose) -> list[int]:
    """Offsets of deeper headings and of /// blocks: an item's sections are shown inside blocks that allow neither."""
    text = without_code(prose.text)
    return [m.start() for m in re.finditer(r"^(?:#{4,6}[ \t]|/{3,})", text, re.MULTILINE)]


def without_code(text: str) -> str:
    """The text with blanks for its code, so that offsets stay true."""
    return _CODE.sub(lambda c: " " * len(c[0]), text)


def without_placeholders(text: str) -> str:
    """The text with each placeholder replaced by a number of the same length, so that offsets stay true."""
    return PLACEHOLDER.sub(
        lambda m: f"{{{'1' * (len(m[0]) - 2)}}}" if _in_group(m) else "1" * len(m[0]),
        text,
    )


def _in_group(match: re.Match) -> bool:
    return _TAKES_GROUP.search(match.string[: match.start()]) is not None


def fill(prose: Prose, printed: Mapping[str, str], values: Mapping[str, Value]) -> str:
    """The prose with its placeholders replaced by digits and equations, in maths as TeX and in text as typography."""
    filled = replacements(prose, printed, values)
    return PLACEHOLDER.sub(lambda match: filled[match.start()], prose.text)


def replacements(prose: Prose, printed: Mapping[str, str], values: Mapping[str, Value]) -> dict[int, str]:
    """What is printed in place of the placeholder at each offset."""
    maths = [(span.start, span.end) for span in find_math(without_placeholders(prose.text))]

    def replace(match: re.Match) -> str:
        tex = any(start <= match.start() < end for start, end in maths)
        name = match[2]
        text = printed[name]
        if match[1] == "==":
            text = f"{_arithmetic(values[name].expression, printed)} = {values[name].printed}"
        if tex:
            text = _POWER_OF_TEN.sub(r" \\times 10^{\1}", text.replace("*", r"\times"))
            return f"{{{text}}}" if _in_group(match) else text
        return typeset(re.sub(r"\^\{([^{}]*)\}", r"<sup>\1</sup>", text.replace("*", "×")))

    return {match.start(): replace(match) for match in PLACEHOLDER.finditer(prose.text)}


# 1e-9 in a formula would read as 1 times e, minus 9.
_POWER_OF_TEN = re.compile(r"(?<=[\d.])[eE]\+?(-?\d+)")


def typeset(text: str) -> str:
    """Digits for running text: a true minus sign in place of the hyphen, but none in an exponent."""
    return re.sub(r"(?<![eE])-", "\N{MINUS SIGN}", text)


_PRECEDENCE = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.Div: 2}
_SIGN = {ast.Add: " + ", ast.Sub: " - ", ast.Mult: " * ", ast.Div: " / "}


def _arithmetic(expression: Expression, printed: Mapping[str, str]) -> str:
    """Plain arithmetic with the printed digits in place of names, and numbers as they were typed."""

    def write(tree: ast.expr, context: int) -> str:
        """`context` is how tightly the surroundings bind."""
        match tree:
            case ast.Name() | ast.Constant():
                typed = expression.text[tree.col_offset : tree.end_col_offset]
                digits = printed[tree.id] if isinstance(tree, ast.Name) else typed
                signed, product = digits.startswith(("-", "+")), "e" in digits.lower()
                return _bracket(digits, context > 0 and signed or context > 2 and product)
            case ast.UnaryOp(op=op, operand=operand):
                sign = "-" if isinstance(op, ast.USub) else "+"
                return _bracket(sign + write(operand, 3), context > 0)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return _bracket(f"{write(left, 5)}^{{{write(right, 0)}}}", context > 4)
            case ast.BinOp(left=left, op=op, right=right):
                rank = _PRECEDENCE[type(op)]
                # A first term may carry its sign without brackets: -3 + 1, but 1 + (-3).
                first = write(left, rank if rank > 1 or context else 0)
                return _bracket(f"{first}{_SIGN[type(op)]}{write(right, rank + 1)}", rank < context)
        raise ValueError(f"not plain arithmetic: {ast.unparse(tree)}")

    return write(expression.tree, 0)


def _bracket(text: str, needed: bool) -> str:
    return f"({text})" if needed else text


def values_by_name(values: tuple[Value, ...]) -> dict[str, Value]:
    return {value.name: value for value in values}


def expressions_by_name(values: tuple[Value, ...]) -> dict[str, Expression]:
    return {value.name: value.expression for value in values}
