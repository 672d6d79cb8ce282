"""From losses per token to one number."""

import math

from reference.lists import flat, rows, runs


def masked_sum(x, mask):
    return math.fsum(element for element, counts in zip(flat(x), flat(mask), strict=True) if counts)


def masked_mean(x, mask):
    counted = [element for element, counts in zip(flat(x), flat(mask), strict=True) if counts]
    return math.fsum(counted) / len(counted) if counted else 0.0


def aggregate(losses, mask, *, mode, denominator=None, sequence_ids=None):
    sequences = _sequences(losses, mask, sequence_ids)
    if mode == "sequence_mean_token_mean":
        total = math.fsum(math.fsum(tokens) / len(tokens) for tokens in sequences)
    else:
        total = math.fsum(loss for tokens in sequences for loss in tokens)
    if denominator is None:
        if mode == "constant":
            raise ValueError("the constant mode needs a denominator")
        denominator = batch_count(mask, mode=mode, sequence_ids=sequence_ids)
    return total / denominator if sequences else 0.0


def batch_count(mask, *, mode, sequence_ids=None):
    sequences = _sequences(mask, mask, sequence_ids)
    return sum(map(len, sequences)) if mode == "token_mean" else len(sequences)


def _sequences(x, mask, sequence_ids):
    """List the counted elements of each sequence that has one."""
    found = []
    ids = [[0] * len(row) for row in rows(mask)] if sequence_ids is None else rows(sequence_ids)
    for row, counts, numbers in zip(rows(x), rows(mask), ids, strict=True):
        for places in runs(numbers):
            tokens = [row[t] for t in places if counts[t]]
            if tokens:
                found.append(tokens)
    return found
