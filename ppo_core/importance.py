r"""Weights for tokens that something other than the trainer sampled.

An inference engine computes the same policy with other kernels, often in another precision, so that the tokens
come from a policy that differs a little from the trainer's. Multiplying a loss by $\pi / \pi_\text{sampler}$
puts that right on average, at the price of variance; both functions pay less of it and accept some bias.
"""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted
from ppo_core.packing import at_each_token, sequence_totals
from ppo_core.ratios import log_ratio

LEVELS = ("token", "sequence")


def truncated_weights(
    logprobs: Tensor,
    sampler_logprobs: Tensor,
    mask: Tensor,
    *,
    level: str,
    max_weight: float,
    sequence_ids: Tensor | None = None,
) -> Tensor:
    r"""Cap the importance weights of sampled tokens or sequences.

    $$\min(w, C), \qquad
    w_t = \frac{\pi(a_t \mid s_t)}{\pi_\text{sampler}(a_t \mid s_t)}
    \quad \text{or} \quad
    w = \prod_{t \,:\, m_t} \frac{\pi(a_t \mid s_t)}{\pi_\text{sampler}(a_t \mid s_t)}$$

    The product is taken in logarithms, so that it cannot overflow before it is capped. Over a long sequence
    even small differences take it far from 1. Multiply losses per token by the weights before they are
    reduced.

    Args:
        logprobs: Log-probabilities of the sampled tokens as the trainer computes them for the policy that
            sampled, shape [..., T], in nats.
        sampler_logprobs: The same as the sampler reported them, same shape, in nats.
        mask: Bool, same shape. True: the token counts.
        level: `"token"`: a weight for each token. `"sequence"`: one for all tokens of a sequence, the product
            over its counted tokens.
        max_weight: $C$, finite and above 0; 2 is usual for tokens.
        sequence_ids: Number of each token's sequence in packed rows, int64, same shape. Without it each row is
            one sequence. The level `"token"` does not need it.

    Returns:
        The weight of each token, same shape, float32 or wider; 0 on uncounted tokens.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool, `sequence_ids` is not int64 or
            `max_weight` is not a plain number.
        ValueError: The shapes differ, `level` is unknown, `max_weight` is out of range, or there is no
            dimension for the tokens of a sequence.

    Gradient:
        None: weights correct where the tokens came from, which no training step changes.

    Source:
        Ionides, "Truncated Importance Sampling", 2008; for language models Yao et al., "Your Efficient RL
        Framework Secretly Brings You Off-Policy RL Training", 2025.

    Examples:
        >>> import torch
        >>> from ppo_core import truncated_weights
        >>> logprobs, sampler_logprobs = torch.tensor([[0.6, 0.2], [0.4, 0.9]]).log()[:, None]
        >>> mask = torch.tensor([[True, True]])
        >>> truncated_weights(logprobs, sampler_logprobs, mask, level="token", max_weight=1.2)
        tensor([[1.2000, 0.2222]])
        >>> truncated_weights(logprobs, sampler_logprobs, mask, level="sequence", max_weight=1.2)
        tensor([[0.3333, 0.3333]])
    """
    weights = _weights(logprobs, sampler_logprobs, mask, level, sequence_ids)
    checks.positive("max_weight", max_weight)
    return counted(weights.clamp(max=max_weight), mask)


def masked_weights(
    logprobs: Tensor,
    sampler_logprobs: Tensor,
    mask: Tensor,
    *,
    level: str,
    min_weight: float,
    max_weight: float,
    sequence_ids: Tensor | None = None,
) -> Tensor:
    r"""Keep the importance weights inside a window and set the others to 0.

    $$w \;\mathbf{1}[w_\text{min} \le w \le w_\text{max}]$$

    with $w$ as in `truncated_weights`. A token or sequence on which sampler and trainer disagree too much, in
    either direction, is left out of the update.

    Args:
        logprobs: Log-probabilities of the sampled tokens as the trainer computes them for the policy that
            sampled, shape [..., T], in nats.
        sampler_logprobs: The same as the sampler reported them, same shape, in nats.
        mask: Bool, same shape. True: the token counts.
        level: `"token"`: a weight for each token. `"sequence"`: one for all tokens of a sequence, the product
            over its counted tokens.
        min_weight: $w_\text{min}$, finite and at least 0; 0.5 is usual for tokens.
        max_weight: $w_\text{max}$, finite and above `min_weight`; 5 is usual for tokens.
        sequence_ids: Number of each token's sequence in packed rows, int64, same shape. Without it each row is
            one sequence. The level `"token"` does not need it.

    Returns:
        The weight of each token, same shape, float32 or wider; 0 outside the window and on uncounted tokens.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool, `sequence_ids` is not int64 or a weight
            is not a plain number.
        ValueError: The shapes differ, `level` is unknown, a weight is out of range, or there is no dimension
            for the tokens of a sequence.

    Gradient:
        None: weights correct where the tokens came from, which no training step changes.

    Source:
        Ling Team, "Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale Thinking Model",
        2025, IcePop, at the level of tokens.

    Examples:
        >>> import torch
        >>> from ppo_core import masked_weights
        >>> logprobs, sampler_logprobs = torch.tensor([[0.6, 0.2], [0.4, 0.9]]).log()[:, None]
        >>> mask = torch.tensor([[True, True]])
        >>> masked_weights(logprobs, sampler_logprobs, mask, level="token", min_weight=0.5, max_weight=5.0)
        tensor([[1.5000, 0.0000]])
    """
    weights = _weights(logprobs, sampler_logprobs, mask, level, sequence_ids)
    checks.window("min_weight", min_weight, "max_weight", max_weight)
    # Asked for what is outside: NaN is not, and stays NaN.
    outside = (weights < min_weight) | (weights > max_weight)
    return counted(torch.where(outside, 0.0, weights), mask)


def _weights(
    logprobs: Tensor, sampler_logprobs: Tensor, mask: Tensor, level: str, sequence_ids: Tensor | None
) -> Tensor:
    """Return the weight of each token, or of its sequence, before any bound; 1 where nothing counts."""
    logprobs, sampler_logprobs = checks.floats({"logprobs": logprobs, "sampler_logprobs": sampler_logprobs})
    checks.token_mask(mask, "logprobs", logprobs)
    checks.one_of("level", level, LEVELS)
    checks.sequences(sequence_ids, "logprobs", logprobs)
    log_w = counted(log_ratio(logprobs.detach(), sampler_logprobs), mask)
    if level == "sequence":
        checks.tokens_last("logprobs", logprobs)
        log_w = at_each_token(sequence_totals(log_w, sequence_ids), sequence_ids, log_w)
    return torch.exp(log_w)
