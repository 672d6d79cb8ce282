"""The KL divergence: its estimators, the penalty, the losses, and the exact one."""

import math

from reference.lists import each, each_place, exp, under_mask
from reference.logits import softmax


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


def kl_loss(logprobs, ref_logprobs, *, estimator, gradient, mask=None):
    values = {"k1": kl_k1, "k2": kl_k2, "k3": kl_k3}
    return values[estimator](logprobs, ref_logprobs, mask=mask)


def kl_loss_slope(logprobs, ref_logprobs, *, estimator, gradient, mask=None):
    """The derivative that stands for that of `kl_loss` with respect to `logprobs`."""

    def slope(new, ref):
        d = ref - new
        values = {"k1": [-d], "k2": [d**2 / 2], "k3": [exp(d), -1, -d]}
        own = {"k1": [1], "k2": [-d], "k3": [1, -exp(d)]}
        parts = {
            "own": own[estimator],
            "straight_through": own["k2"],
            "score_function": own[estimator] + values[estimator],
        }
        return math.fsum(parts[gradient])

    return under_mask(slope, mask, logprobs, ref_logprobs)


def full_kl(logits, ref_logits, *, mask=None):
    def divergence(z, ref):
        pairs = zip(softmax(z), softmax(ref), strict=True)
        return math.fsum(p * math.log(p / q) for p, q in pairs if p > 0)

    return each_place(divergence, mask, logits, ref_logits)
