"""The laboratory: gradients of the KL divergence and of the entropy."""

import math

from reference.logits import softmax


def kl_gradient(logits, ref_logits):
    pi, ref = softmax(logits), softmax(ref_logits)
    logs = [math.log(p / q) for p, q in zip(pi, ref, strict=True)]
    divergence = math.fsum(p * log for p, log in zip(pi, logs, strict=True))
    return [p * (log - divergence) for p, log in zip(pi, logs, strict=True)]


def sampled_kl_gradient(logits, ref_logits, *, estimator):
    pi, ref = softmax(logits), softmax(ref_logits)
    slopes = {  # d k_j / d log pi(a), with d = log ref - log pi
        "k1": lambda p, q: 1.0,
        "k2": lambda p, q: -math.log(q / p),
        "k3": lambda p, q: 1 - q / p,
    }
    weights = [p * slopes[estimator](p, q) for p, q in zip(pi, ref, strict=True)]
    # d log pi(a) / d z_i = 1[a = i] - pi(i)
    total = math.fsum(weights)
    return [weight - p * total for weight, p in zip(weights, pi, strict=True)]


def entropy_gradient(logits):
    pi = softmax(logits)
    H = -math.fsum(p * math.log(p) for p in pi)
    return [-p * (math.log(p) + H) for p in pi]
