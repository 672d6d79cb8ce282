"""Small exact worlds: claims about PPO proved by enumeration.

`bandit` is a world with one state and a few actions, where the mean and the variance of the policy gradient
are sums. `kl_gradients` averages the gradients of the KL estimators over all actions. Both answer with exact
numbers, no sampling.
"""

from lab.bandit import (
    best_baseline,
    exact_policy_gradient,
    expected_reward,
    policy_gradient_mean,
    policy_gradient_variance,
)
from lab.kl_gradients import kl_gradient, sampled_kl_gradient

__all__ = [
    "best_baseline",
    "exact_policy_gradient",
    "expected_reward",
    "kl_gradient",
    "policy_gradient_mean",
    "policy_gradient_variance",
    "sampled_kl_gradient",
]
