"""From losses per token to one number."""

import math

from reference.lists import flat, rows


def masked_sum(x, mask):
    return math.fsum(element for element, counts in zip(flat(x), flat(mask), strict=True) if counts)


def masked_mean(x, mask):
    counted = [element for element, counts in zip(flat(x), flat(mask), strict=True) if counts]
    return math.fsum(counted) / len(counted) if counted else 0.0


def aggregate(losses, mask, *, mode, denominator=None):
    sequences = []
    for row, counts in zip(rows(losses), rows(mask), strict=True):
        tokens = [loss for loss, counted in zip(row, counts, strict=True) if counted]
        if tokens:
            sequences.append(tokens)
    if mode == "sequence_mean_token_mean":
        total = math.fsum(math.fsum(tokens) / len(tokens) for tokens in sequences)
    else:
        total = math.fsum(loss for tokens in sequences for loss in tokens)
    if denominator is None:
        if mode == "constant":
            raise ValueError("the constant mode needs a denominator")
        denominator = sum(map(len, sequences)) if mode == "token_mean" else len(sequences)
    return total / denominator if sequences else 0.0
