"""Weights for tokens that something other than the trainer sampled."""

import math

from reference.lists import under_mask
from reference.policy import by_sequence, ratio


def truncated_weights(logprobs, sampler_logprobs, mask, *, level, max_weight, sequence_ids=None):
    def cap(weight):
        return min(weight, max_weight)

    return under_mask(cap, mask, _weights(logprobs, sampler_logprobs, mask, level, sequence_ids))


def masked_weights(
    logprobs, sampler_logprobs, mask, *, level, min_weight, max_weight, sequence_ids=None
):  # fmt: skip
    def keep(weight):
        return weight if min_weight <= weight <= max_weight else 0.0

    return under_mask(keep, mask, _weights(logprobs, sampler_logprobs, mask, level, sequence_ids))


def _weights(logprobs, sampler_logprobs, mask, level, sequence_ids):
    weights = ratio(logprobs, sampler_logprobs)
    return weights if level == "token" else by_sequence(math.prod, weights, mask, sequence_ids)
