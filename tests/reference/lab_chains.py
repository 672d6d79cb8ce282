"""The laboratory: answers of two tokens."""

import math

from reference.lab_bandit import expected_reward


def answer_value(first_probs, second_probs, scores):
    return expected_reward(first_probs, _score_after_first(second_probs, scores))


def answer_gradient(first_probs, second_probs, scores):
    V = answer_value(first_probs, second_probs, scores)
    return [p * (r - V) for p, r in zip(first_probs, _score_after_first(second_probs, scores), strict=True)]


def gae_gradient(first_probs, second_probs, scores, values, *, lam, start_value=0.0):
    samples = _samples(first_probs, second_probs, scores, values, lam, start_value)
    return [math.fsum(p * estimate[i] for p, estimate in samples) for i in range(len(first_probs))]


def gae_variance(first_probs, second_probs, scores, values, *, lam, start_value=0.0):
    samples = _samples(first_probs, second_probs, scores, values, lam, start_value)
    mean = gae_gradient(first_probs, second_probs, scores, values, lam=lam, start_value=start_value)
    return math.fsum(
        p * (each - center) ** 2
        for p, estimate in samples
        for each, center in zip(estimate, mean, strict=True)
    )


def gae_bias(first_probs, second_probs, scores, values, *, lam):
    # The equation of the docstring.
    errors = [V - r for V, r in zip(values, _score_after_first(second_probs, scores), strict=True)]
    mean = expected_reward(first_probs, errors)
    return [(1 - lam) * p * (error - mean) for p, error in zip(first_probs, errors, strict=True)]


def _score_after_first(second_probs, scores):
    return [expected_reward(row, r) for row, r in zip(second_probs, scores, strict=True)]


def _samples(first_probs, second_probs, scores, values, lam, start_value):
    """List the probability of each answer and the gradient that it gives, with GAE written out for two tokens."""
    samples = []
    for a, p in enumerate(first_probs):
        for q, r in zip(second_probs[a], scores[a], strict=True):
            A = (values[a] - start_value) + lam * (r - values[a])
            samples.append((p * q, [A * ((a == i) - first_probs[i]) for i in range(len(first_probs))]))
    return samples
