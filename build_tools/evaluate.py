"""evaluate: Bank -> Worked. Runs every expression, verifies every printed digit, executes every check.

An item whose data, libraries and versions are as before is answered from the cache, without importing torch.
"""

import functools
from collections.abc import Callable, Mapping

from build_tools import expression as language
from build_tools.cache import Cache
from build_tools.digits import shown, verify
from build_tools.errors import Fault
from build_tools.libraries import LibraryFunction, public_functions
from build_tools.model import Bank, Function, Item, Number, Outcome, Value, Worked
from build_tools.outcomes import data, from_json, to_json
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
    key = cache.key("evaluate", data(item))
    if (known := cache.get(key)) is not None:
        return from_json(known), []
    outcome, faults = evaluate_item(item, functions())
    if outcome is not None:
        cache.put(key, to_json(outcome))
    return outcome, faults


def evaluate_item(item: Item, functions: Mapping[str, LibraryFunction]) -> tuple[Outcome | None, list[Fault]]:
    """Everything computed of one item; None, with the faults, if anything is wrong."""
    from build_tools.checks import run_check, verdict
    from build_tools.interpret import EvaluationError, Scope, to_number, to_tensor

    faults = _taken(item, functions)
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
        if wrong := _digits(value, numbers[value.name], from_printed):
            faults += wrong
            printed.pop(value.name)  # what rests on this value is judged by its true digits
    outcomes = []
    for check in item.checks:
        try:
            outcome = run_check(check, exact)
        except EvaluationError as error:
            faults.append(error.fault)
            continue
        faults += verdict(check, outcome, expressions, functions)
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


def _taken(item: Item, functions: Mapping[str, LibraryFunction]) -> list[Fault]:
    """A name that is a function as well would hide it in the Python that the page prints."""
    named = [(g.name, g.expression) for g in item.given] + [(v.name, v.expression) for v in item.values]
    return [
        Fault(
            expression.place,
            "bad-name",
            f'"{name}" is a function of {functions[name].module}; choose another name, like {name}_0',
        )
        for name, expression in named
        if name in functions
    ]


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
                f"the result is {shown(exact)}; print "
                + ("a list of as many numbers" if isinstance(exact, tuple) else "one number"),
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
