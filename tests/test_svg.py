"""Inline SVG: the same bytes on every run, the page's colours and font, ids of its own, safe text."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import matplotlib
import pytest
from matplotlib.figure import Figure

from build_tools.svg import to_svg

COLOURS = {"#b0176b": "var(--a, #b0176b)", "#1f2330": "var(--ink, #1f2330)"}

DRAW_TWICE = """
from build_tools.svg import to_svg
from lab.figures import COLOURS, clipped_surrogate
for number, (figure, alt) in enumerate(clipped_surrogate(mark=0.5)):
    print(to_svg(figure, alt=alt, key=f"item-{number}", colours=COLOURS))
"""


def example(text: str = "label", colour: str = "#b0176b") -> Figure:
    """A line with markers inside a clip path, and a word."""
    figure = Figure(figsize=(4, 3))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.plot([0, 1], [0, 1], "o-", color=colour)
    figure.text(0.5, 0.5, text, color="#1f2330", parse_math=False)
    return figure


def svg(figure: Figure, alt: str = "A line.", key: str = "key") -> str:
    return to_svg(figure, alt=alt, key=key, colours=COLOURS)


def ids(text: str) -> list[str]:
    return re.findall(r'\bid="([^"]*)"', text)


def references(text: str) -> set[str]:
    return set(re.findall(r'href="#([^"]*)"', text)) | set(re.findall(r"url\(#([^)]*)\)", text))


def test_bytes_are_the_same_in_two_processes():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", DRAW_TWICE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0].count(b"<svg") == 2
    assert outputs[0] == outputs[1]


def test_bytes_do_not_depend_on_the_settings_of_the_machine():
    from lab.figures import COLOURS, clipped_surrogate

    def draw() -> str:
        (panel,) = clipped_surrogate(A=2, mark=1.6)
        return to_svg(panel[0], alt=panel[1], key="key", colours=COLOURS)

    plain = draw()
    odd = {"font.size": 30, "lines.solid_capstyle": "round", "lines.markeredgewidth": 9, "savefig.dpi": 300}
    with matplotlib.rc_context({**odd, "text.color": "red", "axes.unicode_minus": False}):
        assert draw() == plain


def test_the_root_says_what_the_figure_shows_and_leaves_the_size_to_the_page():
    root = ET.fromstring(svg(example(), alt="A line\n from 0 to 1."))
    assert root.attrib["role"] == "img"
    assert root.attrib["class"] == "panel"
    assert root.attrib["aria-label"] == "A line from 0 to 1."
    # 4 by 3 inches are 288 by 216 points.
    assert root.attrib["viewBox"] == "0 0 288 216"
    assert not {"width", "height"} & root.attrib.keys()


def test_nothing_is_left_that_a_page_does_not_need():
    text = svg(example())
    assert text.startswith("<svg ") and text.endswith("</svg>") and "\n" not in text
    for waste in ("<?xml", "<!", "<metadata", "<style", "<title", "xlink", "rdf", "Matplotlib", "<g><"):
        assert waste not in text


def test_text_is_text_in_the_font_of_the_page():
    (label,) = ET.fromstring(svg(example("ρ = 0.5"))).iter("{http://www.w3.org/2000/svg}text")
    assert label.text == "ρ = 0.5"
    assert "font-family: inherit" in label.attrib["style"]
    assert "fill: var(--ink, #1f2330)" in label.attrib["style"]


def test_every_colour_is_a_variable():
    # Outside of var(...) no colour is left: the fallbacks are the only hexadecimal numbers.
    text = svg(example())
    assert "stroke: var(--a, #b0176b)" in text and "fill: var(--a, #b0176b)" in text
    assert "#" not in re.sub(r'var\([^)]*\)|url\(#[^)]*\)|href="#[^"]*"', "", text)


def test_a_colour_that_the_page_does_not_know_is_an_error():
    with pytest.raises(
        ValueError, match="the colour #00ff00, which does not follow .* use one of #1f2330, #b0176b"
    ):
        svg(example(colour="#00ff00"))


@pytest.mark.parametrize("what", ["text", "fill"])
def test_black_that_matplotlib_leaves_out_is_an_error(what: str):
    figure = Figure()
    if what == "text":
        figure.text(0.5, 0.5, "black by default")
    else:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.fill([0, 1, 1], [0, 0, 1], facecolor="#000000", edgecolor="none")
    with pytest.raises(ValueError, match="the colour #000000"):
        svg(figure)


def test_a_raster_image_is_an_error():
    figure = Figure()
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.imshow([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="raster image"):
        svg(figure)


def test_two_figures_share_no_id_and_every_reference_has_its_target():
    first, second = svg(example(), key="ex-2"), svg(example(), key="ex-2-1")
    for text, key in ((first, "ex-2"), (second, "ex-2-1")):
        # The clip path and the marker.
        assert sorted(ids(text)) == [f"{key}-svg-1", f"{key}-svg-2"]
        assert set(ids(text)) == references(text)
    assert not set(ids(first)) & set(ids(second))


@pytest.mark.parametrize("key", ["", "Ex", "a b", 'a"', "-a", "a--b", "a/b"])
def test_a_key_is_a_slug(key: str):
    with pytest.raises(ValueError, match="is no slug"):
        svg(example(), key=key)


@pytest.mark.parametrize("alt", ["", " \n"])
def test_a_figure_without_words_is_an_error(alt: str):
    with pytest.raises(ValueError, match="alt is empty"):
        svg(example(), alt=alt)


def test_text_and_alternative_are_safe():
    nasty = """</text><script>"a" & 'b' $x$ url(#c)"""
    text = svg(example(nasty), alt=nasty)
    assert "<script" not in text
    root = ET.fromstring(text)
    (label,) = root.iter("{http://www.w3.org/2000/svg}text")
    assert label.text == nasty
    assert root.attrib["aria-label"] == nasty


def test_the_reference_figure_uses_only_the_variables_of_the_site():
    from lab.figures import COLOURS, clipped_surrogate

    for figure, alt in clipped_surrogate(mark=1.0):
        text = to_svg(figure, alt=alt, key="key", colours=COLOURS)
        names = set(re.findall(r"var\(--ppo-([a-z]+), #[0-9a-f]{6}\)", text))
        sign = "positive" if "positive" in alt else "negative"
        assert names == {sign, "clipped", "ink", "grid", "paper"}
