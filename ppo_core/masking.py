"""Sums and means over the counted elements.

A mask selects *inputs*: what lies under it is replaced before anything is computed. Multiplying a result by
the mask is not enough, because 0 times NaN and 0 times infinity are NaN, in the value and again in the
gradient.
"""

import torch
from torch import Tensor

from ppo_core import checks


def counted(x: Tensor, mask: Tensor | None) -> Tensor:
    """Replace by 0 what the mask leaves out; without a mask everything counts."""
    return x if mask is None else torch.where(mask, x, 0.0)


def masked_sum(x: Tensor, mask: Tensor) -> Tensor:
    r"""Sum the counted elements.

    $$\sum_{i \,:\, m_i} x_i$$

    Args:
        x: Any floating-point tensor, shape [...].
        mask: Bool, the shape of `x`. True: the element counts.

    Returns:
        The sum, shape [], float32 or wider; 0 when nothing counts.

    Raises:
        TypeError: `x` is not floating point or `mask` is not bool.
        ValueError: The shapes differ.

    Gradient:
        Into `x`: 1 where the mask is True, 0 elsewhere, even under NaN or infinity.

    Source:
        Definition.

    Examples:
        >>> import torch
        >>> from ppo_core import masked_sum
        >>> masked_sum(torch.tensor([1.0, 2.0, torch.nan]), torch.tensor([True, True, False]))
        tensor(3.)
    """
    (x,) = checks.floats({"x": x})
    checks.token_mask(mask, "x", x)
    return counted(x, mask).sum()


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    r"""Average the counted elements.

    $$\frac{\sum_{i \,:\, m_i} x_i}{\max(1, \sum_i m_i)}$$

    Args:
        x: Any floating-point tensor, shape [...].
        mask: Bool, the shape of `x`. True: the element counts.

    Returns:
        The mean, shape [], float32 or wider; 0 when nothing counts.

    Raises:
        TypeError: `x` is not floating point or `mask` is not bool.
        ValueError: The shapes differ.

    Gradient:
        Into `x`: 1 over the number of counted elements where the mask is True, 0 elsewhere, even under NaN or
        infinity.

    Source:
        Definition.

    Examples:
        >>> import torch
        >>> from ppo_core import masked_mean
        >>> x = torch.tensor([1.0, 2.0, torch.nan, 4.0])
        >>> masked_mean(x, torch.tensor([True, False, False, True]))
        tensor(2.5000)
        >>> masked_mean(x, torch.zeros(4, dtype=torch.bool))
        tensor(0.)
    """
    total = masked_sum(x, mask)
    # An empty mask divides 0 by 1: a guard on the quotient alone would leave a NaN in the backward pass.
    return total / mask.sum().clamp(min=1)
