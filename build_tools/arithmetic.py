r"""Plain arithmetic: from the tokens of one side of an equation to its number.

0.2 \times 1.0986        {=ceiling} × {=A}        \frac{1}{3} - 2^{-1}        \min(2.4, 3.2)
"""

import math
import re
from dataclasses import dataclass

from build_tools.tokens import Token

DEEPEST = 30  # nested brackets
# What may follow a number without a sign; not a fraction, because 1½ is no product.
_FACTORS = ("log", "ln", "exp", "e", "sqrt", "min", "max")


class Unreadable(Exception):
    """This is no plain arithmetic; `token` is where the reading stopped, None at the end."""

    def __init__(self, token: Token | None, reason: str):
        super().__init__(reason)
        self.token = token


@dataclass(frozen=True)
class Side:
    """One side of an equation: its number and, where it is a single number, the digits as printed."""

    number: float
    printed: str | None
    percent: bool


def plain_number(side: tuple[Token, ...]) -> tuple[str, bool] | None:
    r"""The digits of a side that is a single number, such as -0.20, 20\% or 2.1 \times 10^{-4}; and whether per cent."""
    while len(side) == 1 and side[0].kind == "group":
        side = side[0].parts
    signs = [token.text for token in side[:1] if token.kind == "sign" and token.text in "+-"]
    match [(token.kind, token.text) for token in side[len(signs) :]]:
        case [("number", digits)]:
            printed, percent = digits, False
        case [("number", digits), ("sign", "%")]:
            printed, percent = digits, True
        case [("number", digits), ("sign", "*"), ("number", "10"), ("sign", "^"), ("group", "{")]:
            power = "".join(token.text for token in side[-1].parts)
            if not re.fullmatch(r"-?\d{1,2}", power):
                return None
            printed, percent = f"{digits}e{power}", False
        case _:
            return None
    return "".join(signs).replace("+", "") + _digits(printed), percent


def _digits(number: str) -> str:
    """Without the signs between thousands."""
    return re.sub(r"\{,\}|\\,|,", "", number)


def read_side(side: tuple[Token, ...]) -> Side:
    """The number of one side; raises Unreadable for whatever is not plain arithmetic, and for what has no number."""
    try:
        number = _Reader(side, 0).whole()
    except (ArithmeticError, TypeError, ValueError):  # a type error: the root of a negative number is complex
        raise Unreadable(side[0], "it has no number") from None
    if not isinstance(number, float) or not math.isfinite(number):
        raise Unreadable(side[0], "it has no number")
    printed, percent = plain_number(side) or (None, False)
    return Side(number, printed, percent)


class _Reader:
    """Reads a sum by recursive descent. Where two readings are possible, as in log 2 × 3 or 1/2(3), it reads none."""

    def __init__(self, parts: tuple[Token, ...], depth: int):
        self.parts = parts
        self.depth = depth
        self.at = 0
        if depth > DEEPEST:
            raise Unreadable(parts[0] if parts else None, f"brackets nest more than {DEEPEST} deep")

    def is_next(self, kind: str, *texts: str) -> bool:
        return (
            self.at < len(self.parts)
            and self.parts[self.at].kind == kind
            and (not texts or self.parts[self.at].text in texts)
        )

    def take(self) -> Token:
        if self.at == len(self.parts):
            raise self.stuck()
        self.at += 1
        return self.parts[self.at - 1]

    def stuck(self, back: int = 0) -> Unreadable:
        token = self.parts[self.at - back] if 0 <= self.at - back < len(self.parts) else None
        return Unreadable(
            token, "a number or a bracket is missing" if token is None else f'"{token.text}" is not read'
        )

    def inside(self, group: Token) -> float:
        return _Reader(group.parts, self.depth + 1).whole()

    def whole(self) -> float:
        number = self.sum()
        if self.at < len(self.parts):
            raise self.stuck()
        return number

    def sum(self) -> float:
        number = self.product()
        while self.is_next("sign", "+", "-"):
            number += self.product() if self.take().text == "+" else -self.product()
        return number

    def product(self) -> float:
        number, divided = self.factor(), False
        while True:
            if self.is_next("sign", "*", "/"):
                if self.take().text == "*":
                    number *= self.factor()
                else:
                    number, divided = number / self.factor(), True
            elif not divided and (self.is_next("group", "(", "[") or self.is_next("function", *_FACTORS)):
                number *= self.power()
            else:
                return number

    def factor(self) -> float:
        negative = False
        while self.is_next("sign", "+", "-"):
            negative ^= self.take().text == "-"
        return -self.power() if negative else self.power()

    def power(self) -> float:
        number = self.atom()
        if self.is_next("sign", "^"):
            self.take()
            number = number ** self.exponent()
        if self.is_next("sign", "%"):
            self.take()
            number /= 100
        return number

    def exponent(self) -> float:
        token = self.take()
        if token.kind == "group" and token.text == "{":
            return self.inside(token)
        if (
            token.kind == "number" and len(token.text) == 1
        ):  # TeX raises no more than one character without braces
            return float(token.text)
        raise self.stuck(1)

    def atom(self) -> float:
        token = self.take()
        match token.kind:
            case "number" if token.text.count(".") <= 1:
                return float(_digits(token.text))
            case "group" if token.text != r"\{":
                return self.inside(token)
            case "function":
                return self.function(token)
        raise self.stuck(1)

    def function(self, function: Token) -> float:
        match function.text:
            case "e":
                self.take()
                return math.exp(self.exponent())
            case "frac" | "tfrac" | "dfrac":
                return self.braces() / self.braces()
            case "sqrt":
                return math.sqrt(self.braces())
            case "min" | "max" as name:
                numbers = [_Reader(each, self.depth + 1).whole() for each in self.members()]
                return min(numbers) if name == "min" else max(numbers)
        bracket = self.is_next("group", "(", "[")
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.stuck(1)
        number = self.inside(self.take()) if bracket else self.power()
        self.depth -= 1
        if self.is_next("sign", "^") or (not bracket and self.is_next("sign", "*", "/")):
            raise self.stuck()
        return math.exp(number) if function.text == "exp" else math.log(number)

    def braces(self) -> float:
        if not self.is_next("group", "{", "("):
            raise self.stuck()
        return self.inside(self.take())

    def members(self) -> list[tuple[Token, ...]]:
        """What stands between the commas of the next bracket."""
        if not self.is_next("group", "(", "[", "{"):
            raise self.stuck()
        members: list[list[Token]] = [[]]
        for token in self.take().parts:
            if token.kind == "comma":
                members.append([])
            else:
                members[-1].append(token)
        return [tuple(member) for member in members]
