"""The whole PPO objective as one loss, with every term by its name."""

from typing import Any, NamedTuple

from torch import Tensor

from ppo_core import checks
from ppo_core.aggregation import aggregate, check_reduction, divisor
from ppo_core.kl import kl_k2
from ppo_core.masking import counted
from ppo_core.objective_terms import Terms, terms_in_pieces
from ppo_core.policy import policy_loss
from ppo_core.values import value_loss


class Objective(NamedTuple):
    """The loss and the terms it is made of, each of shape []; the terms are without their coefficients."""

    loss: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    kl: Tensor


def ppo_objective(
    logprobs: Tensor,
    old_logprobs: Tensor,
    ref_logprobs: Tensor,
    advantages: Tensor,
    values: Tensor,
    returns: Tensor,
    entropies: Tensor,
    mask: Tensor,
    *,
    epsilon: float,
    value_coef: float,
    entropy_coef: float,
    beta: float,
    mode: str,
    denominator: float | Tensor | None = None,
    epsilon_high: float | None = None,
    dual_clip: float | None = None,
    sequence_ids: Tensor | None = None,
) -> Objective:
    r"""Add up the terms of PPO to the one loss that a trainer minimises.

    $$L = L_\text{policy} + c_V L_\text{value} - c_H H + \beta L_\text{KL}$$

    with `policy_loss`, `value_loss` with the factor 0.5, the entropy and `kl_k2` per token, each reduced by
    `aggregate`.

    The leash stands in the reward or in the loss, not in both: with `shaped_rewards`, `beta` is 0 here. In
    the loss it is k2, half the squared log-ratio, because the gradient is what a loss is for: averaged over
    the policy, that of k2 is the gradient of $\mathrm{KL}(\pi_\theta \Vert \pi_\text{ref})$, and that of the
    plain log-ratio is zero. This holds for tokens sampled from the policy itself, so exactly at the first
    step on a batch, and nearly while the ratios stay near 1.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [..., T], in nats.
        old_logprobs: The same under the policy that sampled them, same shape, in nats.
        ref_logprobs: The same under the frozen reference policy, same shape, in nats.
        advantages: How much better than expected each token was, same shape, in units of reward.
        values: The critic's value of the state before each token, same shape, in units of reward.
        returns: What the critic should have said, same shape, in units of reward.
        entropies: Entropy of the trained policy at each token, same shape, in nats.
        mask: Bool, same shape. True: the token counts.
        epsilon: Width of the clip band below 1, strictly between 0 and 1.
        value_coef: Weight of the value term, $c_V$, at least 0, per unit of reward.
        entropy_coef: Weight of the entropy bonus, $c_H$, at least 0, in units of reward per nat.
        beta: Strength of the leash in the loss, at least 0, in units of reward per nat.
        mode: How tokens are reduced to one number, as in `aggregate`.
        denominator: What the sums are divided by, as in `aggregate`: a plain number, or a tensor of shape [].
        epsilon_high: Width of the clip band above 1, as in `policy_loss`. Without it the band is as wide above
            as below.
        dual_clip: Cap on the ratio of bad tokens, as in `policy_loss`. Without it there is none.
        sequence_ids: Number of each token's sequence in packed rows, int64, same shape. Without it each row is
            one sequence.

    Returns:
        A named tuple of tensors of shape [], float32 or wider, with `loss` and the terms `policy`, `value`,
        `entropy` and `kl` without their coefficients.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool, `sequence_ids` is not int64 or a
            hyper-parameter is not a plain number.
        ValueError: The shapes differ or a hyper-parameter is out of range.

    Gradient:
        Into `logprobs`, `values` and `entropies`, as the functions named above have it; 0 on uncounted tokens
        whatever they hold.

    Source:
        Schulman et al., "Proximal Policy Optimization Algorithms", 2017, equation 9, negated; the leash:
        Ziegler et al., "Fine-Tuning Language Models from Human Preferences", 2019, moved from the reward to
        the loss.

    Examples:
        >>> import torch
        >>> from ppo_core import ppo_objective
        >>> new, old, ref = torch.tensor([0.8, 0.5, 0.4]).log().reshape(3, 1, 1)
        >>> advantages, values, returns = torch.tensor([[2.0]]), torch.tensor([[0.5]]), torch.tensor([[1.5]])
        >>> terms = ppo_objective(
        ...     new, old, ref, advantages, values, returns, torch.tensor([[0.5]]), torch.tensor([[True]]),
        ...     epsilon=0.2, value_coef=0.1, entropy_coef=0.01, beta=0.1, mode="token_mean",
        ... )
        >>> terms.policy, terms.value, terms.entropy
        (tensor(-2.4000), tensor(0.5000), tensor(0.5000))
        >>> terms.kl, terms.loss
        (tensor(0.2402), tensor(-2.3310))
    """
    # In float32 from here on, so that the slopes of two terms in one tensor are added before they are
    # rounded.
    logprobs, old_logprobs, ref_logprobs, advantages, values, returns, entropies = checks.floats(
        {
            "logprobs": logprobs,
            "old_logprobs": old_logprobs,
            "ref_logprobs": ref_logprobs,
            "advantages": advantages,
            "values": values,
            "returns": returns,
            "entropies": entropies,
        }
    )
    checks.token_mask(mask, "logprobs", logprobs)
    checks.not_negative("value_coef", value_coef)
    checks.not_negative("entropy_coef", entropy_coef)
    checks.not_negative("beta", beta)
    checks.clip_band(epsilon, epsilon_high)
    checks.dual_clip(dual_clip)
    check_reduction("logprobs", mask, mode=mode, denominator=denominator, sequence_ids=sequence_ids)
    clip: dict[str, Any] = {"epsilon": epsilon, "epsilon_high": epsilon_high, "dual_clip": dual_clip}
    tensors = (logprobs, old_logprobs, ref_logprobs, advantages, values, returns, entropies)

    def terms(*tensors: Tensor) -> Terms:
        logprobs, old_logprobs, ref_logprobs, advantages, values, returns, entropies = tensors
        per_token = (
            policy_loss(logprobs, old_logprobs, advantages, mask=mask, **clip),
            value_loss(values, returns, factor=0.5, mask=mask),
            counted(entropies, mask),
            kl_k2(logprobs, ref_logprobs, mask=mask),
        )
        return tuple(
            aggregate(x, mask, mode=mode, denominator=denominator, sequence_ids=sequence_ids)
            for x in per_token
        )

    alike = mode != "sequence_mean_token_mean" and checks.of_one_type(*tensors)
    if alike and checks.may_look(logprobs) and checks.is_ordinary(*tensors):
        by = divisor(mask, logprobs.dtype, mode=mode, denominator=denominator, sequence_ids=sequence_ids)
        policy, value, entropy, kl = terms_in_pieces(terms, tensors, mask, by, clip)
    else:
        policy, value, entropy, kl = terms(*tensors)
    loss = policy + value_coef * value - entropy_coef * entropy + beta * kl
    return Objective(loss, policy, value, entropy, kl)
