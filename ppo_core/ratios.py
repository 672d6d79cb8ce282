"""How much more likely the new policy makes a token, or a sequence: the probability ratio and its logarithm."""

import math

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted
from ppo_core.packing import at_each_token, sequence_totals


def log_ratio(logprobs: Tensor, old_logprobs: Tensor) -> Tensor:
    r"""Subtract the old log-probability of each token from the new one.

    $$\log \rho_t = \log \pi_\theta(a_t \mid s_t) - \log \pi_{\theta_\text{old}}(a_t \mid s_t)$$

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        old_logprobs: The same under the policy that sampled them, same shape, in nats.

    Returns:
        The log-ratios, same shape, in nats, float32 or wider; 0 means no change.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes differ.

    Gradient:
        Into `logprobs` alone: 1.

    Source:
        Schulman et al., "Proximal Policy Optimization Algorithms", 2017, section 3 (logarithm of
        $r_t(\theta)$).

    Examples:
        >>> import torch
        >>> from ppo_core import log_ratio
        >>> log_ratio(torch.tensor([-0.5, -1.0]), torch.tensor([-1.0, -1.0]))
        tensor([0.5000, 0.0000])
    """
    logprobs, old_logprobs = checks.floats({"logprobs": logprobs, "old_logprobs": old_logprobs})
    return logprobs - old_logprobs.detach()


def ratio(logprobs: Tensor, old_logprobs: Tensor, *, log_bound: float | None = None) -> Tensor:
    r"""Divide the new probability of each token by the old one.

    $$\rho_t = \frac{\pi_\theta(a_t \mid s_t)}{\pi_{\theta_\text{old}}(a_t \mid s_t)}
    = \exp\bigl(\log \pi_\theta(a_t \mid s_t) - \log \pi_{\theta_\text{old}}(a_t \mid s_t)\bigr)$$

    It overflows to infinity where the log-ratio passes about 88 in float32; `policy_loss` takes
    log-probabilities and stays right there. `log_bound` moves each log-ratio into [-`log_bound`,
    `log_bound`] before the exponential, which bounds the ratio and kills the gradient of every token beyond.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        old_logprobs: The same under the policy that sampled them, same shape, in nats.
        log_bound: How far from 0 a log-ratio may be, finite and above 0, in nats. Without it there is no
            bound.

    Returns:
        The ratios, same shape, float32 or wider; 1 means no change, 2 twice as likely.

    Raises:
        TypeError: A tensor is not floating point or `log_bound` is not a plain number.
        ValueError: The shapes differ or `log_bound` is out of range.

    Gradient:
        Into `logprobs` alone: the ratio itself; 0 where the log-ratio is beyond `log_bound`, whatever the
        loss wants there: nothing pulls such a token back.

    Source:
        Schulman et al., "Proximal Policy Optimization Algorithms", 2017, section 3, $r_t(\theta)$. The bound
        is a habit of libraries, 20 in several of them.

    Examples:
        >>> import torch
        >>> from ppo_core import ratio
        >>> ratio(torch.tensor([0.8]).log(), torch.tensor([0.5]).log())
        tensor([1.6000])
        >>> ratio(torch.zeros(1), torch.tensor([-100.0]), log_bound=2.0)
        tensor([7.3891])
    """
    return torch.exp(bounded_log_ratio(logprobs, old_logprobs, log_bound))


def sequence_ratio(
    logprobs: Tensor,
    old_logprobs: Tensor,
    mask: Tensor,
    *,
    sequence_ids: Tensor | None = None,
) -> Tensor:
    r"""Take the geometric mean of the ratios of each sequence's counted tokens.

    $$s = \exp\Bigl(\frac{1}{n} \sum_{t \,:\, m_t} \log \rho_t\Bigr), \qquad n = \sum_t m_t$$

    It is the $n$-th root of the ratio of the whole sequence, so that sequences of different lengths can share
    one clip band.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [..., T], in nats.
        old_logprobs: The same under the policy that sampled them, same shape, in nats.
        mask: Bool, same shape. True: the token counts.
        sequence_ids: Number of each token's sequence in packed rows, int64, same shape. Without it each row is
            one sequence.

    Returns:
        The ratio of its sequence at each counted token, same shape, float32 or wider; 0 on uncounted tokens.

    Raises:
        TypeError: A tensor is not floating point, `mask` is not bool or `sequence_ids` is not int64.
        ValueError: The shapes differ or there is no dimension for the tokens.

    Gradient:
        Into `logprobs` alone: each element of the result has the slope $s / n$ in every counted token of its
        sequence; 0 on uncounted tokens whatever they hold.

    Source:
        Zheng et al., "Group Sequence Policy Optimization", 2025, equation 7.

    Examples:
        >>> import torch
        >>> from ppo_core import sequence_ratio
        >>> logprobs = torch.tensor([[4.0, 1.0, 3.0]]).log()
        >>> sequence_ratio(logprobs, torch.zeros(1, 3), torch.tensor([[True, True, False]]))
        tensor([[2., 2., 0.]])
        >>> everything = torch.ones(1, 3, dtype=torch.bool)
        >>> sequence_ratio(logprobs, torch.zeros(1, 3), everything, sequence_ids=torch.tensor([[0, 0, 1]]))
        tensor([[2., 2., 3.]])
    """
    log_s = sequence_log_ratio(logprobs, old_logprobs, mask, sequence_ids)
    return counted(torch.exp(log_s), mask)


def bounded_log_ratio(logprobs: Tensor, old_logprobs: Tensor, log_bound: float | None) -> Tensor:
    """Return the log-ratios, moved to the nearest point of [-log_bound, log_bound] where a bound is given."""
    log_rho = log_ratio(logprobs, old_logprobs)
    if log_bound is None:
        return log_rho
    checks.positive("log_bound", log_bound)
    return log_rho.clamp(-log_bound, log_bound)


def sequence_log_ratio(
    logprobs: Tensor, old_logprobs: Tensor, mask: Tensor, sequence_ids: Tensor | None
) -> Tensor:
    """Return the mean log-ratio of its sequence at each token, 0 on uncounted ones."""
    log_rho = log_ratio(logprobs, old_logprobs)
    checks.token_mask(mask, "logprobs", log_rho)
    checks.tokens_last("logprobs", log_rho)
    checks.sequences(sequence_ids, "logprobs", log_rho)
    totals = sequence_totals(counted(log_rho, mask), sequence_ids)
    # A sequence without a counted token divides 0 by 1: a guard on the quotient would leave a NaN in the
    # backward pass.
    counts = sequence_totals(mask.long(), sequence_ids).clamp(min=1)
    return counted(at_each_token(totals / counts, sequence_ids, log_rho), mask)


def below_overflow(log_rho: Tensor) -> Tensor:
    """Cut log-ratios at the largest whose exponential is finite, for tokens whose loss is flat there.

    A flat loss sends the gradient 0 back through the exponential, which multiplies it by the ratio: 0 times
    infinity would be NaN. The cut changes no value: the largest ratio left, 3e38 in float32, is past every
    bound that means anything.
    """
    # A little below the logarithm of the largest number, so that no rounding reaches infinity.
    return log_rho.clamp(max=math.log(torch.finfo(log_rho.dtype).max) - 0.1)
