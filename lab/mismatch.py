r"""Tokens that were not sampled from the policy that the trainer computes, though the weights are the same.

A sampler in another precision, or at another temperature, is another policy. The ratio of the trainer's
probability to the sampler's is then not 1 before any step, and it is the weight that would correct for it.
"""

import torch
from torch import Tensor

from ppo_core import checks, ratio


def precision_ratio(logits: Tensor) -> Tensor:
    r"""Divide the probabilities of the exact logits by those of the logits rounded to bfloat16.

    $$\frac{\operatorname{softmax}(z)_a}{\operatorname{softmax}(\operatorname{bfloat16}(z))_a}$$

    bfloat16 keeps 8 binary digits: a logit of 20 is rounded by up to 0.0625, and its probability moves by
    some 6 percent.

    Args:
        logits: Logits of the policy, $z$, shape [n] with n at least 2.

    Returns:
        The ratios, shape [n], in float64.

    Raises:
        TypeError: `logits` is not a floating-point tensor.
        ValueError: `logits` has another shape.

    Gradient:
        None: the result is a vector of numbers.

    Source:
        Definition; Yao et al., "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training",
        2025, the effect.

    Examples:
        >>> import torch
        >>> from lab import precision_ratio
        >>> precision_ratio(torch.tensor([20.06, 20.0, 18.0])).tolist()
        [1.0320, 0.9719, 0.9719]
    """
    logits = _logits(logits).detach().double()
    rounded = logits.to(torch.bfloat16).double()
    return ratio(torch.log_softmax(logits, -1), torch.log_softmax(rounded, -1))


def temperature_ratio(logits: Tensor, *, temperature: float) -> Tensor:
    r"""Divide the probabilities at temperature 1 by those at which the tokens were sampled.

    $$\frac{\operatorname{softmax}(z)_a}{\operatorname{softmax}(z / \tau)_a}$$

    Args:
        logits: Logits of the policy, $z$, shape [n] with n at least 2.
        temperature: $\tau$, above 0; below 1 it makes likely tokens more likely.

    Returns:
        The ratios, shape [n].

    Raises:
        TypeError: `logits` is not a floating-point tensor or `temperature` is not a plain number.
        ValueError: `logits` has another shape or `temperature` is not above 0.

    Gradient:
        None: the result is a vector of numbers.

    Source:
        Definition.

    Examples:
        >>> import torch
        >>> from lab import temperature_ratio
        >>> temperature_ratio(torch.tensor([1.0, 0.0]), temperature=0.5).tolist()
        [0.8300, 2.2561]
    """
    checks.positive("temperature", temperature)
    logits = _logits(logits).detach()
    return ratio(torch.log_softmax(logits, -1), torch.log_softmax(logits / temperature, -1))


def _logits(logits: Tensor) -> Tensor:
    """Check that these are the logits of a policy with a choice; return them in float32 or wider."""
    (logits,) = checks.floats({"logits": logits})
    if logits.ndim != 1 or logits.numel() < 2:
        raise ValueError(f"logits must have the shape [n] with n at least 2, got {list(logits.shape)}")
    return logits
