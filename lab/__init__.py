"""Small exact worlds: claims about PPO proved by enumeration.

`bandit` is a world with one state and a few actions, where the mean and the variance of the policy gradient
are sums. `chains` has answers of two tokens, for what a wrong critic does to GAE; `reweighting` has the same
answers, for what a ratio for each token leaves uncorrected. `kl_gradients` averages the gradients of the KL
estimators over all actions, `entropy_gradients` has that of the entropy beside them. `optimum` has the best
policy under a leash and the one that DPO finds, `overoptimisation` what the best policy for a wrong score
does. `drift` takes several steps on one batch, `mismatch` compares a sampler with the trainer. All answer
with exact numbers, no sampling.
"""

from lab.bandit import (
    best_baseline,
    exact_policy_gradient,
    expected_reward,
    policy_gradient_mean,
    policy_gradient_variance,
)
from lab.chains import (
    answer_gradient,
    answer_value,
    gae_bias,
    gae_gradient,
    gae_variance,
)
from lab.drift import ratio_after_steps, repeated_steps
from lab.entropy_gradients import entropy_gradient
from lab.kl_gradients import kl_gradient, sampled_kl_gradient
from lab.mismatch import precision_ratio, temperature_ratio
from lab.optimum import dpo_minimiser, kl_divergence, kl_objective, kl_regularised_optimum
from lab.overoptimisation import proxy_and_true
from lab.reweighting import sequence_ratio_estimate, token_ratio_estimate

__all__ = [
    "answer_gradient",
    "answer_value",
    "best_baseline",
    "dpo_minimiser",
    "entropy_gradient",
    "exact_policy_gradient",
    "expected_reward",
    "gae_bias",
    "gae_gradient",
    "gae_variance",
    "kl_divergence",
    "kl_gradient",
    "kl_objective",
    "kl_regularised_optimum",
    "policy_gradient_mean",
    "policy_gradient_variance",
    "precision_ratio",
    "proxy_and_true",
    "ratio_after_steps",
    "repeated_steps",
    "sampled_kl_gradient",
    "sequence_ratio_estimate",
    "temperature_ratio",
    "token_ratio_estimate",
]
