"""evaluate: Bank -> Worked. Runs every expression, verifies every printed digit, executes every check.

An item whose data, libraries and versions are as before is answered from the cache, without importing torch.
"""

import ast
import functools
from collections.abc import Callable, Mapping

from build_tools import expression as language
from build_tools.cache import Cache
from build_tools.digits import shown, verify
from build_tools.errors import Fault
from build_tools.libraries import LibraryFunction, public_functions
from build_tools.model import (
    Bank,
    Check,
    CheckOutcome,
    Comparison,
    Expression,
    Function,
    Item,
    Number,
    Outcome,
    Value,
    Worked,
)
from build_tools.prose import expressions_by_name

Functions = Callable[[], Mapping[str, LibraryFunction]]


def evaluate(
    bank: Bank, libraries: tuple[str, ...], fingerprint: str, cache: Cache
) -> tuple[dict[str, Worked], list[Fault]]:
    """The worked items by id, and the faults of the others."""

    @functools.cache
    def functions() -> Mapping[str, LibraryFunction]:
        return public_functions(libraries, fingerprint)

    worked, faults = {}, []
    for document in bank.documents:
        for item in document.items:
            outcome, more = _cached(item, functions, cache)
            faults += more
            if outcome is not None:
                worked[item.id] = Worked(item, outcome)
    return worked, faults


def _cached(item: Item, functions: Functions, cache: Cache) -> tuple[Outcome | None, list[Fault]]:
    if not (item.values or item.checks or item.figure):
        return Outcome({}, (), {}, {}), []
    key = cache.key("evaluate", _data(item))
    if (known := cache.get(key)) is not None:
        return _from_json(known), []
    outcome, faults = evaluate_item(item, functions())
    if outcome is not None:
        cache.put(key, _to_json(outcome))
    return outcome, faults


def evaluate_item(item: Item, functions: Mapping[str, LibraryFunction]) -> tuple[Outcome | None, list[Fault]]:
    """Everything computed of one item; None, with the faults, if anything is wrong."""
    from build_tools.interpret import EvaluationError, Scope, to_number, to_tensor

    faults: list[Fault] = []
    expressions = expressions_by_name(item.values)
    given = {g.name: to_tensor(language.literal(g.expression.tree)) for g in item.given}
    printed = {v.name: to_tensor(language.literal(v.digits.tree)) for v in item.values}
    exact, as_printed = Scope(functions, given, expressions), Scope(functions, given, expressions, printed)
    numbers: dict[str, Number] = {}
    for value in item.values:
        try:
            numbers[value.name] = to_number(exact.lookup(value.name))
            from_printed = to_number(as_printed.run(value.expression))
        except EvaluationError as error:
            # Values that rest on this one fail with it, at the same place: said once.
            faults.append(error.fault)
            continue
        faults += _digits(value, numbers[value.name], from_printed)
    if faults:
        return None, faults
    outcomes = []
    for check in item.checks:
        try:
            outcome = _check(check, exact, given, functions, expressions)
        except EvaluationError as error:
            faults.append(error.fault)
            continue
        faults += _verdict(check, outcome, expressions, functions)
        outcomes.append(outcome)
    figure: dict[str, float] = {}
    for name, expression in item.figure.arguments if item.figure else ():
        try:
            figure[name] = to_number(exact.run(expression))
        except EvaluationError as error:
            faults.append(error.fault)
    if faults:
        return None, faults
    return Outcome(numbers, tuple(outcomes), figure, _used(item, functions)), []


def _digits(value: Value, exact: Number, from_printed: Number) -> list[Fault]:
    """The printed digits must be right from the exact inputs and from the inputs as the page prints them."""
    texts = [text.strip() for text in value.printed.split(",")]
    is_list = value.digits.text.startswith("[")
    numbers = exact if isinstance(exact, tuple) else (exact,)
    again = from_printed if isinstance(from_printed, tuple) else (from_printed,)
    if (
        isinstance(exact, tuple) != is_list
        or len(numbers) != len(texts)
        or any(isinstance(n, tuple | bool) for n in numbers)
    ):
        return [
            Fault(
                value.digits.place,
                "wrong-digits",
                f"the result is {shown(exact)}; print as many numbers as that, as a list",
            )
        ]
    for text, number, reread in zip(texts, numbers, again, strict=True):
        verdict = verify(number, text)
        if not verdict.ok:
            return [
                Fault(
                    value.digits.place,
                    "wrong-digits",
                    f'"{value.name}" is printed as {text}, but {verdict.hint}',
                )
            ]
        verdict = verify(reread, text)
        if not verdict.ok:
            return [
                Fault(
                    value.digits.place,
                    "printed-inputs",
                    f'"{value.name}" is printed as {text}, but from the inputs as printed {verdict.hint}; print another digit of an input',
                )
            ]
    return []


