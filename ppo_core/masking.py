"""Sums and means over the counted elements.

A mask selects *inputs*: what lies under it is replaced before anything is computed. Multiplying a result by
the mask is not enough, because 0 times NaN and 0 times infinity are NaN, in the value and again in the
gradient.
"""

from typing import Any

import torch
from torch import Tensor

from ppo_core import checks

# The integers as wide as a floating-point number of so many bytes.
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def counted(x: Tensor, mask: Tensor | None) -> Tensor:
    """Replace by 0 what the mask leaves out; without a mask everything counts."""
    if mask is None:
        return x
    if checks.may_look(x) and checks.is_ordinary(x):
        return _Counted.apply(x, mask)  # type: ignore[no-any-return, no-untyped-call]
    return torch.where(mask, x, 0.0)


def number_counted(mask: Tensor) -> Tensor:
    """Count what the mask does not leave out."""
    # In eager mode a sum would hold the whole mask as integers. In a graph it does not, and one of int32 is twice as
    # fast as one of int64; a batch of two billion tokens would be needed to pass its largest number.
    return mask.sum(dtype=torch.int32) if torch.compiler.is_compiling() else mask.count_nonzero()


class _Counted(torch.autograd.Function):
    """The same on the CPU in eager mode, where `torch.where` takes twenty times as long as an addition."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(mask)
        bits = all_bits(mask, x.dtype)
        # In the place of the bits where they are as many: new memory costs more than the operation.
        return torch.bitwise_and(as_integers(x), bits, out=bits if bits.shape == x.shape else None).view(
            x.dtype
        )

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return counted(grad, *ctx.saved_tensors), None


def keep_(x: Tensor, bits: Tensor) -> Tensor:
    """Replace by 0, in place, what has no bit set in `bits`."""
    as_integers(x).bitwise_and_(bits)
    return x


def all_bits(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return for each element an integer as wide as `dtype` with all bits set, or none: minus 1, or 0."""
    return mask.to(INTEGERS[dtype.itemsize]).neg_()


def as_integers(x: Tensor) -> Tensor:
    """View the bits of numbers as integers."""
    return x.view(INTEGERS[x.element_size()])


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
    return total / number_counted(mask).clamp(min=1)
