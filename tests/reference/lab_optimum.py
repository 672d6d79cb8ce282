"""The laboratory: the best policy under a leash, and what a proxy makes of it."""

import math

from reference.lab_bandit import expected_reward


def kl_divergence(probs, ref_probs):
    return math.fsum(p * math.log(p / q) for p, q in zip(probs, ref_probs, strict=True))


def kl_objective(probs, ref_probs, rewards, *, beta):
    return expected_reward(probs, rewards) - beta * kl_divergence(probs, ref_probs)


def kl_regularised_optimum(ref_probs, rewards, *, beta):
    weights = [q * math.exp((r - max(rewards)) / beta) for q, r in zip(ref_probs, rewards, strict=True)]
    return [weight / math.fsum(weights) for weight in weights]


def dpo_minimiser(ref_probs, rewards, *, beta):
    # Each pair's expected loss is a cross-entropy, smallest where sigma(beta (h_a - h_b)) is the probability
    # of that preference, sigma(r_a - r_b). All pairs can have that at once: h = r / beta and a constant.
    return kl_regularised_optimum(ref_probs, rewards, beta=beta)


def proxy_and_true(ref_probs, proxy_scores, true_scores, *, beta):
    best = kl_regularised_optimum(ref_probs, proxy_scores, beta=beta)
    divergence = math.fsum(p * math.log(p / q) for p, q in zip(best, ref_probs, strict=True) if p > 0)
    return [expected_reward(best, proxy_scores), expected_reward(best, true_scores), divergence]