def _check(check: Check, exact, given, functions, expressions) -> CheckOutcome:
    from build_tools.interpret import Scope, to_number

    result = _compare(check.holds, exact)
    changes = {name: exact.run(change) for name, change in check.changes}
    changed = Scope(functions, {**given, **changes}, expressions)
    numbers = {name: to_number(change) for name, change in changes.items()}
    return CheckOutcome(result, numbers, _compare(check.instead or check.holds, changed))


def _compare(expression: Expression, scope) -> Comparison:
    """Runs a comparison and keeps what both sides came to, for the page."""
    from build_tools.interpret import Interpreter, to_number

    interpreter = Interpreter(scope.functions, scope, expression)
    holds = bool(interpreter.run())
    tree = expression.tree
    if isinstance(tree, ast.Call):
        a, b, tolerance = (shown(to_number(interpreter.value(argument))) for argument in tree.args)
        return Comparison(f"{a} is {'within' if holds else 'not within'} {tolerance} of {b}", holds)
    numbers = [to_number(interpreter.value(side)) for side in (tree.left, *tree.comparators)]
    sides = [shown(number) for number in numbers]
    if len(set(sides)) < len(set(numbers)):
        # They differ by less than is usually shown, and here the difference decides.
        sides = [repr(number) for number in numbers]
    signs = [_SIGNS[type(op).__name__] for op in tree.ops]
    return Comparison(
        " ".join([sides[0], *(f"{sign} {side}" for sign, side in zip(signs, sides[1:], strict=True))]), holds
    )


_SIGNS = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}


def _verdict(check: Check, outcome: CheckOutcome, expressions, functions) -> list[Fault]:
    faults = []
    at = check.holds.place
    if not outcome.result.holds:
        faults.append(
            Fault(
                at,
                "check-fails",
                f'"{check.claim.text}" does not hold: {outcome.result.text}; correct the claim or the numbers',
            )
        )
    elif outcome.counter.holds:
        where = check.instead.place if check.instead else check.changes[0][1].place
        faults.append(
            Fault(
                where,
                "vacuous-check",
                f'"{check.claim.text}" still holds after the change ({outcome.counter.text}); choose a change that breaks it',
            )
        )
    called = {
        call.func.id for each in _reached(check.holds, expressions) for call in language.calls(each.tree)
    }
    if not called & set(functions):
        faults.append(
            Fault(
                at,
                "no-library",
                f'"{check.claim.text}" calls no library function, so it shows nothing; call one',
            )
        )
    return faults


def _reached(expression: Expression, expressions: Mapping[str, Expression]) -> list[Expression]:
    names = language.dependencies(expression.tree, expressions)
    return [expression, *(expressions[name] for name in names if name in expressions)]


def _used(item: Item, functions: Mapping[str, LibraryFunction]) -> dict[str, Function]:
    """The library functions that the item calls, for the page."""
    checks = [each for check in item.checks for each in (check.holds, check.instead) if each]
    called = {
        call.func.id
        for each in (*(v.expression for v in item.values), *checks)
        for call in language.calls(each.tree)
    }
    return {
        name: Function(functions[name].module, functions[name].numbers)
        for name in sorted(called & set(functions))
    }


def _data(item: Item) -> list:
    """All that the outcome rests on, as JSON; places are left out, so that a moved item is still known."""
    return [
        [[g.name, g.expression.text] for g in item.given],
        [[v.name, v.expression.text, v.digits.text] for v in item.values],
        [
            [c.claim.text, c.holds.text, [[n, e.text] for n, e in c.changes], c.instead and c.instead.text]
            for c in item.checks
        ],
        [[name, e.text] for name, e in item.figure.arguments] if item.figure else [],
    ]


def _to_json(outcome: Outcome) -> dict:
    return {
        "values": outcome.values,
        "checks": [
            [[each.result.text, each.result.holds], each.changes, [each.counter.text, each.counter.holds]]
            for each in outcome.checks
        ],
        "figure": outcome.figure,
        "functions": {name: [f.module, f.numbers] for name, f in outcome.functions.items()},
    }


def _from_json(data: dict) -> Outcome:
    def freeze(value):
        return tuple(map(freeze, value)) if isinstance(value, list) else value

    return Outcome(
        {name: freeze(value) for name, value in data["values"].items()},
        tuple(
            CheckOutcome(
                Comparison(*result), {name: freeze(n) for name, n in changes.items()}, Comparison(*counter)
            )
            for result, changes, counter in data["checks"]
        ),
        {name: freeze(value) for name, value in data["figure"].items()},
        {name: Function(module, tuple(numbers)) for name, (module, numbers) in data["functions"].items()},
    )
