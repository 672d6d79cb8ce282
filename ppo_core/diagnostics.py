"""How a run is doing: numbers to be watched, not to be trained on.

All of them look at counted tokens alone, carry no gradient, and stay on the device: read them when you want to
wait for it.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.kl import kl_k3
from ppo_core.masking import all_bits, counted, keep_, masked_mean, number_counted
from ppo_core.pieces import pieces
from ppo_core.ratios import log_ratio


class ClipFractions(NamedTuple):
    """The shares of the counted tokens whose loss each side of the clip changes, each of shape []."""

    upper: Tensor
    lower: Tensor
    dual: Tensor


def clip_fractions(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    epsilon: float,
    epsilon_high: float | None = None,
    dual_clip: float | None = None,
) -> ClipFractions:
    r"""Count the tokens whose loss the clip changes, by the side on which it does.

    With $n$ counted tokens:

    $$\text{upper} = \frac{\#\{A_t > 0,\ \rho_t > 1 + \epsilon_\text{high}\}}{n}, \qquad
    \text{lower} = \frac{\#\{A_t < 0,\ \rho_t < 1 - \epsilon\}}{n}, \qquad
    \text{dual} = \frac{\#\{A_t < 0,\ \rho_t > c\}}{n}$$

    These are the tokens to which `policy_loss`, called with the same numbers, gives no gradient. A ratio
    outside the band on the other side is not clipped: a count of $|\rho_t - 1| > \epsilon$ has it too, and so
    says more than is true. No token is in two of the shares, so they may be added.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        old_logprobs: The same under the policy that sampled them, same shape, in nats.
        advantages: How much better than expected each token was, same shape, in units of reward.
        mask: Bool, same shape. True: the token counts.
        epsilon: Width of the band below 1, strictly between 0 and 1.
        epsilon_high: Width of the band above 1, finite and above 0; it may pass 1. Without it the band is as
            wide above as below.
        dual_clip: $c$, the cap on the ratio of bad tokens, finite and above 1. Without it `dual` is 0.

    Returns:
        A named tuple of tensors of shape [], float32 or wider, from 0 to 1: `upper`, `lower`, `dual`; 0 when
        nothing counts.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool or a hyper-parameter is not a plain
            number.
        ValueError: The shapes differ or a hyper-parameter is out of range.

    Gradient:
        None.

    Source:
        Definition, from Schulman et al., "Proximal Policy Optimization Algorithms", 2017, equation 7; dual:
        Ye et al., "Mastering Complex Control in MOBA Games with Deep Reinforcement Learning", 2020, equation
        5.

    Examples:
        >>> import torch
        >>> from ppo_core import clip_fractions
        >>> logprobs = torch.tensor([1.5, 1.5, 0.5, 0.5]).log()
        >>> advantages, mask = torch.tensor([1.0, -1.0, 1.0, -1.0]), torch.ones(4, dtype=torch.bool)
        >>> clip_fractions(logprobs, torch.zeros(4), advantages, mask, epsilon=0.2)
        ClipFractions(upper=tensor(0.2500), lower=tensor(0.2500), dual=tensor(0.))
        >>> clip_fractions(logprobs, torch.zeros(4), advantages, mask, epsilon=0.2, dual_clip=1.4).dual
        tensor(0.2500)
    """
    logprobs, old_logprobs, advantages = checks.floats(
        {"logprobs": logprobs, "old_logprobs": old_logprobs, "advantages": advantages}
    )
    checks.token_mask(mask, "logprobs", logprobs)
    checks.clip_band(epsilon, epsilon_high)
    checks.dual_clip(dual_clip)
    # The same ratio is compared with the same bounds as in the loss, so both agree to the last bit. A ratio
    # that overflows is above every bound. A comparison passes on no gradient.
    bounds = (1 - epsilon, 1 + (epsilon if epsilon_high is None else epsilon_high), dual_clip)
    parts = [
        _clipped(*piece, bounds=bounds)
        for piece in pieces(logprobs.detach(), old_logprobs, advantages.detach(), mask)
    ]
    return ClipFractions(*(torch.stack(parts).sum(0) / number_counted(mask).clamp(min=1)).unbind())


def _clipped(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    bounds: tuple[float, float, float | None],
) -> Tensor:
    """Count the tokens whose loss each side of the clip changes.

    Compared in place, a number becomes 0 or 1: that is four times as fast as a comparison that makes bools.
    """
    floor, ceiling, dual_clip = bounds
    bits = all_bits(mask, logprobs.dtype)
    # The ratio of what does not count is 1, which no side of the clip changes.
    rho = keep_(log_ratio(logprobs, old_logprobs), bits).exp_()
    advantages = keep_(advantages.clone(), bits)
    upper = rho.clone().gt_(ceiling).mul_(advantages.clone().gt_(0)).sum()
    bad = advantages.clone().lt_(0)
    dual = torch.zeros_like(upper) if dual_clip is None else rho.clone().gt_(dual_clip).mul_(bad).sum()
    lower = rho.clone().lt_(floor).mul_(bad).sum()
    # No comparison with NaN holds, which would hide it; a sum is NaN if one of its terms is.
    unknown = (rho.sum() + advantages.sum()).isnan()
    return torch.where(unknown, torch.nan, torch.stack([upper, lower, dual]))


def approximate_kl(logprobs: Tensor, old_logprobs: Tensor, mask: Tensor) -> Tensor:
    r"""Estimate how far the policy has moved since it sampled the tokens, as a mean over the counted ones.

    $$\frac{1}{n} \sum_{t \,:\, m_t} (\rho_t - 1 - \log \rho_t), \qquad \rho_t = \exp(\log \pi_\theta(a_t \mid s_t)
    - \log \pi_{\theta_\text{old}}(a_t \mid s_t))$$

    This is `kl_k3` with the sampling policy in front: never negative, and on average
    $\mathrm{KL}(\pi_{\theta_\text{old}} \Vert \pi_\theta)$ per token. It says nothing of the reference policy.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        old_logprobs: The same under the policy that sampled them, same shape, in nats.
        mask: Bool, same shape. True: the token counts.

    Returns:
        The mean, shape [], in nats per token, float32 or wider; 0 when nothing counts. It is infinite when a
        ratio is, past a log-ratio of about 88 in float32.

    Raises:
        TypeError: A tensor is not floating point or `mask` is not bool.
        ValueError: The shapes differ.

    Gradient:
        None.

    Source:
        Schulman, "Approximating KL Divergence", 2020, $k_3$; Huang et al., "The 37 Implementation Details of
        Proximal Policy Optimization", 2022, detail 12.

    Examples:
        >>> import torch
        >>> from ppo_core import approximate_kl
        >>> mask = torch.tensor([True, True, False])
        >>> approximate_kl(torch.tensor([1.0, 1.0, 9.0]), torch.tensor([1.0, 0.0, 0.0]), mask)
        tensor(0.3591)
    """
    logprobs, old_logprobs = checks.floats({"logprobs": logprobs, "old_logprobs": old_logprobs})
    checks.token_mask(mask, "logprobs", logprobs)
    # k3 takes first the policy that sampled.
    totals = [
        kl_k3(old, new, mask=counts).sum()
        for new, old, counts in pieces(logprobs, old_logprobs.detach(), mask)
    ]
    return torch.stack(totals).sum() / number_counted(mask).clamp(min=1)


def explained_variance(values: Tensor, returns: Tensor, mask: Tensor) -> Tensor:
    r"""Say how much of the variance of the returns the critic explains.

    $$1 - \frac{\operatorname{Var}(R_t - V(s_t))}{\operatorname{Var}(R_t)}$$

    over the counted tokens. 1: the values are the returns, up to one number added to all. 0: they explain no
    more than a constant does. Below 0: they are worse than a constant.

    Args:
        values: The critic's value of the state before each token, shape [...], in units of reward.
        returns: What it should have said, same shape, in units of reward.
        mask: Bool, same shape. True: the token counts.

    Returns:
        The share, shape [], at most 1, float32 or wider. NaN where the counted returns do not vary, so also
        with one counted token or none: there is no variance to explain.

    Raises:
        TypeError: A tensor is not floating point or `mask` is not bool.
        ValueError: The shapes differ.

    Gradient:
        None.

    Source:
        Definition; NaN for returns that do not vary is the convention of Stable-Baselines3 and CleanRL.

    Examples:
        >>> import torch
        >>> from ppo_core import explained_variance
        >>> returns, mask = torch.tensor([1.0, 2.0, 3.0]), torch.ones(3, dtype=torch.bool)
        >>> explained_variance(torch.tensor([1.0, 2.0, 2.0]), returns, mask)
        tensor(0.6667)
        >>> explained_variance(returns, torch.ones(3), mask)
        tensor(nan)
    """
    values, returns = checks.floats({"values": values, "returns": returns})
    checks.token_mask(mask, "values", values)
    values, returns = values.detach(), returns.detach()
    # In units of the spread no square of a return is out of range. Equal returns have the spread 0 exactly,
    # where rounding could give them a variance: all that is divided by it is infinite or NaN, and so the
    # quotient NaN.
    spread = _filled(returns, mask, -torch.inf).amax() - _filled(returns, mask, torch.inf).amin()
    total = _squared_deviations(returns, mask, unit=spread)
    left = _squared_deviations(returns - values, mask, unit=spread)
    return 1 - left / total


def effective_sample_size(log_weights: Tensor, mask: Tensor) -> Tensor:
    r"""Say what share of the samples is left when each has its weight.

    $$\frac{1}{n} \frac{\bigl(\sum_{i \,:\, m_i} w_i\bigr)^2}{\sum_{i \,:\, m_i} w_i^2}$$

    with the $n$ counted weights $w_i = \exp(\text{log weight}_i)$. 1: all weigh the same. $1 / n$: one outweighs
    all others. Only the relations of the weights matter, so it is right also where they overflow.

    Args:
        log_weights: Logarithm of each sample's weight, shape [...], in nats: log-ratios of tokens, or their
            sums over sequences.
        mask: Bool, same shape. True: the sample counts.

    Returns:
        The share, shape [], from 1 over the number of counted samples to 1, float32 or wider; 0 when nothing
        counts. NaN where every counted weight is 0, or one is infinite.

    Raises:
        TypeError: `log_weights` is not floating point or `mask` is not bool.
        ValueError: The shapes differ.

    Gradient:
        None.

    Source:
        Kish, "Weighting for Unequal $P_i$", 1992: 1 over the design effect of the weights.

    Examples:
        >>> import torch
        >>> from ppo_core import effective_sample_size
        >>> mask = torch.tensor([True, True, True, True])
        >>> effective_sample_size(torch.tensor([1.0, 1.0, 1.0, 3.0]).log(), mask)
        tensor(0.7500)
        >>> effective_sample_size(torch.tensor([1000.0, 0.0, 0.0, 0.0]), mask)
        tensor(0.2500)
    """
    (log_weights,) = checks.floats({"log_weights": log_weights})
    checks.token_mask(mask, "log_weights", log_weights)
    log_weights = log_weights.detach()
    # Divided by the greatest, no weight is above 1.
    greatest = _filled(log_weights, mask, -torch.inf).amax()
    weights = counted(torch.exp(log_weights - greatest), mask)
    size = weights.sum() ** 2 / (weights**2).sum()
    count = mask.sum()
    return torch.where(count > 0, size / count, 0.0)


def ratio_quantiles(logprobs: Tensor, old_logprobs: Tensor, mask: Tensor, *, q: float) -> Tensor:
    r"""Find the ratio below which a share of the counted ratios lies.

    $$\rho_{(\lfloor k \rfloor)} + (k - \lfloor k \rfloor)
    \bigl(\rho_{(\lceil k \rceil)} - \rho_{(\lfloor k \rfloor)}\bigr), \qquad k = q \, (n - 1)$$

    with the $n$ counted ratios in order, $\rho_{(0)}$ the least: between two of them the result is
    interpolated. `q=0.5` is the median, `q=1` the greatest ratio. A clip fraction says how many ratios have
    left the band, a quantile how far.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        old_logprobs: The same under the policy that sampled them, same shape, in nats.
        mask: Bool, same shape. True: the token counts.
        q: The share, from 0 to 1.

    Returns:
        The quantile, shape [], float32 or wider. NaN when nothing counts: no ratio is there to be named.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool or `q` is not a plain number.
        ValueError: The shapes differ or `q` is out of range.

    Gradient:
        None.

    Source:
        Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996, definition 7.

    Examples:
        >>> import torch
        >>> from ppo_core import ratio_quantiles
        >>> logprobs, old = torch.tensor([2.0, 1.0, 4.0, 9.0]).log(), torch.zeros(4)
        >>> mask = torch.tensor([True, True, True, False])
        >>> ratio_quantiles(logprobs, old, mask, q=0.5)
        tensor(2.)
        >>> ratio_quantiles(logprobs, old, mask, q=0.75)
        tensor(3.)
    """
    logprobs, old_logprobs = checks.floats({"logprobs": logprobs, "old_logprobs": old_logprobs})
    checks.token_mask(mask, "logprobs", logprobs)
    checks.fraction("q", q)
    # What is not counted is put after all that is: to pick the counted ones would wait for their number.
    in_order = _filled(log_ratio(logprobs.detach(), old_logprobs), mask, torch.inf).sort().values
    # In float64, because float32 cannot tell all places of a large batch apart.
    place = q * (mask.sum() - 1).clamp(min=0).double()
    below, above = torch.exp(in_order.take(torch.stack([place.floor(), place.ceil()]).long()))
    between = (place - place.floor()).to(below.dtype)
    # Equal ratios are not subtracted, because both may be infinite.
    quantile = below + torch.where(above > below, between * (above - below), 0.0)
    # NaN is in order after everything else.
    return torch.where(mask.any() & ~in_order[-1].isnan(), quantile, torch.nan)


def _filled(x: Tensor, mask: Tensor, filler: float) -> Tensor:
    """List the elements, with `filler` for what is not counted, and once more at the end: no list is empty."""
    return torch.nn.functional.pad(torch.where(mask, x, filler).flatten(), (0, 1), value=filler)


def _squared_deviations(x: Tensor, mask: Tensor, *, unit: Tensor) -> Tensor:
    """Sum the squared distances of the counted elements from their mean.

    In two passes: the mean of the squares less the square of the mean would cancel.
    """
    return (counted((x - masked_mean(x, mask)) / unit, mask) ** 2).sum()
