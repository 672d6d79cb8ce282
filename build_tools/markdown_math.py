r"""A Markdown extension: `$...$` and `$$...$$` become MathML when the page is built.

It works on the text before Markdown does, so that `_`, `*`, `\` and the `|` of tables are safe in formulas,
in every kind of block. It is a plain Python-Markdown extension and needs no site generator.
"""

import re

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

from build_tools.tex import Span, TexError, find_math, to_mathml

# A custom element, because the search plugin ends an exclusion at the first closing tag of the same name.
_INLINE = "<x-math data-search-exclude>{}</x-math>"
# Wide formulas scroll, so the keyboard must reach them.
_DISPLAY = (
    '<x-math class="display" data-search-exclude role="group" aria-label="Formula" tabindex="0">{}</x-math>'
)


# Browsers may break a line on either side of a formula, even before a full stop; not in here.
_GLUED = '<span class="nobreak">{}</span>'


def math_html(span: Span) -> str:
    """The HTML of one formula. `TexError` names the TeX, for nothing else tells where in a page it stands."""
    try:
        mathml = to_mathml(span.tex, display=span.display)
    except TexError as error:
        raise TexError(error.offset, f"bad TeX '{span.tex}', character {error.offset + 1}: {error}") from None
    return (_DISPLAY if span.display else _INLINE).format(mathml)


class MathPreprocessor(Preprocessor):
    """Puts a placeholder where each formula was; Markdown's last step puts the HTML there."""

    def run(self, lines: list[str]) -> list[str]:
        text = "\n".join(lines)
        parts, end = [], 0
        for span in find_math(text):
            _refuse_heading(text, span)
            html = math_html(span)
            before, after = text[end : span.start], ""
            if not span.display:
                opening = re.search(r"[(“‘]*$", before)[0]
                after = re.match(r"[.,;:!?)’”%]*", text[span.end :])[0]
                before = before[: len(before) - len(opening)]
                html = _GLUED.format(opening + html + after) if opening or after else html
            parts += [before, self.md.htmlStash.store(html)]
            end = span.end + len(after)
        return "".join([*parts, text[end:]]).split("\n")


def _refuse_heading(text: str, span: Span) -> None:
    """Ids, the table of contents and browser tabs show titles as plain text, where formulas are noise."""
    line = text[text.rfind("\n", 0, span.start) + 1 : span.start]
    if re.match(r"#{1,6}\s", line):
        raise TexError(0, f"maths in the heading '{line}${span.tex}$': headings hold no maths")


class MathExtension(Extension):
    r"""Registers the preprocessor and makes `\$` an escape."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.ESCAPED_CHARS.append("$")
        # After fenced code (25) has been put away, before raw HTML (20) is.
        md.preprocessors.register(MathPreprocessor(md), "markdown_math", 22)


def makeExtension() -> MathExtension:
    """What Markdown calls for the name `build_tools.markdown_math`."""
    return MathExtension()
