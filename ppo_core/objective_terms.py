"""The terms of the PPO objective where every counted token weighs the same, with their slopes in closed form.

Term by term and step by step, the batch would go through main memory some hundred times. Here it goes a piece at a
time, and what is kept for the backward pass is three numbers per token.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.closed_form import clipped_losses_and_slopes
from ppo_core.masking import all_bits, keep_
from ppo_core.pieces import pieces

Terms = tuple[Tensor, ...]
# The widths of the clip band and the dual clip, as `clipped_losses_and_slopes` takes them.
Clip = dict[str, Any]


def terms_in_pieces(
    definition: Callable[..., Terms],
    tensors: Sequence[Tensor],
    mask: Tensor,
    divisor: float | Tensor,
    clip: Clip,
) -> Terms:
    """Return policy loss, half the squared error of the values, entropy and k2, each summed and divided.

    Args:
        definition: The same as a plain function of `tensors`.
        tensors: The first seven arguments of `ppo_objective`, all of one type and on the CPU.
        mask: Bool, their shape.
        divisor: What each sum is divided by.
        clip: The widths of the clip band, and the dual clip.
    """
    return _Terms.apply(definition, mask, divisor, clip, *tensors)  # type: ignore[no-any-return, no-untyped-call]


class _Terms(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        definition: Callable[..., Terms],
        mask: Tensor,
        divisor: float | Tensor,
        clip: Clip,
        *tensors: Tensor,
    ) -> Terms:
        totals, ctx.slopes = _totals_and_slopes(mask, tensors, clip)
        ctx.definition, ctx.divisor, ctx.clip = definition, divisor, clip
        ctx.save_for_backward(mask, *tensors)
        return (totals / divisor).unbind()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        mask, *tensors = ctx.saved_tensors
        if torch.is_grad_enabled() or not checks.is_ordinary(*grads):
            # A gradient of the gradient will be taken, or several gradients are taken at once.
            gradients = _by_definition(ctx.definition, tensors, ctx.needs_input_grad[4:], grads)
        else:
            # The slopes become the gradients in their place, because new memory costs more than the arithmetic.
            # Whoever goes back a second time has to wait for others.
            slopes, ctx.slopes = ctx.slopes, None
            gradients = _gradients(
                slopes or _totals_and_slopes(mask, tensors, ctx.clip)[1],
                mask,
                [grad / ctx.divisor for grad in grads],
            )
        return None, None, None, None, *gradients


def _gradients(slopes: list[Tensor], mask: Tensor, grads: list[Tensor]) -> tuple[Tensor | None, ...]:
    """Return the gradients of the seven tensors, in the place of the slopes."""
    policy, value, entropy, kl = grads
    of_policy, of_value, of_kl = slopes
    to_logprobs = of_policy.mul_(policy).addcmul_(of_kl, kl)
    to_values = of_value.mul_(value)
    # By way of a whole number a bool becomes a float several times as fast.
    to_entropies = of_kl.copy_(mask.view(torch.uint8)).mul_(entropy)
    return to_logprobs, None, None, None, to_values, None, to_entropies


def _totals_and_slopes(mask: Tensor, tensors: Sequence[Tensor], clip: Clip) -> tuple[Tensor, list[Tensor]]:
    """Return the sums of the four terms, and the slopes of the first, the second and the last in their tensors."""
    slopes = list(torch.empty(3, *mask.shape, dtype=tensors[0].dtype).unbind())
    totals = [_of_piece(*piece, clip=clip) for piece in pieces(mask, *tensors, *slopes)]
    return torch.stack(totals).sum(0), slopes


def _of_piece(
    mask: Tensor,
    logprobs: Tensor,
    old_logprobs: Tensor,
    ref_logprobs: Tensor,
    advantages: Tensor,
    values: Tensor,
    returns: Tensor,
    entropies: Tensor,
    of_policy: Tensor,
    errors: Tensor,
    drifts: Tensor,
    *,
    clip: Clip,
) -> Tensor:
    """Return the sums of the four terms over a piece; write the slopes of three of them into the last tensors."""
    losses, _ = clipped_losses_and_slopes(logprobs, old_logprobs, advantages, mask, **clip, out=of_policy)
    policy = losses.sum()
    bits = all_bits(mask, logprobs.dtype)
    keep_(torch.sub(values, returns, out=errors), bits)
    keep_(torch.sub(logprobs, ref_logprobs, out=drifts), bits)
    # The losses are summed: their place is free.
    value, kl = (torch.square(x, out=losses).sum() / 2 for x in (errors, drifts))
    return torch.stack([policy, value, keep_(losses.copy_(entropies), bits).sum(), kl])


def _by_definition(
    definition: Callable[..., Terms],
    tensors: Sequence[Tensor],
    needed: Sequence[bool],
    grads: tuple[Tensor, ...],
) -> tuple[Tensor | None, ...]:
    """Return the gradients that autograd finds, with a history of their own where one is wanted."""
    again = torch.is_grad_enabled()
    wanted = [x for x, needs in zip(tensors, needed, strict=True) if needs]
    with torch.enable_grad():
        terms = definition(*tensors)
    found = torch.autograd.grad(terms, wanted, grads, create_graph=again, materialize_grads=True)
    of_wanted = iter(found)
    return tuple(next(of_wanted) if needs else None for needs in needed)
