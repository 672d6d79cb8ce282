"""Numbers, signs and brackets of prose, in text and in formulas, each with its place."""

from build_tools.tex import find_math
from build_tools.tokens import Token, tokens


def read(text: str, filled: dict[int, str] | None = None) -> tuple[Token, list[Token]]:
    return tokens(text, find_math(text), filled or {})


def side(text: str) -> tuple[Token, ...]:
    """The tokens of a text that is one formula, or one side in running text."""
    parts = read(text)[0].parts
    return parts[0].parts if parts and parts[0].text == "$" else parts


def kinds(text: str) -> str:
    return " ".join(f"{token.kind}:{token.text}" for token in side(text))


def test_kinds_in_text():
    assert kinds("2 × 0.5 = 1") == "number:2 sign:* number:0.5 relation:= number:1"
    assert kinds("half-way, *two* * 3") == (
        "stop: symbol:half stop: stop:- stop: symbol:way stop: comma:, stop: symbol:two stop: sign:* number:3"
    )
    assert kinds("2<sup>3</sup> &minus; <b>1</b>&nbsp;&pi; 4\\% \\* 5)") == (
        "number:2 sign:^ group:{ sign:- number:1 symbol:π number:4 sign:% stop:* number:5 stop:)"
    )


def test_kinds_in_formulas():
    assert kinds(r"$\rho_t A = \log\,2 \cdot \bigl(x\bigr)$") == (
        "symbol:rho sign:_ symbol:t symbol:A relation:= function:log number:2 sign:* group:("
    )
    assert kinds(r"$a \\ & \text{if} \le \begin{cases} e^x \{1\} |y| [0, 1) \end{cases}$") == (
        "symbol:a stop:\\ stop:& group:\\text{ stop: stop:le stop:\\begin{cases} function:e sign:^ symbol:x "
        r"group:\{ other:| symbol:y other:| group:[ stop:\end{cases}"
    )


def test_every_token_has_its_place():
    text = "So 0.2 × (1 + {=a}) = $\\frac{=b}{2}$."
    whole, numbers = read(text, {text.index("{=a}"): "−3", text.index("{=b}"): "{4}"})

    assert [(n.text, text[n.offset : n.end], n.typed) for n in numbers] == [
        ("0.2", "0.2", True),
        ("1", "1", True),
        ("3", "{=a}", False),
        ("4", "{=b}", False),
        ("2", "2", True),
    ]
    assert [text[part.offset : part.end] for part in whole.parts if part.kind == "group"] == [
        "(1 + {=a})",
        r"$\frac{=b}{2}$",
    ]


def test_a_bracket_without_its_other_half_hides_nothing():
    assert [number.text for number in read("(1 + [2 $3)$ 4")[1]] == ["1", "2", "3", "4"]
    assert [part.text for part in read("$(1$ 2")[0].parts] == ["$", "2"]
    assert kinds("1) + 2") == "number:1 stop:) sign:+ number:2"


def test_letters_and_unknown_commands_are_symbols_and_functions_are_not():
    kinds = {
        text: side(text)[0].symbolic
        for text in (r"$\rho$", "$x$", r"$(1 + \epsilon)$", r"$(1 = 1)$", "$(1)$", r"$\log$")
    }

    assert [text for text, symbolic in kinds.items() if not symbolic] == ["$(1)$", r"$\log$"]


def test_all_numbers_are_found_wherever_they_stand():
    text = r"A100 and 100th, x_{123}: $a_{456} \text{or 789}$, (`1`) [12.5 %]"
    numbers = [number.text for number in read(text)[1]]

    assert numbers == ["100", "123", "456", "789", "1", "12.5"]


def test_a_placeholder_that_nothing_is_known_of_is_a_symbol():
    assert kinds("1.5 × {=a}") == "number:1.5 sign:* symbol:{=a}"
