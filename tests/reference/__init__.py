"""Plain-float twins of every public function of ppo_core and lab: the second opinion.

Each twin has the name and the argument names of its original, takes plain floats and nested lists of them,
and is written from the formula, with loops and the `math` module alone. Nothing here imports torch or the
library. Speed and overflow are no concern, except where a test needs the value at an overflow.
"""

# The twins are imported here for those who import the package.
# ruff: noqa: F401

from reference.aggregation import (
    aggregate,
    batch_count,
    masked_mean,
    masked_sum,
)
from reference.controllers import (
    adapt_beta,
)
from reference.diagnostics import (
    approximate_kl,
    clip_fractions,
    effective_sample_size,
    explained_variance,
    ratio_quantiles,
)
from reference.distributed import (
    global_sum,
    undo_mean_over_ranks,
)
from reference.groups import (
    group_centred,
    group_relative,
    leave_one_out,
)
from reference.importance import (
    masked_weights,
    truncated_weights,
)
from reference.kl import (
    full_kl,
    kl_k1,
    kl_k2,
    kl_k3,
    kl_loss,
    kl_loss_slope,
    kl_penalty,
)
from reference.lab_bandit import (
    best_baseline,
    exact_policy_gradient,
    expected_reward,
    policy_gradient_mean,
    policy_gradient_variance,
)
from reference.lab_chains import (
    answer_gradient,
    answer_value,
    gae_bias,
    gae_gradient,
    gae_variance,
)
from reference.lab_drift import (
    ratio_after_steps,
    repeated_steps,
)
from reference.lab_gradients import (
    entropy_gradient,
    kl_gradient,
    sampled_kl_gradient,
)
from reference.lab_mismatch import (
    precision_ratio,
    temperature_ratio,
)
from reference.lab_optimum import (
    dpo_minimiser,
    kl_divergence,
    kl_objective,
    kl_regularised_optimum,
    proxy_and_true,
)
from reference.lab_reweighting import (
    sequence_ratio_estimate,
    token_ratio_estimate,
)
from reference.logits import (
    entropy,
    hidden_logprobs,
    logit_statistics,
    sharded_logprobs,
    token_logprobs,
)
from reference.objectives import (
    hidden_policy_loss,
    ppo_objective,
)
from reference.packing import (
    sequence_ids_from_lengths,
)
from reference.policy import (
    cispo_loss,
    cispo_slope,
    clip_ratio,
    clipped_surrogate,
    log_ratio,
    policy_loss,
    ratio,
    sequence_policy_loss,
    sequence_ratio,
    surrogate,
)
from reference.preferences import (
    dpo_loss,
    implicit_reward,
    preference_probability,
    reward_model_loss,
)
from reference.returns import (
    discounted_returns,
    gae,
)
from reference.rewards import (
    shaped_rewards,
)
from reference.values import (
    clipped_value_loss,
    value_loss,
)
from reference.whitening import (
    reinforce_plus_plus,
    whiten,
)
