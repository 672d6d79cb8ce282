"""Maths inside prose must be TeX that can be typeset; a fault carries the place inside the formula."""

from build_tools.errors import Fault
from build_tools.model import Prose
from build_tools.prose import without_placeholders
from build_tools.tex import TexError, find_math, to_mathml


def check_tex(prose: Prose) -> list[Fault]:
    faults = []
    for span in find_math(without_placeholders(prose.text)):
        try:
            to_mathml(span.tex, display=span.display)
        except TexError as error:
            at = prose.place(span.tex_start + error.offset)
            written = " ".join(prose.text[span.start : span.end].split())
            faults.append(Fault(at, "bad-tex", f"{error.message} (in {written})"))
    return faults
