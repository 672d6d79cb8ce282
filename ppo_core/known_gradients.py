"""Gradients that are computed along with a number, before autograd asks for them."""

from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor


def with_gradients(
    x: Tensor, arguments: Sequence[Tensor | None], gradients: Sequence[Tensor | None], *, twice: str
) -> Tensor:
    """Return a number of shape [] that has these gradients in its arguments; None where there is none.

    The gradients may be of a wider type than their arguments. `twice` is what the error says when a gradient is
    asked of the gradient.
    """
    found: Tensor = _WithGradients.apply(twice, x, *arguments, *gradients)  # type: ignore[no-untyped-call]  # torch gives apply no types
    return found


class _WithGradients(torch.autograd.Function):
    """The arguments come first, then as many gradients; the arguments are there to be given them."""

    @staticmethod
    def forward(ctx: Any, twice: str, x: Tensor, *arguments_and_gradients: Tensor | None) -> Tensor:
        ctx.save_for_backward(*arguments_and_gradients)
        ctx.twice = twice
        return x.clone()

    @staticmethod
    def backward(ctx: Any, incoming: Tensor) -> tuple[Tensor | None, ...]:
        gradients = _Scaled.apply(ctx.twice, incoming, *ctx.saved_tensors)  # type: ignore[no-untyped-call]
        return None, None, *gradients, *[None for _ in gradients]


class _Scaled(torch.autograd.Function):
    """The gradients times the incoming one: a function of its own, so that its gradient is an error.

    The arguments give it a history. Without one a penalty on the size of the gradient would silently do nothing.
    """

    @staticmethod
    def forward(
        ctx: Any, twice: str, incoming: Tensor, *arguments_and_gradients: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        ctx.twice = twice
        half = len(arguments_and_gradients) // 2
        pairs = zip(arguments_and_gradients[:half], arguments_and_gradients[half:], strict=True)
        # Not in place: the backward pass may run twice. Rounded after the product only: a loss scale is there to
        # keep small gradients from becoming 0 in half precision.
        return tuple(
            None if x is None or gradient is None else (gradient * incoming).to(x.dtype)
            for x, gradient in pairs
        )

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> NoReturn:
        raise RuntimeError(ctx.twice)
