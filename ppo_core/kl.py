r"""The leash to the reference policy: three estimators of the KL divergence, and the penalty.

Each estimator looks at one sampled token, with $d = \log \pi_\text{ref} - \log \pi_\theta$. A *value* that
averages to the divergence does not make its *gradient* average to the gradient of the divergence, because the
average runs over samples that themselves depend on the policy:

| | value, averaged over the policy | gradient, averaged over the policy |
|---|---|---|
| k1 | the divergence | zero |
| k2 | near it for close policies | the gradient of $\mathrm{KL}(\pi_\theta \Vert \pi_\text{ref})$ |
| k3 | the divergence, never negative | the gradient of $\mathrm{KL}(\pi_\text{ref} \Vert \pi_\theta)$ |

So k1 belongs in the reward, where it needs no gradient; in a loss it does nothing on average. `lab` proves
the table by enumeration; `kl_loss` gives each value the gradient that is asked for.
"""

from typing import Any

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted
from ppo_core.ratios import log_ratio

# Below this |d| the series is as good as float64; above it expm1(d) - d loses at most two digits.
SERIES_RADIUS = 0.1
# d^2/2! + ... + d^10/10!: the first term left out, d^11/11!, is below a part in 10^16 of the sum.
SERIES_DEGREE = 10
# d^7/7! is below a part in 10^8 of it, which is enough for float32.
SINGLE_DEGREE = 6


def kl_k1(logprobs: Tensor, ref_logprobs: Tensor, *, mask: Tensor | None = None) -> Tensor:
    r"""Estimate the KL divergence per token by the plain log-ratio.

    $$k_1 = \log \pi_\theta(a_t \mid s_t) - \log \pi_\text{ref}(a_t \mid s_t) = -d$$

    Unbiased for $\mathrm{KL}(\pi_\theta \Vert \pi_\text{ref})$ on tokens sampled from $\pi_\theta$, of either
    sign.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        ref_logprobs: The same under the frozen reference policy, same shape, in nats.
        mask: Bool, same shape. True: the token counts. Without it every token counts.

    Returns:
        The estimate per token, same shape, in nats, float32 or wider; 0 on uncounted tokens.

    Raises:
        TypeError: A tensor is not floating point or `mask` is not bool.
        ValueError: The shapes differ.

    Gradient:
        Into `logprobs` alone: 1. In a loss its average over the policy is zero: no leash at all.

    Source:
        Schulman, "Approximating KL Divergence", 2020, $k_1$.

    Examples:
        >>> import torch
        >>> from ppo_core import kl_k1
        >>> kl_k1(torch.tensor([-1.0, -1.0]), torch.tensor([0.0, -15.0]))
        tensor([-1., 14.])
    """
    return _drift(logprobs, ref_logprobs, mask)


def kl_k2(logprobs: Tensor, ref_logprobs: Tensor, *, mask: Tensor | None = None) -> Tensor:
    r"""Estimate the KL divergence per token by half the squared log-ratio.

    $$k_2 = \tfrac{1}{2} d^2, \qquad d = \log \pi_\text{ref}(a_t \mid s_t) - \log \pi_\theta(a_t \mid s_t)$$

    Never negative, biased, and close to $\mathrm{KL}(\pi_\theta \Vert \pi_\text{ref})$ for policies that are
    close.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        ref_logprobs: The same under the frozen reference policy, same shape, in nats.
        mask: Bool, same shape. True: the token counts. Without it every token counts.

    Returns:
        The estimate per token, same shape, in nats, float32 or wider; 0 on uncounted tokens.

    Raises:
        TypeError: A tensor is not floating point or `mask` is not bool.
        ValueError: The shapes differ.

    Gradient:
        Into `logprobs` alone: $-d$. In a loss its average over the policy is the gradient of the reverse
        divergence $\mathrm{KL}(\pi_\theta \Vert \pi_\text{ref})$, the leash that is meant.

    Source:
        Schulman, "Approximating KL Divergence", 2020, $k_2$.

    Examples:
        >>> import torch
        >>> from ppo_core import kl_k2
        >>> kl_k2(torch.tensor([-1.0, -1.0]), torch.tensor([0.0, -15.0]))
        tensor([ 0.5000, 98.0000])
    """
    drift = _drift(logprobs, ref_logprobs, mask)
    return drift * drift / 2


