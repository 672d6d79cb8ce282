"""The strength of the leash."""

import math

from reference.lists import rows, runs


def adapt_beta(kl, mask, *, beta, target, horizon, unit, sequence_ids=None):
    sequences = []
    for i, (row, counts) in enumerate(zip(rows(kl), rows(mask), strict=True)):
        places = [range(len(row))] if sequence_ids is None else runs(rows(sequence_ids)[i])
        sequences += [[row[t] for t in places_of_one if counts[t]] for places_of_one in places]
    sequences = [sequence for sequence in sequences if sequence]
    if not sequences:
        return beta
    if unit == "token":
        sizes = [x for sequence in sequences for x in sequence]
    else:
        sizes = [math.fsum(sequence) for sequence in sequences]
    error = math.fsum(sizes) / len(sizes) / target - 1
    return beta * (1 + min(max(error, -0.2), 0.2) * len(sequences) / horizon)
