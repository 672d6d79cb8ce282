r"""PPO losses for language models: pure functions on tensors, one idea per file.

Read the files in this order:

1. `ratios`: how much more likely the new policy makes a token, or a whole sequence.
2. `surrogates`: ratio times advantage, the clip band, the clipped surrogate.
3. `policy`: the same as a loss, from log-probabilities, right where the exponential overflows;
   `sequence_policies` and `cispo`: two other losses of the policy.
4. `importance`: weights for tokens that another program sampled.
5. `kl`: the leash to the reference, three estimators of one token; `distributions`: the divergence over the
   whole vocabulary; `kl_losses`: which gradient an estimator has in a loss; `controllers`: a leash whose
   strength follows the divergence.
6. `rewards`: the score at the last token and the leash at every token.
7. `returns`: how much better than expected each token was, with a critic; `groups`: the same without one;
   `whitening`: the scale of a batch.
8. `values`: the loss of the critic.
9. `entropies`: from logits to the log-probability of a token and the entropy of the policy; `hidden`: the same
   from hidden states, without ever holding all logits;
   `sharded`: the same from a vocabulary in parts.
10. `aggregation`: one number from many tokens, with its denominator in the open; `distributed`: the same over
    many processes.
11. `objectives`: all terms of PPO in one loss; `hidden_losses`: the policy's term alone, from hidden states in one
    pass; `diagnostics`: what to look at while it trains.
12. `preferences`: learning from pairs, the reward model and DPO.
13. `packing`, `unembedding`, `known_gradients`, `pieces`, `masking` and `checks`: what the others rest on.
14. `closed_form`, `objective_terms`, `recurrence` and `logit_rows`: fast paths. Each gives what a plain definition in
    the files above gives, in value and gradient, and is chosen inside.

| name | meaning | shape, unit |
|---|---|---|
| `logprobs` | log-probability of each sampled token under the policy that is trained | [..., T], nats |
| `old_logprobs` | the same under the policy that sampled the tokens | [..., T], nats |
| `ref_logprobs` | the same under the frozen reference policy | [..., T], nats |
| `ratio` | new over old probability, $\rho$ | [..., T] |
| `scores` | reward model's score of each answer | [...], reward |
| `rewards` | reward for each token, $r$ | [..., T], reward |
| `values`, `old_values` | the critic's value of the state before each token, $V$, now and when it was sampled | [..., T], reward |
| `advantages` | how much better than expected each token was, $A$ | [..., T], reward |
| `returns` | what the critic should have said: advantages plus old values | [..., T], reward |
| `entropies` | entropy of the policy at each token, $H$ | [..., T], nats |
| `mask` | bool, True: the token counts | [..., T] |
| `sequence_ids` | int64, a sequence is a run of equal numbers in a packed row | [..., T] |
| `epsilon` | half-width of the clip band, $0 < \epsilon < 1$ | |
| `beta` | strength of the KL leash, $\beta \ge 0$ | reward per nat |
| `gamma`, `lam` | discount of a time step and the $\lambda$ of GAE, from 0 to 1 | |

Rules that hold everywhere. Shapes must match exactly; nothing is broadcast. Losses are per token; `aggregate`
reduces them, and inside `ppo_objective` it does so with the mode that is given. A mask selects inputs: a NaN
or an overflow under it touches neither value nor gradient, a NaN on a counted token surfaces. float16 and
bfloat16 inputs are computed in float32 and the result is float32; float64 stays float64. No function changes
its arguments, waits for the device or breaks a compiled graph.
"""

from ppo_core.aggregation import aggregate, batch_count
from ppo_core.cispo import cispo_loss
from ppo_core.controllers import adapt_beta
from ppo_core.diagnostics import (
    approximate_kl,
    clip_fractions,
    effective_sample_size,
    explained_variance,
    ratio_quantiles,
)
from ppo_core.distributed import global_sum, undo_mean_over_ranks
from ppo_core.distributions import full_kl
from ppo_core.entropies import entropy, logit_statistics, token_logprobs
from ppo_core.groups import group_centred, group_relative, leave_one_out
from ppo_core.hidden import hidden_logprobs
from ppo_core.hidden_losses import hidden_policy_loss
from ppo_core.importance import masked_weights, truncated_weights
from ppo_core.kl import kl_k1, kl_k2, kl_k3, kl_penalty
from ppo_core.kl_losses import kl_loss
from ppo_core.masking import masked_mean, masked_sum
from ppo_core.objectives import ppo_objective
from ppo_core.packing import sequence_ids_from_lengths
from ppo_core.policy import policy_loss
from ppo_core.preferences import dpo_loss, implicit_reward, preference_probability, reward_model_loss
from ppo_core.ratios import log_ratio, ratio, sequence_ratio
from ppo_core.returns import discounted_returns, gae
from ppo_core.rewards import shaped_rewards
from ppo_core.sequence_policies import sequence_policy_loss
from ppo_core.sharded import sharded_logprobs
from ppo_core.surrogates import clip_ratio, clipped_surrogate, surrogate
from ppo_core.values import clipped_value_loss, value_loss
from ppo_core.whitening import reinforce_plus_plus, whiten

__all__ = [
    "adapt_beta",
    "aggregate",
    "approximate_kl",
    "batch_count",
    "cispo_loss",
    "clip_fractions",
    "clip_ratio",
    "clipped_surrogate",
    "clipped_value_loss",
    "discounted_returns",
    "dpo_loss",
    "effective_sample_size",
    "entropy",
    "explained_variance",
    "full_kl",
    "gae",
    "global_sum",
    "group_centred",
    "group_relative",
    "hidden_logprobs",
    "hidden_policy_loss",
    "implicit_reward",
    "kl_k1",
    "kl_k2",
    "kl_k3",
    "kl_loss",
    "kl_penalty",
    "leave_one_out",
    "log_ratio",
    "logit_statistics",
    "masked_mean",
    "masked_sum",
    "masked_weights",
    "policy_loss",
    "ppo_objective",
    "preference_probability",
    "ratio",
    "ratio_quantiles",
    "reinforce_plus_plus",
    "reward_model_loss",
    "sequence_ids_from_lengths",
    "sequence_policy_loss",
    "sequence_ratio",
    "shaped_rewards",
    "sharded_logprobs",
    "surrogate",
    "token_logprobs",
    "truncated_weights",
    "undo_mean_over_ranks",
    "value_loss",
    "whiten",
]
