import pytest

from build_tools import expression as language
from build_tools.errors import Place
from build_tools.model import Prose, Value
from build_tools.prose import anchors, fill, inner_blocks, links, placeholders, typeset, without_placeholders

HERE = Place("a.md", 1, 1)


def value(name, text, printed):
    digits = f"[{printed}]" if "," in printed else printed
    return Value(name, language.parse(text, HERE)[0], printed, language.parse(digits, HERE)[0])


PRINTED = {"a": "2", "b": "-3", "e": "0.20", "t": "1e-9", "l": "0.9, -0.1", "big": "2.5E+3"}


def filled(text, **expressions):
    """The text with the names of PRINTED and, by keyword, of values whose result is printed as 7."""
    values = {name: value(name, expression, "7") for name, expression in expressions.items()}
    printed = PRINTED | dict.fromkeys(values, "7")
    return fill(Prose(text, "a.md", 1), printed, values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from {=a} to {=b}", "from 2 to −3"),
        ("({=l})", "(0.9, −0.1)"),
        ("{=t} and {=big}", "1e-9 and 2.5E+3"),
        ("{=a}{=b}", "2−3"),
        ("${=a} + {=b}$", "$2 + -3$"),
        ("$$\n{=e}\n$$ {=b}", "$$\n0.20\n$$ −3"),
        ("$({=l})$", "$(0.9, -0.1)$"),
        ("$x = {=t}$", r"$x = 1 \times 10^{-9}$"),
        ("$x = {=big}$", r"$x = 2.5 \times 10^{3}$"),
        ("costs $5 or {=b} $", "costs $5 or −3 $"),
        ("`{=b}`", "`−3`"),
        ("nothing", "nothing"),
    ],
)
def test_digits(text, expected):
    assert filled(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$x^{=a}$", "$x^{2}$"),
        ("$x_{=a}$", "$x_{2}$"),
        ("$x^ {=b}$", "$x^ {-3}$"),
        (r"$\sqrt{=e}$", r"$\sqrt{0.20}$"),
        (r"$\frac{=a}{=b}$", r"$\frac{2}{-3}$"),
        (r"$\rho_t \times {=a}$", r"$\rho_t \times {2}$"),
        (r"$[{=a}, {=b}]$", r"$[2, -3]$"),
    ],
)
def test_digits_that_are_an_argument_of_tex_keep_their_braces(text, expected):
    assert filled(text) == expected


@pytest.mark.parametrize(
    ("expression", "text", "tex"),
    [
        ("a + e", "2 + 0.20 = 7", "2 + 0.20 = 7"),
        ("a * e", "2 × 0.20 = 7", r"2 \times 0.20 = 7"),
        ("a / e", "2 / 0.20 = 7", "2 / 0.20 = 7"),
        ("1 - e", "1 − 0.20 = 7", "1 - 0.20 = 7"),
        ("1.50 * a", "1.50 × 2 = 7", r"1.50 \times 2 = 7"),
        ("b + a", "−3 + 2 = 7", "-3 + 2 = 7"),
        ("a + b", "2 + (−3) = 7", "2 + (-3) = 7"),
        ("a - b", "2 − (−3) = 7", "2 - (-3) = 7"),
        ("a * b", "2 × (−3) = 7", r"2 \times (-3) = 7"),
        ("b * a", "(−3) × 2 = 7", r"(-3) \times 2 = 7"),
        ("-b", "−(−3) = 7", "-(-3) = 7"),
        ("-a * e", "(−2) × 0.20 = 7", r"(-2) \times 0.20 = 7"),
        ("a * -1", "2 × (−1) = 7", r"2 \times (-1) = 7"),
        ("(a + e) * 3", "(2 + 0.20) × 3 = 7", r"(2 + 0.20) \times 3 = 7"),
        ("a + e * 3", "2 + 0.20 × 3 = 7", r"2 + 0.20 \times 3 = 7"),
        ("a - (e - 1)", "2 − (0.20 − 1) = 7", "2 - (0.20 - 1) = 7"),
        ("a - e - 1", "2 − 0.20 − 1 = 7", "2 - 0.20 - 1 = 7"),
        ("a / (e * 3)", "2 / (0.20 × 3) = 7", r"2 / (0.20 \times 3) = 7"),
        ("a / e * 3", "2 / 0.20 × 3 = 7", r"2 / 0.20 \times 3 = 7"),
        ("-(a + e)", "−(2 + 0.20) = 7", "-(2 + 0.20) = 7"),
        ("a ** 2", "2<sup>2</sup> = 7", "2^{2} = 7"),
        ("b ** 2", "(−3)<sup>2</sup> = 7", "(-3)^{2} = 7"),
        ("-a ** 2", "−2<sup>2</sup> = 7", "-2^{2} = 7"),
        ("(-a) ** 2", "(−2)<sup>2</sup> = 7", "(-2)^{2} = 7"),
        ("(a + e) ** -1", "(2 + 0.20)<sup>−1</sup> = 7", "(2 + 0.20)^{-1} = 7"),
        ("(a ** 2) ** 3", "(2<sup>2</sup>)<sup>3</sup> = 7", "(2^{2})^{3} = 7"),
        ("3 * a ** 2", "3 × 2<sup>2</sup> = 7", r"3 \times 2^{2} = 7"),
        ("a + 1e-3", "2 + 1e-3 = 7", r"2 + 1 \times 10^{-3} = 7"),
        ("a / t", "2 / (1e-9) = 7", r"2 / (1 \times 10^{-9}) = 7"),
        ("t ** 2", "(1e-9)<sup>2</sup> = 7", r"(1 \times 10^{-9})^{2} = 7"),
    ],
)
def test_equations(expression, text, tex):
    assert filled("{==y}", y=expression) == text
    assert filled("${==y}$", y=expression) == f"${tex}$"


