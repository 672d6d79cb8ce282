"""Ratios, surrogates and the policy losses."""

import math

from reference.lists import each, exp, runs, under_mask


def log_ratio(logprobs, old_logprobs):
    return each(lambda new, old: new - old, logprobs, old_logprobs)


def ratio(logprobs, old_logprobs, *, log_bound=None):
    bound = math.inf if log_bound is None else log_bound
    return each(lambda new, old: exp(min(max(new - old, -bound), bound)), logprobs, old_logprobs)


def sequence_ratio(logprobs, old_logprobs, mask, *, sequence_ids=None):
    def geometric_mean(ratios):
        return math.prod(ratios) ** (1 / len(ratios))

    return by_sequence(geometric_mean, ratio(logprobs, old_logprobs), mask, sequence_ids)


def surrogate(ratio, advantages):
    return each(lambda rho, A: rho * A, ratio, advantages)


def clip_ratio(ratio, *, epsilon, epsilon_high=None):
    ceiling = 1 + (epsilon if epsilon_high is None else epsilon_high)
    return each(lambda rho: min(max(rho, 1 - epsilon), ceiling), ratio)


def clipped_surrogate(ratio, advantages, *, epsilon, epsilon_high=None, dual_clip=None):
    clipped = clip_ratio(ratio, epsilon=epsilon, epsilon_high=epsilon_high)

    def objective(rho, near, A):
        smaller = min(rho * A, near * A)
        return smaller if dual_clip is None or A >= 0 else max(smaller, dual_clip * A)

    return each(objective, ratio, clipped, advantages)


def policy_loss(
    logprobs, old_logprobs, advantages, *, epsilon, epsilon_high=None, dual_clip=None, log_bound=None, mask=None
):  # fmt: skip
    widths = {"epsilon": epsilon, "epsilon_high": epsilon_high, "dual_clip": dual_clip}

    def loss(new, old, A):
        # 0 * inf is NaN to a float; the formula's limit is 0.
        return -clipped_surrogate(ratio(new, old, log_bound=log_bound), A, **widths) if A != 0 else 0.0

    return under_mask(loss, mask, logprobs, old_logprobs, advantages)


def sequence_policy_loss(
    logprobs, old_logprobs, advantages, mask, *, epsilon, epsilon_high=None, sequence_ids=None
):  # fmt: skip
    ratios = sequence_ratio(logprobs, old_logprobs, mask, sequence_ids=sequence_ids)

    def loss(s, A):
        return -clipped_surrogate(s, A, epsilon=epsilon, epsilon_high=epsilon_high)

    return under_mask(loss, mask, ratios, advantages)


def cispo_loss(
    logprobs, old_logprobs, advantages,
    *, epsilon_low=None, epsilon_high=None, min_ratio=None, max_ratio=None, mask=None,
):  # fmt: skip
    bounds = (epsilon_low, epsilon_high, min_ratio, max_ratio)

    def loss(new, old, A):
        return -_cispo_weight(new, old, *bounds) * A * new

    return under_mask(loss, mask, logprobs, old_logprobs, advantages)


def cispo_slope(
    logprobs, old_logprobs, advantages,
    *, epsilon_low=None, epsilon_high=None, min_ratio=None, max_ratio=None, mask=None,
):  # fmt: skip
    """The gradient of `cispo_loss`, which holds the weight fixed."""
    bounds = (epsilon_low, epsilon_high, min_ratio, max_ratio)

    def slope(new, old, A):
        return -_cispo_weight(new, old, *bounds) * A

    return under_mask(slope, mask, logprobs, old_logprobs, advantages)


def _cispo_weight(new, old, epsilon_low, epsilon_high, min_ratio, max_ratio):
    low = max(0 if epsilon_low is None else 1 - epsilon_low, 0 if min_ratio is None else min_ratio)
    high = min(
        math.inf if epsilon_high is None else 1 + epsilon_high, math.inf if max_ratio is None else max_ratio
    )
    return min(max(exp(new - old), low), high)


def by_sequence(function, x, mask, sequence_ids):
    """Give each counted token a function of the counted elements of its sequence; 0 elsewhere."""
    if x and isinstance(x[0], list | tuple):
        ids = [None] * len(x) if sequence_ids is None else sequence_ids
        return [by_sequence(function, *row) for row in zip(x, mask, ids, strict=True)]
    result = [0.0] * len(x)
    for places in [range(len(x))] if sequence_ids is None else runs(sequence_ids):
        counted = [t for t in places if mask[t]]
        for t in counted:
            result[t] = function([x[k] for k in counted])
    return result
