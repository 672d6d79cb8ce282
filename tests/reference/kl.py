"""The estimators of the KL divergence, and the penalty."""

import math

from reference.lists import each, exp, under_mask


def kl_k1(logprobs, ref_logprobs, *, mask=None):
    return under_mask(lambda new, ref: new - ref, mask, logprobs, ref_logprobs)


def kl_k2(logprobs, ref_logprobs, *, mask=None):
    return under_mask(lambda new, ref: (ref - new) ** 2 / 2, mask, logprobs, ref_logprobs)


def kl_k3(logprobs, ref_logprobs, *, mask=None):
    def estimate(new, ref):
        d = ref - new
        if abs(d) > 1:
            return exp(d) - 1 - d
        # The sum of d^n / n! from n = 2: the formula without its cancellation.
        return math.fsum(d**n / math.factorial(n) for n in range(2, 30))

    return under_mask(estimate, mask, logprobs, ref_logprobs)


def kl_penalty(logprobs, ref_logprobs, *, beta):
    return each(lambda new, ref: beta * (new - ref), logprobs, ref_logprobs)
