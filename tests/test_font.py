"""The committed font holds what formulas can need."""

import re
import unicodedata
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont

from build_tools.tex import find_math, to_mathml

ROOT = Path(__file__).parent.parent
FONT = TTFont(ROOT / "docs/assets/fonts/noto-sans-math.woff2")
HAS = set(FONT.getBestCmap())

# What the browser draws for a single letter in <mi>: math italic, with the old ℎ for h.
ITALIC = {
    c: unicodedata.lookup(f"MATHEMATICAL ITALIC SMALL {c.upper()}") for c in "abcdefgijklmnopqrstuvwxyz"
}
ITALIC |= {c: unicodedata.lookup(f"MATHEMATICAL ITALIC CAPITAL {c}") for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
ITALIC["h"] = "ℎ"

# Accents that Noto Sans Math lacks and every text font has, and characters that are not drawn.
ELSEWHERE = set("¯˜¨ˇ˙") | set("\N{VARIATION SELECTOR-2}\N{FUNCTION APPLICATION}\N{INVISIBLE SEPARATOR}")

COMMANDS = r"""
 \alpha \beta \gamma \delta \epsilon \varepsilon \zeta \eta \theta \vartheta \iota \kappa \lambda \mu \nu
\xi \pi \rho \sigma \tau \upsilon \phi \varphi \chi \psi \omega \Gamma \Delta \Theta \Lambda \Xi \Pi
\Sigma \Phi \Psi \Omega \pm \mp \times \cdot \ast \circ \div \oplus \otimes \odot \wedge \vee \cap \cup
\setminus \le \ge \leqslant \geqslant \ll \gg \ne \equiv \approx \sim \simeq \propto \prec \preceq \succ
\in \notin \ni \subset \subseteq \supset \perp \parallel \mid \forall \exists \neg \nabla \partial \infty
\emptyset \varnothing \ell \to \gets \leftarrow \rightarrow \uparrow \downarrow \leftrightarrow
\Rightarrow \Leftarrow \Leftrightarrow \mapsto \implies \iff \hookrightarrow \longrightarrow \sum \prod
\int \bigcup \bigcap \bigoplus \lfloor \rfloor \lceil \rceil \langle \rangle \lVert \rVert \lvert \rvert
\| \{ \} \dots \ldots \cdots \vdots \ddots \quad \% \hat{x} \bar{x} \tilde{x} \vec{x} \ddot{x} \check{x}
\overline{xy} \underline{xy} \widehat{xy} \overbrace{xy} \underbrace{xy} \sqrt{x} \prime \star \bullet
\square \triangle \top \bot \coloneqq \triangleq \upharpoonright
""".split()
STYLED = [
    rf"\{style}{{{letter}}}"
    for style in ("mathbf", "boldsymbol", "mathbb")
    for letter in map(chr, range(65, 91))
]
STYLED += [rf"\{style}{{{letter}}}" for style in ("mathcal", "mathscr") for letter in map(chr, range(65, 91))]
STYLED += [
    rf"\{style}{{{letter}}}" for style in ("mathbf", "boldsymbol") for letter in map(chr, range(97, 123))
]
STYLED += [rf"\boldsymbol{{\{name}}}" for name in ("theta", "phi", "pi", "rho", "mu", "Sigma", "epsilon")]
STYLED += [r"\mathbb{1}", r"\mathbf{0}", r"\mathbf{1}"]


def missing(tex: str) -> set[str]:
    """The characters of a formula which the font lacks, after the browser's change to italics."""
    mathml = to_mathml(tex, display=True).partition("<annotation")[0]
    shown = {ITALIC.get(c, c) for c in re.findall(r"<mi>(.)</mi>", mathml)}
    for text in re.findall(r">([^<]+)<", mathml):
        shown |= set(text.replace("&ApplyFunction;", "").replace("&lt;", "<").replace("&gt;", ">"))
    return {c for c in shown - ELSEWHERE if ord(c) not in HAS}


@pytest.mark.parametrize("tex", COMMANDS + STYLED)
def test_the_font_has_what_a_command_draws(tex):
    assert missing(tex) == set()


def test_the_font_has_letters_and_digits_upright_and_italic():
    greek = [unicodedata.lookup(f"MATHEMATICAL ITALIC SMALL {name}") for name in ("ALPHA", "RHO", "OMEGA")]
    text = [chr(point) for point in range(0x21, 0x7F)]
    assert [c for c in [*ITALIC.values(), *greek, *text, "−", "×", "±"] if ord(c) not in HAS] == []


def test_a_lacking_character_is_noticed():
    assert missing(r"\mathfrak{g}") == {"𝔤"}


def test_the_font_has_what_the_pages_draw():
    pages = [page for folder in ("content", "docs") for page in (ROOT / folder).rglob("*.md")]
    formulas = [span for page in pages for span in find_math(page.read_text(encoding="utf-8"))]
    lacking = {
        tex: chars
        for tex in (re.sub(r"\{==?\w+\}", "1", span.tex) for span in formulas)
        if (chars := missing(tex))
    }
    assert lacking == {}


@pytest.mark.parametrize("char", "()[]{}|‖⌊⌋⌈⌉⟨⟩√∑∏∫")
def test_brackets_roots_and_sums_have_taller_forms(char):
    variants = FONT["MATH"].table.MathVariants
    glyphs = variants.VertGlyphCoverage.glyphs
    construction = variants.VertGlyphConstruction[glyphs.index(FONT.getBestCmap()[ord(char)])]
    assert construction.VariantCount > 1
    names = {record.VariantGlyph for record in construction.MathGlyphVariantRecord}
    if construction.GlyphAssembly:
        names |= {part.glyph for part in construction.GlyphAssembly.PartRecords}
    assert names <= set(FONT.getGlyphOrder())


@pytest.mark.parametrize("char", "⏞⏟")
def test_horizontal_braces_stretch(char):
    assert FONT.getBestCmap()[ord(char)] in FONT["MATH"].table.MathVariants.HorizGlyphCoverage.glyphs


def test_the_font_is_small_and_has_its_licence():
    assert (ROOT / "docs/assets/fonts/noto-sans-math.woff2").stat().st_size < 120_000
    assert "SIL OPEN FONT LICENSE Version 1.1" in (ROOT / "docs/assets/fonts/OFL.txt").read_text("utf-8")
