"""The clipped surrogate objective, from a probability ratio.

These three functions are the objective as the papers write it: a quantity to be *maximised*, per token. The
loss that a trainer minimises, from log-probabilities, is `policy_loss`.
"""

import torch
from torch import Tensor

from ppo_core import checks


def surrogate(ratio: Tensor, advantages: Tensor) -> Tensor:
    r"""Multiply each ratio by its advantage: the objective before any clipping.

    $$\rho_t A_t$$

    Args:
        ratio: New over old probability of each token, shape [...].
        advantages: How much better than expected each token was, same shape, in units of reward.

    Returns:
        The objective per token, same shape, float32 or wider.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes differ.

    Gradient:
        Into `ratio` alone: the advantage.

    Source:
        Schulman et al., "Proximal Policy Optimization Algorithms", 2017, equation 6, without the mean.

    Examples:
        >>> import torch
        >>> from ppo_core import surrogate
        >>> surrogate(torch.tensor([1.6, 0.5]), torch.tensor([2.0, -3.0]))
        tensor([ 3.2000, -1.5000])
    """
    ratio, advantages = checks.floats({"ratio": ratio, "advantages": advantages})
    return ratio * advantages.detach()


def clip_ratio(ratio: Tensor, *, epsilon: float, epsilon_high: float | None = None) -> Tensor:
    r"""Move each ratio to the nearest point of the clip band.

    $$\operatorname{clip}(\rho_t, 1 - \epsilon, 1 + \epsilon_\text{high})$$

    Args:
        ratio: New over old probability of each token, shape [...].
        epsilon: Width of the band below 1, strictly between 0 and 1.
        epsilon_high: Width of the band above 1, finite and above 0; it may pass 1. Without it the band is as
            wide above as below.

    Returns:
        The clipped ratios, same shape, float32 or wider.

    Raises:
        TypeError: `ratio` is not a floating-point tensor or a width is not a plain number.
        ValueError: A width is out of range.

    Gradient:
        Into `ratio`: 1 in the band and on its edges, 0 outside.

    Source:
        Schulman et al., "Proximal Policy Optimization Algorithms", 2017, in equation 7; two widths: Yu et
        al., "DAPO: An Open-Source LLM Reinforcement Learning System at Scale", 2025, section 3.1.

    Examples:
        >>> import torch
        >>> from ppo_core import clip_ratio
        >>> clip_ratio(torch.tensor([0.5, 1.1, 1.6]), epsilon=0.2)
        tensor([0.8000, 1.1000, 1.2000])
        >>> clip_ratio(torch.tensor([0.5, 1.1, 1.6]), epsilon=0.2, epsilon_high=0.28)
        tensor([0.8000, 1.1000, 1.2800])
    """
    (ratio,) = checks.floats({"ratio": ratio})
    checks.clip_band(epsilon, epsilon_high)
    return ratio.clamp(1 - epsilon, 1 + (epsilon if epsilon_high is None else epsilon_high))


def clipped_surrogate(
    ratio: Tensor,
    advantages: Tensor,
    *,
    epsilon: float,
    epsilon_high: float | None = None,
    dual_clip: float | None = None,
) -> Tensor:
    r"""Take the smaller of the surrogate and the surrogate of the clipped ratio.

    $$L^\text{CLIP}_t
    = \min\bigl(\rho_t A_t,\ \operatorname{clip}(\rho_t, 1 - \epsilon, 1 + \epsilon_\text{high})\, A_t\bigr)$$

    For a good token the objective stops rising past the ceiling, for a bad one it stops rising below the
    floor. On the other side it is not bounded: there the move was a mistake, and the pull back is kept. The
    dual clip bounds it for bad tokens all the same, at

    $$\max(L^\text{CLIP}_t,\ c A_t) \qquad \text{where } A_t < 0$$

    so that one bad token that became $c$ times as likely, or more, weighs no more than $c$ and is no longer
    pulled back.

    Args:
        ratio: New over old probability of each token, shape [...].
        advantages: How much better than expected each token was, same shape, in units of reward.
        epsilon: Width of the band below 1, strictly between 0 and 1.
        epsilon_high: Width of the band above 1, finite and above 0; it may pass 1. Without it the band is as
            wide above as below.
        dual_clip: $c$, finite and above 1. Without it the objective of bad tokens has no lower bound.

    Returns:
        The objective per token, to be maximised, same shape, float32 or wider.

    Raises:
        TypeError: A tensor is not floating point or a hyper-parameter is not a plain number.
        ValueError: The shapes differ or a hyper-parameter is out of range.

    Gradient:
        Into `ratio` alone: the advantage; 0 above the ceiling if the advantage is positive, and below the
        floor or above `dual_clip` if it is negative. On an edge itself it is the advantage, the slope of the
        unclipped side.

    Source:
        Schulman et al., "Proximal Policy Optimization Algorithms", 2017, equation 7, without the mean; two
        widths: Yu et al., "DAPO: An Open-Source LLM Reinforcement Learning System at Scale", 2025, section
        3.1; dual clip: Ye et al., "Mastering Complex Control in MOBA Games with Deep Reinforcement Learning",
        2020, equation 5.

    Examples:
        >>> import torch
        >>> from ppo_core import clipped_surrogate
        >>> rho = torch.tensor([1.6, 0.5, 1.6])
        >>> clipped_surrogate(rho, torch.tensor([2.0, -3.0, -3.0]), epsilon=0.2)
        tensor([ 2.4000, -2.4000, -4.8000])
        >>> clipped_surrogate(rho, torch.tensor([2.0, -3.0, -3.0]), epsilon=0.2, dual_clip=1.5)
        tensor([ 2.4000, -2.4000, -4.5000])
    """
    ratio, advantages = checks.floats({"ratio": ratio, "advantages": advantages})
    checks.clip_band(epsilon, epsilon_high)
    checks.dual_clip(dual_clip)
    advantages = advantages.detach()
    ceiling = 1 + (epsilon if epsilon_high is None else epsilon_high)
    # The minimum, case by case. For A >= 0 it is A min(rho, ceiling), for A < 0 it is A max(rho, floor): each
    # sign meets one edge of the band, and a bad token the dual clip. Clamping the ratio before the product
    # keeps A = 0 at 0 where the ratio is infinite.
    bounded = torch.where(
        advantages >= 0, ratio.clamp(max=ceiling), ratio.clamp(min=1 - epsilon, max=dual_clip)
    )
    return bounded * advantages
