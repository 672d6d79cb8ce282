"""The PPO policy loss per token, from log-probabilities."""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.closed_form import clipped_losses_and_slopes, with_slopes
from ppo_core.masking import counted
from ppo_core.ratios import below_overflow, bounded_log_ratio
from ppo_core.surrogates import clipped_surrogate


def policy_loss(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    *,
    epsilon: float,
    epsilon_high: float | None = None,
    dual_clip: float | None = None,
    log_bound: float | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    r"""Turn the clipped surrogate into a loss per token, to be minimised.

    $$\ell_t = -\min\bigl(\rho_t A_t,\ \operatorname{clip}(\rho_t, 1 - \epsilon, 1 + \epsilon_\text{high})\,
    A_t\bigr),
    \qquad \rho_t = \exp(\log \pi_\theta(a_t \mid s_t) - \log \pi_{\theta_\text{old}}(a_t \mid s_t))$$

    Right also where the exponential overflows: a token past the ceiling with $A_t \ge 0$ has the loss
    $-(1 + \epsilon_\text{high}) A_t$ and the gradient 0. With $A_t < 0$ the loss grows with the ratio without
    limit, and becomes infinite when the ratio does. Two options limit it. `dual_clip`, $c$, stops it at
    $-c A_t$. `log_bound` moves the log-ratio into [-`log_bound`, `log_bound`] before the exponential, for
    either sign. Both kill the gradient beyond: nothing pulls such a token back.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        old_logprobs: The same under the policy that sampled them, same shape, in nats.
        advantages: How much better than expected each token was, same shape, in units of reward.
        epsilon: Width of the band below 1, strictly between 0 and 1.
        epsilon_high: Width of the band above 1, finite and above 0; it may pass 1. Without it the band is as
            wide above as below.
        dual_clip: $c$, the cap on the ratio of bad tokens, finite and above 1. Without it there is none.
        log_bound: How far from 0 a log-ratio may be, finite and above 0, in nats. Without it there is no
            bound.
        mask: Bool, same shape. True: the token counts. Without it every token counts.

    Returns:
        The loss per token, same shape, float32 or wider; 0 on uncounted tokens. Reduce it with `aggregate`.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool or a hyper-parameter is not a plain
            number.
        ValueError: The shapes differ or a hyper-parameter is out of range.

    Gradient:
        Into `logprobs` alone: $-\rho_t A_t$ where no clip is active, 0 where the band, `dual_clip` or
        `log_bound` is, 0 on uncounted tokens whatever they hold.

    Source:
        Schulman et al., "Proximal Policy Optimization Algorithms", 2017, equation 7, negated; two widths: Yu
        et al., "DAPO: An Open-Source LLM Reinforcement Learning System at Scale", 2025, section 3.1; dual
        clip: Ye et al., "Mastering Complex Control in MOBA Games with Deep Reinforcement Learning", 2020,
        equation 5.

    Examples:
        >>> import torch
        >>> from ppo_core import policy_loss
        >>> logprobs = torch.tensor([1.6, 1.6]).log().requires_grad_()
        >>> loss = policy_loss(logprobs, torch.zeros(2), torch.tensor([2.0, -3.0]), epsilon=0.2)
        >>> loss.tolist()
        [-2.400, 4.800]
        >>> loss.sum().backward()
        >>> logprobs.grad.tolist()
        [0.000, 4.800]
    """
    logprobs, old_logprobs, advantages = checks.floats(
        {"logprobs": logprobs, "old_logprobs": old_logprobs, "advantages": advantages}
    )
    if mask is not None:
        checks.token_mask(mask, "logprobs", logprobs)
    if log_bound is not None:
        checks.positive("log_bound", log_bound)
    checks.clip_band(epsilon, epsilon_high)
    checks.dual_clip(dual_clip)
    tensors = (logprobs, old_logprobs, advantages)
    if checks.of_one_type(*tensors) and checks.is_ordinary(*tensors):
        losses, slopes = clipped_losses_and_slopes(
            logprobs,
            old_logprobs,
            advantages,
            mask,
            epsilon=epsilon,
            epsilon_high=epsilon_high,
            dual_clip=dual_clip,
            log_bound=log_bound,
        )
        return with_slopes(logprobs, losses, slopes, mask)
    log_rho = counted(bounded_log_ratio(logprobs, old_logprobs, log_bound), mask)
    return clipped_loss(
        log_rho,
        counted(advantages, mask),
        epsilon=epsilon,
        epsilon_high=epsilon_high,
        dual_clip=dual_clip,
    )


def clipped_loss(
    log_rho: Tensor,
    advantages: Tensor,
    *,
    epsilon: float,
    epsilon_high: float | None,
    dual_clip: float | None = None,
) -> Tensor:
    """Return the negated clipped surrogate of log-ratios, right where their exponential overflows."""
    # Past the ceiling the loss of a token with A >= 0 is flat. That of a bad token is so past the dual clip
    # only; without one it is infinite where the ratio is.
    safe = below_overflow(log_rho)
    if dual_clip is None:
        safe = torch.where(advantages >= 0, safe, log_rho)
    return -clipped_surrogate(
        torch.exp(safe), advantages, epsilon=epsilon, epsilon_high=epsilon_high, dual_clip=dual_clip
    )
