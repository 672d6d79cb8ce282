r"""Where maths stands in a Markdown text, and what it looks like as MathML.

The content pipeline uses both to report bad TeX at its place; `markdown_math` uses both to render pages.
So what has been checked is what is shown.
"""

import re
from dataclasses import dataclass

import math_core

_CONVERTER = math_core.LatexToMathML(fancy_error=False, annotation=True)
# A function and its argument without brackets; math-core forgets TeX's thin space if the argument is in braces.
_TIGHT = re.compile(r"<mo>&ApplyFunction;</mo>(?!(?:<mrow>)*<mo[^>]*>[(\[{|‖⌊⌈⟨])")


class TexError(ValueError):
    """TeX that cannot be shown. `offset` counts characters from the start of the TeX."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(offset, message)
        self.offset = offset
        self.message = message

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Span:
    """One formula: `text[start:end]` with its dollar signs, and the TeX, which begins at `tex_start`."""

    start: int
    end: int
    tex_start: int
    tex: str
    display: bool


# The alternatives are tried from the left at each place; the first six are text in which `$` means nothing.
_SCANNER = re.compile(
    r"""
      ^[ \t>]*(?P<fence>`{3,}|~{3,})[^`\n]*\n(?:.*\n)*?[ \t>]*(?P=fence)[`~]*[ \t]*$   # fenced code
    | <!--[\s\S]*?-->                                                                 # comment
    | <(?P<raw>pre|code|script|style|svg|math)\b[^>]*>[\s\S]*?</(?P=raw)\s*>          # element left as it is
    | (?<!`)(?P<ticks>`+)(?!`)(?:[^\n]|\n(?![ \t]*\n))+?(?<!`)(?P=ticks)(?!`)         # code span
    | <[A-Za-z][\w-]*(?:\s+[\w:@.-]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?)*\s*/?>   # tag
    | \\[\s\S]                                                                        # escaped character
    | \$\$(?P<display>(?:\\[\s\S]|[^\\$\n]|\n(?![ \t>]*\n))*)\$\$
      # A line that starts a list item, a heading, a table row or a quotation ends inline maths.
    | \$(?![\s$])(?P<inline>(?:\\[^\n]|[^\\$`\n]|\n(?![ \t>]*(?:\n|[-*+#|]|\d+[.)]\ )))+)(?<!\s)\$(?!\d)
    | (?P<unclosed>\$\$)
    """,
    re.MULTILINE | re.VERBOSE,
)


def find_math(text: str) -> list[Span]:
    r"""The formulas of a Markdown text, in order.

    The rules are pandoc's. `$$...$$` is display maths. In `$...$` the opening sign is not followed by white
    space, the closing one is not preceded by white space nor followed by a digit. No formula holds a blank
    line or a bare `$`. Code, comments, tags and `\$` are skipped; code indented by four spaces is not,
    so fence it. A `$$` without an end is a formula with empty TeX, so that it is reported.

    >>> [span.tex for span in find_math(r"It costs $5 or $6, or \$7; $x^2$ and `$y$`.")]
    ['x^2']
    """
    return [_span(match) for match in _SCANNER.finditer(text) if match.lastgroup in _KINDS]


_KINDS = ("display", "inline", "unclosed")


def _span(match: re.Match[str]) -> Span:
    kind = match.lastgroup
    if kind == "unclosed":
        return Span(match.start(), match.end(), match.end(), "", True)
    tex = match[kind]
    line = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
    if line.lstrip().startswith(">"):
        # In a quotation each line starts with `>`: blank it, so that every offset stays right.
        tex = re.sub(r"\n[ \t>]*", lambda marker: marker[0].replace(">", " "), tex)
    return Span(match.start(), match.end(), match.start(kind), tex, kind == "display")


def to_mathml(tex: str, *, display: bool) -> str:
    r"""A `<math>` element; the TeX is in it as an annotation, which no reader sees.

    Raises `TexError` for what math-core refuses and for what it would drop without a word: a `%`, after which
    TeX ignores the rest of the line, and a `\\` where there are no lines to break.

    >>> to_mathml("x", display=False)
    '<math><semantics><mi>x</mi><annotation encoding="application/x-tex">x</annotation></semantics></math>'
    """
    if not tex.strip():
        raise TexError(0, "Empty formula, or a $$ that is not closed before the next blank line.")
    for token in re.finditer(r"\\[\s\S]|%", tex):
        if token[0] == "%":
            raise TexError(token.start(), r"A bare % hides the rest of the line: write \%.")
        if token[0] == r"\\" and r"\begin" not in tex:
            raise TexError(token.start(), r"\\ breaks no line here: use \begin{aligned} ... \end{aligned}.")
    try:
        mathml = _CONVERTER.convert_with_local_state(tex, displaystyle=display)
    except math_core.LatexError as error:
        offset, message = str(error).split(": ", 1)
        raise TexError(int(offset), message) from None
    return _TIGHT.sub('<mo lspace="0.1667em">&ApplyFunction;</mo>', mathml)
