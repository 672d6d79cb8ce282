"""What stands inside prose: placeholders, links, anchors; and filling the placeholders in."""

import ast
import re
from collections.abc import Mapping
from typing import NamedTuple

from build_tools.model import Expression, Prose, Value
from build_tools.tex import find_math

PLACEHOLDER = re.compile(r"\{(==?)([^{}\n]*)\}")
# [text](target), not preceded by ! or a backslash; the target may carry a title.
_LINK = re.compile(r"(?<![\\])(!?)\[(?:[^\[\]\\]|\\.)*\]\(\s*<?([^)\s>]*)>?(?:\s+\"[^\"]*\")?\s*\)")
_ANCHOR = re.compile(r"^#{1,6} .*\{[^}]*#([A-Za-z0-9_-]+)[^}]*\}\s*$", re.MULTILINE)
_CODE = re.compile(
    r"^( {0,3})(`{3,}|~{3,})[^\n]*\n(?:.*?\n)??\1? {0,3}\2[`~]*[ \t]*$|(?<!`)(`+)(?!`)(?:.|\n(?!\n))+?(?<!`)\3(?!`)",
    re.MULTILINE | re.DOTALL,
)


class Link(NamedTuple):
    target: str
    offset: int  # of the target
    image: bool


class Placeholder(NamedTuple):
    name: str
    equation: bool  # {==name}
    offset: int


def placeholders(prose: Prose) -> list[Placeholder]:
    return [Placeholder(m[2], m[1] == "==", m.start()) for m in PLACEHOLDER.finditer(prose.text)]


def links(prose: Prose) -> list[Link]:
    """Links and images outside code and maths."""
    hidden = [(m.start(), m.end()) for m in _CODE.finditer(prose.text)]
    hidden += [(span.start, span.end) for span in find_math(prose.text)]
    return [
        Link(m[2], m.start(2), bool(m[1]))
        for m in _LINK.finditer(prose.text)
        if not any(start <= m.start() < end for start, end in hidden)
    ]


def anchors(prose: Prose) -> list[tuple[str, int]]:
    """Ids that headings inside running prose carry, with their offsets."""
    return [(m[1], m.start(1)) for m in _ANCHOR.finditer(_CODE.sub(lambda c: " " * len(c[0]), prose.text))]


def without_placeholders(text: str) -> str:
    """The text with each placeholder replaced by a number of the same length, so that offsets stay true."""
    return PLACEHOLDER.sub(lambda m: "1" * len(m[0]), text)


def fill(prose: Prose, printed: Mapping[str, str], values: Mapping[str, Value]) -> str:
    """The prose with its placeholders replaced by digits and equations, in maths as TeX and in text as typography."""
    maths = [(span.start, span.end) for span in find_math(without_placeholders(prose.text))]

    def replace(match: re.Match) -> str:
        tex = any(start <= match.start() < end for start, end in maths)
        name = match[2]
        if match[1] == "=":
            return printed[name] if tex else typeset(printed[name])
        value = values[name]
        equation = f"{_arithmetic(value.expression.tree, printed, 0)} = {value.printed}"
        if tex:
            return equation.replace("*", r"\times")
        return typeset(re.sub(r"\^\{([^{}]*)\}", r"<sup>\1</sup>", equation.replace("*", "×")))

    return PLACEHOLDER.sub(replace, prose.text)


def typeset(text: str) -> str:
    """Digits for running text: a true minus sign in place of the hyphen, but none in an exponent."""
    return re.sub(r"(?<![eE])-", "\N{MINUS SIGN}", text)


_PRECEDENCE = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.Div: 2, ast.Pow: 4}
_SIGN = {ast.Add: " + ", ast.Sub: " - ", ast.Mult: " * ", ast.Div: " / ", ast.Pow: "^"}


def _arithmetic(tree: ast.expr, printed: Mapping[str, str], context: int) -> str:
    """Plain arithmetic with the printed digits in place of names; `context` is how tightly the surroundings bind."""
    match tree:
        case ast.Name(id=name):
            return _bracket(printed[name], context > 0 and printed[name].startswith("-"))
        case ast.Constant():
            return ast.unparse(tree)
        case ast.UnaryOp(op=op, operand=operand):
            sign = "-" if isinstance(op, ast.USub) else "+"
            return _bracket(sign + _arithmetic(operand, printed, 3), context > 0)
        case ast.BinOp(left=left, op=op, right=right):
            rank = _PRECEDENCE[type(op)]
            # A first term may carry its sign without brackets: -3 + 1, but 1 + (-3).
            first = _arithmetic(left, printed, rank if rank > 1 or context else 0)
            if isinstance(op, ast.Pow):
                first = _arithmetic(left, printed, 5)
                return _bracket(f"{first}^{{{_arithmetic(right, printed, 0)}}}", rank < context)
            second = _arithmetic(right, printed, rank + 1)
            return _bracket(f"{first}{_SIGN[type(op)]}{second}", rank < context)
    raise ValueError(f"not plain arithmetic: {ast.unparse(tree)}")


def _bracket(text: str, needed: bool) -> str:
    return f"({text})" if needed else text


def values_by_name(values: tuple[Value, ...]) -> dict[str, Value]:
    return {value.name: value for value in values}


def expressions_by_name(values: tuple[Value, ...]) -> dict[str, Expression]:
    return {value.name: value.expression for value in values}
