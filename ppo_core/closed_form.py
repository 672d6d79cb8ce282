"""The clipped loss with its slope in closed form, so that the backward pass is one product.

Autograd goes back over every step of a formula. The slope of this loss is known as soon as the loss is: it is
the loss itself where no clip is active, and 0 elsewhere.
"""

from typing import Any

import torch
from torch import Tensor

from ppo_core.masking import counted


def clipped_losses_and_slopes(
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor | None,
    *,
    epsilon: float,
    epsilon_high: float | None,
    dual_clip: float | None,
    log_bound: float | None = None,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the losses of `policy_loss` and their slopes in `logprobs`, all in one type, without a history.

    Without `log_bound` the slopes are written into `out` where it is given. Each step overwrites the one before
    where it can: on the CPU new memory costs more than the arithmetic.
    """
    with torch.no_grad():
        log_rho = torch.sub(logprobs, old_logprobs, out=out)
        rho = log_rho if log_bound is None else log_rho.clamp(-log_bound, log_bound)
        free = None if log_bound is None else log_rho.eq_(rho)
        rho = rho.exp_()
        # 1 for A >= 0 and 0 for A < 0: a choice by arithmetic, because torch.where is slow on the CPU.
        good = advantages.sign().add_(1).clamp_(max=1)
        ceiling = 1 + (epsilon if epsilon_high is None else epsilon_high)
        # Divided by 0, the ceiling of bad tokens is infinity.
        highest = (
            good.reciprocal().mul_(ceiling)
            if dual_clip is None
            else (1 - good).mul_(dual_clip).add_(good, alpha=ceiling)
        )
        lowest = good.sub_(1).mul_(epsilon - 1)
        bounded = torch.clamp(rho, lowest, highest, out=highest)
        unclipped = rho.eq_(bounded)
        # One mask, on the result, is enough where no gradient goes back through what it leaves out.
        losses = counted(bounded.mul_(advantages).neg_(), mask)
        slopes = unclipped.mul_(losses)
        return losses, slopes if free is None else slopes.mul_(free)


def with_slopes(logprobs: Tensor, losses: Tensor, slopes: Tensor, mask: Tensor | None) -> Tensor:
    """Return the losses as a function of `logprobs` that has these slopes, and passes no gradient under the mask.

    The slopes have themselves as slopes, as the exponential has: so the result may be differentiated again.
    """
    if not (torch.is_grad_enabled() and logprobs.requires_grad):
        return losses
    return _WithSlopes.apply(logprobs, losses, slopes, mask)  # type: ignore[no-any-return, no-untyped-call]


class _WithSlopes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logprobs: Tensor, losses: Tensor, slopes: Tensor, mask: Tensor | None) -> Tensor:
        ctx.save_for_backward(logprobs, slopes, mask)
        return losses.view_as(losses)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logprobs, slopes, mask = ctx.saved_tensors
        return counted(grad * with_slopes(logprobs, slopes, slopes, mask), mask), None, None, None
