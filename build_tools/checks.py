"""Runs checks and judges them. Knows torch through `interpret`; `evaluate` imports it only when something must run."""

import ast
from collections.abc import Mapping

from build_tools import expression as language
from build_tools.digits import shown
from build_tools.errors import Fault
from build_tools.interpret import Interpreter, Scope, to_number
from build_tools.libraries import LibraryFunction
from build_tools.model import Check, CheckOutcome, Comparison, Expression


def run_check(check: Check, exact: Scope) -> CheckOutcome:
    """Runs the comparison as it stands, and again under the change that must break it."""
    result = _compare(check.holds, exact)
    changes = {name: exact.run(change) for name, change in check.changes}
    changed = Scope(exact.functions, {**exact.given, **changes}, exact.expressions)
    numbers = {name: to_number(change) for name, change in changes.items()}
    return CheckOutcome(result, numbers, _compare(check.instead or check.holds, changed, " under unless"))


def _compare(expression: Expression, scope: Scope, when: str = "") -> Comparison:
    """Runs a comparison and keeps what both sides came to, for the page."""
    interpreter = Interpreter(scope.functions, scope, expression)
    holds = bool(interpreter.run())
    tree = expression.tree
    parts = tree.args if isinstance(tree, ast.Call) else (tree.left, *tree.comparators)
    results = [interpreter.value(part) for part in parts]
    for part, result in zip(parts, results, strict=True):
        if not bool(result.isfinite().all()):
            raise interpreter.fail(
                part, "not-finite", f"the result{when} is {shown(to_number(result))}; change an input"
            )
    numbers = [to_number(result) for result in results]
    sides = [shown(number) for number in numbers]
    if isinstance(tree, ast.Call):
        a, b, tolerance = sides
        return Comparison(f"{a} is {'within' if holds else 'not within'} {tolerance} of {b}", holds)
    if len(set(sides)) < len(set(numbers)):
        # They differ by less than is usually shown, and here the difference decides.
        sides = [repr(number) for number in numbers]
    signs = [_SIGNS[type(op).__name__] for op in tree.ops]
    return Comparison(
        " ".join([sides[0], *(f"{sign} {side}" for sign, side in zip(signs, sides[1:], strict=True))]), holds
    )


_SIGNS = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}


def verdict(
    check: Check,
    outcome: CheckOutcome,
    expressions: Mapping[str, Expression],
    functions: Mapping[str, LibraryFunction],
) -> list[Fault]:
    """A check must hold, must be able to fail, and must reach the library."""
    faults = []
    if not outcome.result.holds:
        faults.append(
            Fault(
                check.holds.place,
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
    for compared in (check.holds, check.instead):
        if compared and not _called(compared, expressions) & set(functions):
            faults.append(
                Fault(
                    compared.place,
                    "no-library",
                    "the comparison calls no library function, so it shows nothing of the library; call one",
                )
            )
    return faults


def _called(expression: Expression, expressions: Mapping[str, Expression]) -> set[str]:
    """The functions that the expression calls, through values too."""
    names = language.dependencies(expression.tree, expressions)
    reached = [expression, *(expressions[name] for name in names if name in expressions)]
    return {call.func.id for each in reached for call in language.calls(each.tree)}
