"""Outcomes as JSON for the cache, and what an outcome rests on."""

from build_tools.model import CheckOutcome, Comparison, Function, Item, Outcome


def data(item: Item) -> list:
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


def to_json(outcome: Outcome) -> dict:
    return {
        "values": outcome.values,
        "checks": [
            [[each.result.text, each.result.holds], each.changes, [each.counter.text, each.counter.holds]]
            for each in outcome.checks
        ],
        "figure": outcome.figure,
        "functions": {name: [f.module, f.numbers] for name, f in outcome.functions.items()},
    }


def from_json(data: dict) -> Outcome:
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