def kl_k3(logprobs: Tensor, ref_logprobs: Tensor, *, mask: Tensor | None = None) -> Tensor:
    r"""Estimate the KL divergence per token by the estimator that is unbiased and never negative.

    $$k_3 = e^d - 1 - d, \qquad d = \log \pi_\text{ref}(a_t \mid s_t) - \log \pi_\theta(a_t \mid s_t)$$

    Near $d = 0$ the terms cancel: at $d = 10^{-4}$ the result is $5 \cdot 10^{-9}$, and rounding $e^d$ to
    float32 alone can cost ten times as much. There the power series is summed instead.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        ref_logprobs: The same under the frozen reference policy, same shape, in nats.
        mask: Bool, same shape. True: the token counts. Without it every token counts.

    Returns:
        The estimate per token, same shape, in nats, float32 or wider; 0 on uncounted tokens. It is infinite
        where $e^d$ overflows, at about $d = 88$ in float32 and $d = 709$ in float64.

    Raises:
        TypeError: A tensor is not floating point or `mask` is not bool.
        ValueError: The shapes differ.

    Gradient:
        Into `logprobs` alone: $1 - e^d$, minus infinity where $e^d$ overflows, never NaN for finite inputs. In
        a loss its average over the policy is the gradient of the *forward* divergence
        $\mathrm{KL}(\pi_\text{ref} \Vert \pi_\theta)$.

    Source:
        Schulman, "Approximating KL Divergence", 2020, $k_3$; Shao et al., "DeepSeekMath", 2024, equation 4.

    Examples:
        >>> import torch
        >>> from ppo_core import kl_k3
        >>> kl_k3(torch.tensor([-1.0, -1.0]), torch.tensor([0.0, -15.0]))
        tensor([ 0.7183, 13.0000])
        >>> kl_k3(torch.zeros(1), torch.tensor([1e-4])).item()
        5.000e-09
    """
    return exp_remainder(-_drift(logprobs, ref_logprobs, mask))


def kl_penalty(logprobs: Tensor, ref_logprobs: Tensor, *, beta: float) -> Tensor:
    r"""Scale the log-ratio to the reference: what drifting costs, per token.

    $$\beta \log \frac{\pi_\theta(a_t \mid s_t)}{\pi_\text{ref}(a_t \mid s_t)}$$

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        ref_logprobs: The same under the frozen reference policy, same shape, in nats.
        beta: Strength of the leash, at least 0, in units of reward per nat.

    Returns:
        The penalty per token, to be subtracted from the reward, same shape, float32 or wider.

    Raises:
        TypeError: A tensor is not floating point or `beta` is not a plain number.
        ValueError: The shapes differ or `beta` is negative or not finite.

    Gradient:
        Into `logprobs` alone: `beta`. It is meant for the reward, which needs no gradient; subtracted in a
        loss its average over the policy is zero, as for `kl_k1`.

    Source:
        Ziegler et al., "Fine-Tuning Language Models from Human Preferences", 2019, in equation 2; Shao et
        al., "DeepSeekMath", 2024, in equation 2.

    Examples:
        >>> import torch
        >>> from ppo_core import kl_penalty
        >>> kl_penalty(torch.tensor(0.9).log(), torch.tensor(0.3).log(), beta=0.2)
        tensor(0.2197)
    """
    checks.not_negative("beta", beta)
    return beta * kl_k1(logprobs, ref_logprobs)


def _drift(logprobs: Tensor, ref_logprobs: Tensor, mask: Tensor | None) -> Tensor:
    """Return the log-ratio to the reference, with 0 on uncounted tokens."""
    logprobs, ref_logprobs = checks.floats({"logprobs": logprobs, "ref_logprobs": ref_logprobs})
    if mask is not None:
        checks.token_mask(mask, "logprobs", logprobs)
    return counted(log_ratio(logprobs, ref_logprobs), mask)


def exp_remainder(d: Tensor) -> Tensor:
    """Return $e^d - 1 - d$ with all its digits, near 0 too."""
    if checks.may_look(d) and checks.is_ordinary(d):
        return _ExpRemainder.apply(d)  # type: ignore[no-any-return, no-untyped-call]
    small = d.abs() < SERIES_RADIUS
    # The series is not evaluated at a large d: its powers could overflow, and the gradient 0 times infinity
    # is NaN.
    x = counted(d, small)
    series = torch.ones_like(x)
    for n in range(SERIES_DEGREE, 2, -1):
        series = 1 + series * x / n
    return torch.where(small, x * x / 2 * series, torch.expm1(d) - d)


class _ExpRemainder(torch.autograd.Function):
    """The same on the CPU in eager mode, each step in the place of the one before; the slope is $e^d - 1$."""

    @staticmethod
    def forward(ctx: Any, d: Tensor) -> Tensor:
        ctx.save_for_backward(d)
        # Compared in place numbers become 0 or 1, and those bools: twice as fast as a comparison that makes bools.
        small = d.abs().lt_(SERIES_RADIUS).bool()
        x = counted(d, small)
        series = torch.ones_like(x)
        for n in range(SERIES_DEGREE if d.dtype == torch.float64 else SINGLE_DEGREE, 2, -1):
            series.mul_(x).mul_(1 / n).add_(1)
        return series.mul_(x).mul_(x).mul_(0.5).add_(counted(torch.expm1(d).sub_(d), ~small))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        # In operations that have gradients themselves, so that this may be differentiated again.
        return grad * torch.expm1(*ctx.saved_tensors)
