"""The laboratory: one action, its reward, and the estimates of its gradient."""

import math


def expected_reward(probs, rewards):
    return math.fsum(p * r for p, r in zip(probs, rewards, strict=True))


def exact_policy_gradient(probs, rewards):
    # The softmax has d pi(a) / d z_1 = pi(a) (1[a = 1] - p_1), so dV / dz_1 = p_1 (r_1 - V).
    return probs[0] * (rewards[0] - expected_reward(probs, rewards))


def policy_gradient_mean(probs, rewards, *, baseline=0.0):
    return math.fsum(
        p * estimate for p, estimate in zip(probs, _estimates(probs, rewards, baseline), strict=True)
    )


def policy_gradient_variance(probs, rewards, *, baseline=0.0):
    estimates = _estimates(probs, rewards, baseline)
    mean = policy_gradient_mean(probs, rewards, baseline=baseline)
    return math.fsum(p * (estimate - mean) ** 2 for p, estimate in zip(probs, estimates, strict=True))


def best_baseline(probs, rewards):
    weights = [p * score**2 for p, score in zip(probs, _scores(probs), strict=True)]
    return math.fsum(w * r for w, r in zip(weights, rewards, strict=True)) / math.fsum(weights)


def _scores(probs):
    return [(1.0 if action == 0 else 0.0) - probs[0] for action in range(len(probs))]


def _estimates(probs, rewards, baseline):
    return [(r - baseline) * score for r, score in zip(rewards, _scores(probs), strict=True)]
