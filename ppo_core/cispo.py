"""The policy loss that bounds the weight of a token, not its objective (CISPO)."""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted
from ppo_core.ratios import below_overflow, log_ratio


def cispo_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    *,
    epsilon_low: float | None = None,
    epsilon_high: float | None = None,
    min_ratio: float | None = None,
    max_ratio: float | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    r"""Weight the log-probability of each token by its advantage and its bounded ratio, which is held fixed.

    $$\ell_t = -\operatorname{sg}\bigl[\operatorname{clip}(\rho_t, \rho_\text{min}, \rho_\text{max})\bigr]
    A_t \log \pi_\theta(a_t \mid s_t)$$

    with sg for no gradient. The policy loss of PPO drops a clipped token; here every token keeps its gradient,
    and only its weight is bounded.

    The bounds are given in one of two ways. As distances from 1, $\rho_\text{min} = 1 - \epsilon_\text{low}$
    and $\rho_\text{max} = 1 + \epsilon_\text{high}$, or as the ratios themselves. Either bound may be left
    out, and then there is none on that side; not both.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        old_logprobs: The same under the policy that sampled them, same shape, in nats.
        advantages: How much better than expected each token was, same shape, in units of reward.
        epsilon_low: Distance of the lower bound from 1, finite and above 0; from 1 on it bounds nothing.
        epsilon_high: Distance of the upper bound from 1, finite and above 0.
        min_ratio: The lower bound itself, from 0 to 1.
        max_ratio: The upper bound itself, finite and at least 1.
        mask: Bool, same shape. True: the token counts. Without it every token counts.

    Returns:
        The loss per token, same shape, float32 or wider; 0 on uncounted tokens. Its value means little: only
        its gradient is meant. Without an upper bound it is infinite where the ratio is.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool or a bound is not a plain number.
        ValueError: The shapes differ, a bound is out of range, none is given, or distances and ratios are
            mixed.

    Gradient:
        Into `logprobs` alone: minus the advantage times the bounded ratio, 0 on uncounted tokens whatever
        they hold.

    Source:
        MiniMax, "MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention", 2025, equations
        4 and 5, negated, without the mean.

    Examples:
        >>> import torch
        >>> from ppo_core import cispo_loss
        >>> logprobs = torch.tensor([0.75, 0.25]).log().requires_grad_()
        >>> old_logprobs, advantages = torch.tensor([0.5, 0.5]).log(), torch.tensor([1.0, -2.0])
        >>> cispo_loss(logprobs, old_logprobs, advantages, epsilon_high=0.28).sum().backward()
        >>> logprobs.grad
        tensor([-1.2800,  1.0000])
        >>> cispo_loss(logprobs, old_logprobs, advantages, max_ratio=1.28).tolist()
        [0.368, -1.386]
    """
    logprobs, old_logprobs, advantages = checks.floats(
        {"logprobs": logprobs, "old_logprobs": old_logprobs, "advantages": advantages}
    )
    if mask is not None:
        checks.token_mask(mask, "logprobs", logprobs)
    low, high = _bounds(epsilon_low, epsilon_high, min_ratio, max_ratio)
    logprobs, advantages = counted(logprobs, mask), counted(advantages, mask).detach()
    log_rho = log_ratio(logprobs, counted(old_logprobs, mask)).detach()
    credit = advantages * logprobs
    # A token as expected asks for nothing, also where its ratio is infinite: 0 times infinity would be NaN.
    log_rho = torch.where(credit == 0, below_overflow(log_rho), log_rho)
    return -(torch.exp(log_rho).clamp(low, high) * credit)


def _bounds(
    epsilon_low: float | None, epsilon_high: float | None, min_ratio: float | None, max_ratio: float | None
) -> tuple[float | None, float | None]:
    """Return the least and the largest weight, from one of the two ways to give them."""
    by_distance = epsilon_low is not None or epsilon_high is not None
    by_ratio = min_ratio is not None or max_ratio is not None
    if by_distance == by_ratio:
        bounds = {"epsilon_low": epsilon_low, "epsilon_high": epsilon_high}
        bounds |= {"min_ratio": min_ratio, "max_ratio": max_ratio}
        given = [name for name, value in bounds.items() if value is not None]
        raise ValueError(
            "the bounds must be given as epsilon_low, epsilon_high (distances from 1) or as min_ratio, max_ratio "
            f"(the ratios themselves), got {' and '.join(given) or 'none'}"
        )
    if epsilon_low is not None:
        checks.positive("epsilon_low", epsilon_low)
        min_ratio = 1 - epsilon_low
    elif min_ratio is not None:
        checks.fraction("min_ratio", min_ratio)
    if epsilon_high is not None:
        checks.positive("epsilon_high", epsilon_high)
        max_ratio = 1 + epsilon_high
    elif max_ratio is not None:
        checks.largest_ratio("max_ratio", max_ratio)
    return min_ratio, max_ratio
