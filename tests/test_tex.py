import pytest

from build_tools.tex import Span, TexError, find_math, to_mathml


def found(text: str) -> list[tuple[str, bool]]:
    return [(span.tex, span.display) for span in find_math(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the ratio $\\rho_t$ is", [("\\rho_t", False)]),
        ("$a$$b$, $c$", [("a", False), ("b", False), ("c", False)]),
        ("$$a\n= b$$ and $c$", [("a\n= b", True), ("c", False)]),
        ("$a +\nb$", [("a +\nb", False)]),
        ("| $p(a | b)$ | $\\{1,\\,2\\}$ |", [("p(a | b)", False), ("\\{1,\\,2\\}", False)]),
        ("$a\\$b$", [("a\\$b", False)]),
        ("\\\\$a$", [("a", False)]),
        ("*$a_b*c_d$*", [("a_b*c_d", False)]),
        ("$a < b$ and $c > d$", [("a < b", False), ("c > d", False)]),
        ("$a <b$ and $c> d$", [("a <b", False), ("c> d", False)]),
        ("a <b $x$ c", [("x", False)]),
        ("an unmatched ` and $x$", [("x", False)]),
        ("```\nnever closed\n\n$x$", [("x", False)]),
        ("> $$\n> a > b\n> $$", [("\n  a > b\n  ", True)]),
    ],
)
def test_formulas(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and $6.",
        "$5 and `$x$`",
        "$20,000 and US$30,000",
        "$ a$ and $a $",
        "$a\n\nb$",
        "escaped \\$a$",
        "`$a$` and ``$b` $c$``",
        "```python\nx = '$a$'\n```",
        "    ~~~~ sh\n    echo $a$\n    ~~~\n    $b$\n    ~~~~",
        "> ```\n> $a$\n> ```",
        "<!-- $a$ -->",
        "<svg><text>$a$</text></svg>",
        '<span title="$a$">b</span>',
        "- costs $a\n- costs b$",
        "| a $b |\n| c$ |",
    ],
)
def test_no_formula(text):
    assert found(text) == []


def test_places_count_characters():
    text = "é: $$ \\rho $$, $x$"
    assert find_math(text) == [Span(3, 13, 5, " \\rho ", True), Span(15, 18, 16, "x", False)]
    for span in find_math(text):
        assert text[span.tex_start : span.tex_start + len(span.tex)] == span.tex


def test_code_after_a_fence_is_searched_again():
    assert found("```\n$a$\n```\n\n$b$\n\n```\n$c$\n```\n") == [("b", False)]


@pytest.mark.parametrize("text", ["$$", "$$$$", "$$ $$", "$$a\n\nb", "price $$5"])
def test_unclosed_and_empty_display_maths_is_reported(text):
    span = find_math(text)[0]
    assert span.tex.strip() == "" and span.display
    with pytest.raises(TexError, match="Empty formula"):
        to_mathml(span.tex, display=True)


def test_mathml():
    assert to_mathml("x^2", display=False) == (
        "<math><semantics><msup><mi>x</mi><mn>2</mn></msup>"
        '<annotation encoding="application/x-tex">x^2</annotation></semantics></math>'
    )
    assert to_mathml("x", display=True).startswith('<math display="block">')


def test_the_annotation_is_escaped():
    assert "<b>" not in to_mathml("a<b>c", display=False)


@pytest.mark.parametrize(
    ("tex", "offset", "message"),
    [
        ("é + \\foo", 4, 'Unknown command "\\foo"'),
        ("\\frac{1}{", 9, "reached end of input"),
        ("a & b", 2, "table-like"),
        ("", 0, "Empty formula"),
        ("   ", 0, "Empty formula"),
        ("50% of x", 2, "\\%"),
        ("a \\\\ b", 2, "aligned"),
        ("{a", 2, "reached end of input"),
        ("a}", 1, "Unmatched"),
    ],
)
def test_errors_have_their_place(tex, offset, message):
    with pytest.raises(TexError) as caught:
        to_mathml(tex, display=False)
    assert caught.value.offset == offset
    assert message in caught.value.message


@pytest.mark.parametrize(
    "tex", ["50\\% of x", "\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}", "\\{a\\}"]
)
def test_escapes_and_line_breaks_in_their_place_are_fine(tex):
    assert to_mathml(tex, display=True).endswith("</math>")


@pytest.mark.parametrize("tex", ["\\log 1.6", "\\log {1.6}", "\\log {-3}", "\\log \\frac{1}{2}"])
def test_a_function_is_set_off_from_an_argument_without_brackets(tex):
    assert '<mo lspace="0.1667em">&ApplyFunction;</mo>' in to_mathml(tex, display=False)


@pytest.mark.parametrize("tex", ["\\log(x)", "\\min(-1, 2)", "\\exp {(x)}", "\\log\\{x\\}", "\\max[x]"])
def test_a_function_is_not_set_off_from_a_bracket(tex):
    assert "<mo>&ApplyFunction;</mo>" in to_mathml(tex, display=False)
