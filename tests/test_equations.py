"""What authors type by hand is true arithmetic, or a fault at its place."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build_tools import expression as language
from build_tools.equations import Report, check_prose
from build_tools.errors import Place
from build_tools.model import Prose, Value
from build_tools.prose import placeholders

HERE = Place("a.md", 1, 1)


def value(name, text, printed):
    return Value(name, language.parse(text, HERE)[0], printed, language.parse(printed, HERE)[0])


VALUES = {"cap": value("cap", "a * b", "2.4"), "root": value("root", "t / a", "8.3e-10")}
PRINTED = {"a": "1.2", "b": "2", "bad": "-3", "third": "0.33", "t": "1e-9", "l": "0.9, -0.1"}
PRINTED |= {name: each.printed for name, each in VALUES.items()}


def report(text: str, *, sources: bool = False) -> Report:
    return check_prose(Prose(text, "a.md", 1), PRINTED, VALUES, sources=sources)


def faults(text: str, **keywords) -> list[tuple[str, str]]:
    """The code of each fault, and the rest of the line from its place on."""
    lines = text.split("\n")
    return [
        (fault.code, lines[fault.place.line - 1][fault.place.column - 1 :])
        for fault in report(text, **keywords).faults
    ]


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("So 0.2 × 1.0986 = 0.2197 nats.", 1),
        (r"So $0.2 \times 1.0986 = 0.2197$ nats.", 1),
        (r"$0.21972 = 0.2 \times 1.0986 \approx 0.22$", 2),
        (r"$0.2 \times 1.0986 = 0.1 \times 2.1972$", 1),
        (r"$\log(0.6 / 0.2) = 1.0986$", 1),
        (r"$\rho_t A_t = 1.6 \times 2 = 3.2$", 1),
        (r"$$\begin{aligned} x &= 1.5 + 1.25 \\ &= 2.75 \end{aligned}$$", 1),
        ("$20\\% = 1 / 5$ and 1 / 3 = 33%", 2),
        (r"$3 \times 7 \times 10^{-5} = 2.1 \times 10^{-4}$", 1),
        (r"$1\,000 \times 2 = 2\,000$", 1),
        (r"$0.2 \times 2\,\text{nats} = 0.4\,\text{nats}$", 1),
        (r"${=a} \times {=b} = {=cap}$ and {=a} × {=b} = {=cap}", 2),
        (r"$\rho_t A_t = {=a} \times {=b} = {=cap}$", 1),
        (r"$\min({=a}, {=b}) = {=a}$", 1),
        (r"$\log 1 = 0$", 1),
        ("- 1.5 + 1 = 2.5\n- -1.5 + 1 = -0.5", 2),
        ("| 1.25 × 2 = 2.5 | 2.5 |", 1),
    ],
)
def test_true_arithmetic_passes_and_is_counted(text, true):
    assert report(text) == Report((), 0, true)


@pytest.mark.parametrize(
    ("text", "generated"),
    [
        ("$(1 + \\epsilon) A_t = {==cap}$ and {==cap}", 2),
        ("${==root}$, {==root}", 2),
        ("$\\rho_t = {=a}$, $A = ({=l})$, {=third}, $[{=a}, {=b}]$", 0),
    ],
)
def test_placeholders_and_generated_equations_pass(text, generated):
    assert report(text) == Report((), generated, 0)


@pytest.mark.parametrize(
    "text",
    [
        r"$\lambda = 1$, $A_t = 0$, $\rho = 1$ for all",
        r"$k_2 = \tfrac{1}{2} d^2$ and $k_3 = e^{d} - 1 - d$",
        r"$$\sum_{t=1}^{T} r_t + \sum_{i=2}^{T}$$",
        r"$\nabla_\theta 1 = 0$",
        r"$\pi = \operatorname{softmax}(z)$",
        r"speed = distance / time",
        r"$x_{t+1} = 2 x_t$",
        r"a chess player's move 40, 16-bit numbers, step 3, equation 12, 7&nbsp;billion",
        "`x = 0.25`, `1234`\n\n```\ny = 2.50\n```\n",
        "[a page](other-100.md#id-1234), <a href='x-1000.html' id=\"y-2000\">here</a>",
        "[2019 paper](https://example.org/1234), [arXiv:1707.06347](https://example.org)",
        "### Heading 1000 {#id-2000}",
        "the model GPT3000 and bfloat16 <!-- 1.25 = 2 -->",
        "$x = {=a}$\n{: #id-1000 .x100 }",
    ],
)
def test_what_is_no_quantity_may_be_typed(text):
    assert report(text) == Report((), 0, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The slope is 0.25 here.", [("typed-number", "0.25 here.")]),
        ("1000 steps, 1,000", [("typed-number", "1000 steps, 1,000"), ("typed-number", "1,000")]),
        (r"$x < 0.25$ and $x_{100}$", [("typed-number", "0.25$ and $x_{100}$"), ("typed-number", "100}$")]),
        (r"$\epsilon = 0.2$", [("typed-number", "0.2$")]),
        (r"$k = 1.25$", [("typed-number", "1.25$")]),
        (r"$k = (3\,\text{nats})$", [("typed-number", r"3\,\text{nats})$")]),
        ("k = 3", [("typed-number", "3")]),
        (r"$A$ = 2", [("typed-number", "2")]),
        (r"$\rho_t = 0.5 = 0.5$", [("typed-number", "0.5 = 0.5$"), ("typed-number", "0.5$")]),
        (r"$x = \frac{1}{2}$", [("typed-number", r"2}$"), ("typed-number", r"1}{2}$")]),
        (r"$x = 0.5 y$", [("typed-number", "0.5 y$")]),
        (r"$x = 3\,\text{nats}$", [("typed-number", r"3\,\text{nats}$")]),
        (r"$x = \text{about } 3$", [("typed-number", "3$")]),
        (r"$x = \begin{cases} 3 & t = T \end{cases}$", [("typed-number", r"3 & t = T \end{cases}$")]),
        ("It was 2017.", [("typed-number", "2017.")]),
        ("[page 1234](https://example.org)", [("typed-number", "1234](https://example.org)")]),
        ("In [2019](other.md)", [("typed-number", "2019](other.md)")]),
    ],
)
def test_a_typed_number_is_a_fault(text, expected):
    assert sorted(faults(text)) == sorted(expected)


def test_years_stand_in_a_list_of_sources():
    entry = 'Someone, "Title", 2015 (conference version 2016), page 1234, 0.25.'

    assert faults(f"- {entry}", sources=True) == [("typed-number", "1234, 0.25."), ("typed-number", "0.25.")]
    assert [code for code, _ in faults(f"- {entry}")] == ["typed-number"] * 4
    assert [code for code, _ in faults(entry, sources=True)] == ["typed-number"] * 4, "in no list"


@pytest.mark.parametrize(
    ("text", "at", "hint"),
    [
        ("So 0.2 × 1.0986 = 0.2198.", "0.2198.", "the result is 0.21972, which rounds to 0.2197"),
        (r"$0.2 \times 1.0986 = 0.2198$", "0.2198$", "the result is 0.21972, which rounds to 0.2197"),
        (r"$0.2198 = 0.2 \times 1.0986$", "0.2198 =", "the result is 0.21972, which rounds to 0.2197"),
        (r"$1.5 + 1 = 2 + 1$", "2 + 1$", "the sides come to 2.5 and 3"),
        (r"$1.5 + 1 = 2.5 = 2.6$", "2.6$", "the result is 2.5"),
        (r"${=a} \times {=b} = {=third}$", "{=third}$", "the result is 2.4, which rounds to 2.40"),
        (r"$\rho = {=a} + {=bad} = 1.8$", "1.8$", "the result is -1.8, which rounds to -1.8"),
        (r"$0.5 \times 0.5 = 0.2$", "0.2$", "which rounds to 0.2"),
        (r"$0.5 \times 0.3 = 0.1$", "0.1$", "half-way"),
        ("1 / 3 = 34%", "34%", "which rounds to 33"),
        (r"$$\begin{aligned} x &= 1.5 + 1.25 \\ &= 2.76 \end{aligned}$$", "2.76 ", "rounds to 2.75"),
        ("- 1.5 + 1 = -0.5", "-0.5", "the result is 2.5"),
    ],
)
def test_a_false_equation_is_a_fault_at_the_number_that_is_wrong(text, at, hint):
    (found,) = report(text).faults

    if hint != "which rounds to 0.2":  # 0.25 lies half-way between 0.2 and 0.3
        assert hint in found.message
    assert found.code == "false-equation"
    assert text[found.place.column - 1 :].startswith(at)
    assert report(text).true == 0


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (r"$\log_2 8 = 3.00$", "_2 8"),
        (r"$|0.5 - 0.7| = 0.2$", "|0.5"),
        (r"$\log 2 \times 3 = 2.0794$", r"\times 3"),
        ("1 / 0 = 5.00", "1 / 0"),
        (r"$x = {=a} {=b}$", "{=b}$"),
        ("2 × = 5.00", "2 × ="),
        ("(0.5, 0.25) = (0.5, {=third})", ", 0.25)"),
    ],
)
def test_what_cannot_be_read_is_a_fault(text, at):
    (found, *_) = report(text).faults

    assert found.code in ("unread-equation", "typed-number")
    assert text[found.place.column - 1 :].startswith(at)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "1",
                "0.25",
                "1000",
                "=",
                " ",
                "\n",
                "(",
                ")",
                "{",
                "}",
                r"\frac",
                r"\log ",
                "^",
                "_",
                "e^",
                "-",
                "×",
                r"\times ",
            ]
            + [
                "$",
                "$$",
                ",",
                "&",
                r"\\",
                "x",
                "word",
                "`",
                "[",
                "](",
                "https://a.b/c",
                "{=a}",
                "{==cap}",
                "{=l}",
                "#",
                "%",
            ]
        ),
        max_size=60,
    ).map("".join)
    | st.text(max_size=100)
)
def test_any_text_gives_faults_in_it_and_never_takes_long(text):
    start = time.perf_counter()
    known = {"a", "cap", "l"}
    if any(
        each.name not in known or each.equation and each.name != "cap"
        for each in placeholders(Prose(text, "a.md", 1))
    ):
        return
    found = report(text)

    assert time.perf_counter() - start < 2
    lines = text.split("\n")
    for fault in found.faults:
        assert fault.code in ("typed-number", "unread-equation", "false-equation")
        assert 1 <= fault.place.line <= len(lines)
        assert 1 <= fault.place.column <= len(lines[fault.place.line - 1])
