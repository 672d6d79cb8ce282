"""How much more likely the new policy makes a token: the probability ratio and its logarithm."""

import torch
from torch import Tensor

from ppo_core import checks


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


def ratio(logprobs: Tensor, old_logprobs: Tensor) -> Tensor:
    r"""Divide the new probability of each token by the old one.

    $$\rho_t = \frac{\pi_\theta(a_t \mid s_t)}{\pi_{\theta_\text{old}}(a_t \mid s_t)}
    = \exp\bigl(\log \pi_\theta(a_t \mid s_t) - \log \pi_{\theta_\text{old}}(a_t \mid s_t)\bigr)$$

    It overflows to infinity where the log-ratio passes about 88 in float32; `policy_loss` takes
    log-probabilities and stays right there.

    Args:
        logprobs: Log-probabilities of the sampled tokens under the trained policy, shape [...], in nats.
        old_logprobs: The same under the policy that sampled them, same shape, in nats.

    Returns:
        The ratios, same shape, float32 or wider; 1 means no change, 2 twice as likely.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes differ.

    Gradient:
        Into `logprobs` alone: the ratio itself.

    Source:
        Schulman et al., "Proximal Policy Optimization Algorithms", 2017, section 3, $r_t(\theta)$.

    Examples:
        >>> import torch
        >>> from ppo_core import ratio
        >>> ratio(torch.tensor([0.8]).log(), torch.tensor([0.5]).log())
        tensor([1.6000])
    """
    return torch.exp(log_ratio(logprobs, old_logprobs))
