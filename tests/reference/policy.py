"""Ratios, surrogates and the policy loss."""

from reference.lists import each, exp, under_mask


def log_ratio(logprobs, old_logprobs):
    return each(lambda new, old: new - old, logprobs, old_logprobs)


def ratio(logprobs, old_logprobs):
    return each(lambda new, old: exp(new - old), logprobs, old_logprobs)


def surrogate(ratio, advantages):
    return each(lambda rho, A: rho * A, ratio, advantages)


def clip_ratio(ratio, *, epsilon):
    return each(lambda rho: min(max(rho, 1 - epsilon), 1 + epsilon), ratio)


def clipped_surrogate(ratio, advantages, *, epsilon):
    return each(lambda rho, A: min(rho * A, min(max(rho, 1 - epsilon), 1 + epsilon) * A), ratio, advantages)


def policy_loss(logprobs, old_logprobs, advantages, *, epsilon, mask=None):
    def loss(new, old, A):
        rho = exp(new - old)
        # 0 * inf is NaN to a float; the formula's limit is 0.
        return -min(rho * A, min(max(rho, 1 - epsilon), 1 + epsilon) * A) if A != 0 else 0.0

    return under_mask(loss, mask, logprobs, old_logprobs, advantages)
