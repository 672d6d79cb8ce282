"""Names inside one item: every use is known, every name is used, and dependence is what gradients need."""

from collections.abc import Iterator, Mapping

from build_tools import expression as language
from build_tools.errors import Fault, Place, did_you_mean
from build_tools.model import Expression, Item
from build_tools.prose import expressions_by_name, placeholders, values_by_name


def check_names(item: Item, places: Mapping[str, Place]) -> list[Fault]:
    """All faults in the use of names; `places` says where each given and value is named."""
    used: set[str] = set()
    faults: list[Fault] = []
    known: list[str] = []
    for given in item.given:
        if given.name in known:
            faults.append(_twice(given.name, places))
        known.append(given.name)
    for value in item.values:
        faults += _unknown(value.expression, known, used)
        if value.name in known:
            faults.append(_twice(value.name, places))
        known.append(value.name)
    for check in item.checks:
        for each in (check.holds, check.instead, *(change for _, change in check.changes)):
            if each is not None:
                faults += _unknown(each, known, used)
        for name, change in check.changes:
            if name not in known:
                faults.append(
                    Fault(
                        change.place,
                        "unknown-name",
                        f'unless changes "{name}", which is neither given nor a value; {did_you_mean(name, known)}',
                    )
                )
    if item.answer:
        used.add(item.answer.value.text)
        if item.answer.value.text not in values_by_name(item.values):
            faults.append(
                Fault(
                    item.answer.value.place,
                    "unknown-name",
                    f'"{item.answer.value.text}" is not one of the values; {did_you_mean(item.answer.value.text, values_by_name(item.values))}',
                )
            )
    if item.figure:
        for _, argument in item.figure.arguments:
            faults += _unknown(argument, known, used)
    if not faults:
        faults += _gradients(item)
    values = values_by_name(item.values)
    literals = [(g.name, g.expression) for g in item.given] + [(v.name, v.digits) for v in item.values]
    lists = {name for name, literal in literals if literal.text.startswith("[")}
    for section in item.sections:
        for each in placeholders(section.prose):
            used.add(each.name)
            at = section.prose.place(each.offset)
            if each.name not in known:
                faults.append(
                    Fault(
                        at,
                        "unknown-name",
                        f'"{each.name}" is neither given nor a value; {did_you_mean(each.name, known)}',
                    )
                )
            elif each.equation and not (
                each.name in values
                and language.is_plain_arithmetic(tree := values[each.name].expression.tree)
                and lists.isdisjoint(language.dependencies(tree, {}))
            ):
                faults.append(
                    Fault(
                        at,
                        "not-arithmetic",
                        f"{{=={each.name}}} writes an equation of numbers and + - * / ** alone; write {{={each.name}}}, or split the value into steps",
                    )
                )
    if faults:  # a mistyped name would be reported as unused as well
        return faults
    return [
        Fault(
            places[name], "unused-name", f'"{name}" is used nowhere; refer to it as {{={name}}} or delete it'
        )
        for name in known
        if name not in used
    ]


def _twice(name: str, places: Mapping[str, Place]) -> Fault:
    return Fault(places[name], "duplicate-name", f'"{name}" is given and a value as well; rename one of them')


def _unknown(expression: Expression, known: list[str], used: set[str]) -> Iterator[Fault]:
    for name in language.names(expression.tree):
        used.add(name.id)
        if name.id not in known:
            yield Fault(
                language.node_place(expression, name),
                "unknown-name",
                f'"{name.id}" is neither given nor an earlier value; {did_you_mean(name.id, known)}',
            )


def _gradients(item: Item) -> Iterator[Fault]:
    """A gradient with respect to a name on which the expression does not depend would be a zero that shows nothing."""
    values = expressions_by_name(item.values)
    checks = [
        each
        for check in item.checks
        for each in (check.holds, check.instead, *(change for _, change in check.changes))
        if each
    ]
    figure = [argument for _, argument in item.figure.arguments] if item.figure else []
    for expression in (*values.values(), *checks, *figure):
        for call in language.calls(expression.tree):
            if call.func.id == language.GRADIENT and call.args[1].id not in language.dependencies(
                call.args[0], values
            ):
                yield Fault(
                    language.node_place(expression, call),
                    "no-dependence",
                    f'the expression does not depend on "{call.args[1].id}", so its gradient shows nothing; take it with respect to a name that stands in it',
                )
