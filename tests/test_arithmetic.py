"""From the tokens of one side to its number. The expected numbers are worked by hand or by `math`."""

import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build_tools.arithmetic import DEEPEST, Unreadable, plain_number, read_side
from test_tokens import read, side


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2", 2),
        ("-0.20", -0.2),
        ("1 + 2 - 4", -1),
        ("2 + 3 * 4 - 10 / 5", 12),
        ("12 / 3 / 2", 2),
        ("12 / 3 × 2", 8),
        ("2 − 0.5 × 3", 0.5),
        ("2 · 3 ÷ 4", 1.5),
        ("2 × -3", -6),
        ("2 × (−3)", -6),
        ("(1 + 0.2) × 2", 2.4),
        ("2 (1 + 0.2)", 2.4),
        ("1,234.5 × 2", 2469),
        ("20% × 5", 1),
        ("1e-3 × 2", 0.002),
        ("2<sup>3</sup> × 2", 16),
        ("−2<sup>2</sup>", -4),
        ("2 &times; 3 &minus; 1", 5),
        ("log(3) × 2", 2 * math.log(3)),
        ("min(2.4, 3.2) + max(1, 2, -1)", 4.4),
        ("sqrt(9) × exp(0)", 3),
        (r"$0.2 \times 1.0986$", 0.21972),
        (r"$2 \cdot 3$", 6),
        (r"$-3^2$", -9),
        (r"$(-3)^{2}$", 9),
        (r"$2^{-1} + 2^{1 + 1}$", 4.5),
        (r"$\frac{1}{3} + \tfrac{2}{3}$", 1),
        (r"$\sqrt{16}$", 4),
        (r"$\log 3$", math.log(3)),
        (r"$2 \log(0.6 / 0.2)$", 2 * math.log(3)),
        (r"$\ln\bigl(2\bigr) - \log \frac{1}{2}$", 2 * math.log(2)),
        (r"$\exp(-1) + e^{-1}$", 2 / math.e),
        (r"$\min\left(2.4,\ 3.2\right)$", 2.4),
        (r"$1\,000 + 1{,}000$", 2000),
        (r"$1 \times 10^{-9}$", 1e-9),
        (r"$50\% \times 4$", 2),
        (r"$3 - {2}$", 1),
    ],
)
def test_arithmetic(text, number):
    assert read_side(side(text)).number == pytest.approx(number, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "at", "reason"),
    [
        ("2 3", 2, "is not read"),
        ("2 +", None, "a number or a bracket is missing"),
        ("1.2.3", 0, "is not read"),
        ("(1, 2)", 2, "is not read"),
        ("2 / 3 (4)", 6, "is not read"),
        ("2^3^4", 3, "is not read"),
        ("1 / 0", 0, "it has no number"),
        ("log(-1)", 0, "it has no number"),
        ("()", None, "a number or a bracket is missing"),
        ("9" * 400, 0, "it has no number"),
        (r"$2^10$", 3, "is not read"),
        (r"$\log_2 8$", 5, "is not read"),
        (r"$\log 2 \times 3$", 8, "is not read"),
        (r"$\log(2)^2$", 8, "is not read"),
        (r"$\frac12$", 6, "is not read"),
        (r"$\sqrt[3]{8}$", 6, "is not read"),
        (r"$(-8)^{0.5}$", 1, "it has no number"),
        (r"$\log((-8)^{0.5})$", 1, "it has no number"),
        (r"$|0.5 - 1|$", 1, "is not read"),
        (r"$9^{9^{9}}$", 1, "it has no number"),
        (r"$1\frac{1}{2}$", 2, "is not read"),
        ("(" * 40 + "1" + ")" * 40, DEEPEST + 1, f"brackets nest more than {DEEPEST} deep"),
        ("$" + r"\log" * 40 + " 2$", 1 + 4 * DEEPEST, "is not read"),
    ],
)
def test_what_is_not_plain_arithmetic_has_no_number(text, at, reason):
    with pytest.raises(Unreadable) as caught:
        read_side(side(text))

    assert str(caught.value).endswith(reason)
    assert (caught.value.token and caught.value.token.offset) == at


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("2.40", ("2.40", False)),
        ("−3", ("-3", False)),
        ("+3", ("3", False)),
        ("(0.5)", ("0.5", False)),
        ("20%", ("20", True)),
        ("1,000", ("1000", False)),
        (r"$2.1 \times 10^{-4}$", ("2.1e-4", False)),
        ("1e-9", ("1e-9", False)),
        ("1 + 2", None),
        (r"$2 \times 10^{0.5}$", None),
        (r"$2 \times 10^{100}$", None),
        ("", None),
    ],
)
def test_the_digits_of_a_single_number(text, digits):
    assert plain_number(side(text)) == digits


def test_placeholders_are_read_as_they_are_printed_and_nobody_typed_them():
    whole, numbers = read("3 - {=b}", {4: "−1.5"})

    assert read_side(whole.parts).number == 4.5
    assert [(n.text, n.typed, n.offset, n.end) for n in numbers] == [("3", True, 0, 1), ("1.5", False, 4, 8)]
    # As a reader sees it: a square binds closer than the sign, and a product closer than a quotient after it.
    assert read_side(read("${=b}^2$", {1: "-3"})[0].parts).number == -9
    assert read_side(read("$1 / {=t}$", {5: r"2 \times 10^{-1}"})[0].parts).number == pytest.approx(0.05)


@settings(max_examples=300, deadline=None)
@given(
    st.text(st.sampled_from("0123456789.,+-*/^_%()[]{}$=&;|<>\\ \nelogxy×−≈'`\"#²"), max_size=120)
    | st.text(max_size=120)
    | st.lists(
        st.sampled_from(
            ["1", "0.25", "(", ")", "{", "}", r"\frac", r"\log ", "^", "e^", "-", "×", r"\times ", "$", ","]
        ),
        max_size=60,
    ).map("".join)
)
def test_any_text_is_read_or_refused_and_never_takes_long(text):
    start = time.perf_counter()
    whole, _ = read(text)
    waiting = [whole]
    while waiting:
        group = waiting.pop()
        waiting += [part for part in group.parts if part.kind == "group"]
        if group.parts:
            try:
                number = read_side(group.parts).number
            except Unreadable:
                continue
            assert math.isfinite(number)
    assert time.perf_counter() - start < 2


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.sampled_from("+-×/"))
def test_two_numbers_and_a_sign(a, b, sign):
    python = {"+": a + b, "-": a - b, "×": a * b, "/": a / b}[sign]

    assert read_side(side(f"{a} {sign} {b}")).number == pytest.approx(python, rel=1e-12)