def test_values_inside_equations_are_printed_too():
    assert filled("{==y}", x="a * 3", y="x + a") == "7 + 2 = 7"


def test_typeset_turns_hyphens_into_minus_signs_but_not_those_of_exponents():
    assert typeset("-1.5 and 1e-9, -2E-3") == "−1.5 and 1e-9, −2E-3"


def test_placeholders_and_their_offsets():
    found = placeholders(Prose("{=a} $x_{=b}$\n{==c} {=}, {==} {x} \\{=d\\}", "a.md", 1))

    assert [(p.name, p.equation, p.offset) for p in found] == [
        ("a", False, 0),
        ("b", False, 8),
        ("c", True, 14),
    ]


@pytest.mark.parametrize("text", ["{=a}", "${=a} {==bcd}$", r"$\sqrt{=a}$", "x_{=a}"])
def test_without_placeholders_keeps_every_offset(text):
    bare = without_placeholders(text)

    assert len(bare) == len(text)
    assert "=" not in bare


def test_without_placeholders_reads_as_it_will_be_shown():
    assert without_placeholders(r"$x_{=ab}\frac{=a}{=b}$ {=c}") == r"$x_{111}\frac{11}{11}$ 1111"


def test_links_outside_code_and_maths():
    text = "[a](b.md) `[c](d)`\n```\n[e](f)\n```\n$[g](h)$ ![i](j.png) [![k](l.png)](m.md)\n\n[n]: o.md\n<a class='x' href=\"p.md\">"

    found = links(Prose(text, "a.md", 1))

    assert [(link.target, link.image) for link in found] == [
        ("b.md", False),
        ("j.png", True),
        ("m.md", False),
        ("o.md", False),
        ("p.md", False),
    ]
    assert all(text[link.offset :].startswith(link.target) for link in found)


def test_anchors_outside_code():
    text = "### A {#a}\n```\n# B {#b}\n```\n#### C { .x #c-2 }\nText {#d}\n`x` {#e}"

    assert anchors(Prose(text, "a.md", 1)) == [("a", 8, "A"), ("c-2", text.index("c-2"), "C")]


def test_blocks_that_a_section_may_not_hold():
    text = "#### A\n```\n#### B\n/// c\n```\n/// details\nText\n///\n##### D"

    assert [text[at:].split("\n")[0] for at in inner_blocks(Prose(text, "a.md", 1))] == [
        "#### A",
        "/// details",
        "///",
        "##### D",
    ]
