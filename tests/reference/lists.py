"""Helpers of the twins: nested lists, and an exponential that overflows to infinity."""

import math


def each(function, *arguments):
    """Apply a function of floats to nested lists of one shape, element by element."""
    if not isinstance(arguments[0], list | tuple):
        return function(*arguments)
    assert len({len(argument) for argument in arguments}) == 1, "the lists must have one shape"
    return [each(function, *elements) for elements in zip(*arguments, strict=True)]


def flat(x):
    """List the elements of nested lists, row by row."""
    return [element for row in x for element in flat(row)] if isinstance(x, list | tuple) else [x]


def rows(x):
    """List the innermost lists."""
    return [row for part in x for row in rows(part)] if x and isinstance(x[0], list | tuple) else [x]


def runs(sequence_ids):
    """List the places of each sequence of a row: a sequence is a run of equal numbers."""
    found = []
    for t, number in enumerate(sequence_ids):
        if t == 0 or number != sequence_ids[t - 1]:
            found.append([])
        found[-1].append(t)
    return found


def exp(x):
    """Exponentiate, with infinity where Python would raise."""
    return math.exp(x) if x < 709 else math.inf


def under_mask(function, mask, *arguments):
    """Apply a function per token, 0 where the mask is False; without a mask everything counts."""
    if mask is None:
        return each(function, *arguments)
    return each(lambda counts, *x: function(*x) if counts else 0.0, mask, *arguments)


def each_place(function, mask, logits, *tokens):
    """Apply a function to the logits of each place, which are innermost, and to what else stands there."""
    if logits and not isinstance(logits[0], list | tuple):
        return 0.0 if mask is False else function(logits, *tokens)
    masks = [None] * len(logits) if mask is None else mask
    return [each_place(function, *place) for place in zip(masks, logits, *tokens, strict=True)]
