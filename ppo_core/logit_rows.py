"""The fast path from logits to log-probabilities and entropies: a few rows at a time, the gradient in closed form.

It gives what the plain definitions in `entropies` give, and holds no second tensor of the size of the logits
beside their gradient. Each piece stays in the cache from its first pass to its last.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted

# How many logits are taken at a time. In float32 the first is 2 MiB, the level-2 caches of two cores: smaller
# pieces pay for the calls, larger ones for the memory. Other devices need more work in each call.
CPU_PIECE_ELEMENTS = 2**19
PIECE_ELEMENTS = 2**24
# The exponential of this is 0 in every type, and 0 times it is 0, where 0 times minus infinity is NaN.
LOWEST = -1000.0

# From logits, tokens, counts and temperature to both results, differentiable any number of times.
Definition = Callable[[Tensor, Tensor, Tensor | None, float], tuple[Tensor, Tensor]]


class TokenStatistics(NamedTuple):
    """What the policy says at each token: the log-probability of the token, and the entropy there."""

    logprobs: Tensor
    entropies: Tensor


def statistics_by_rows(
    logits: Tensor,
    tokens: Tensor,
    counts: Tensor | None,
    temperature: float,
    definition: Definition,
    *,
    entropies: bool,
) -> TokenStatistics:
    """Return log-probability and entropy of each token; the entropies are 0 where they are not asked for.

    All tokens must be in the vocabulary. `definition` gives the second derivative.
    """
    results = _Rows.apply(  # type: ignore[no-untyped-call]  # torch gives apply no types
        logits, tokens, counts, temperature, definition, entropies
    )
    return TokenStatistics(*results)


class _Rows(torch.autograd.Function):
    """Both results and their gradient, piece by piece; what is per token is a column there, shape [N, 1]."""

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        tokens: Tensor,
        counts: Tensor | None,
        temperature: float,
        definition: Definition,
        with_entropies: bool,
    ) -> tuple[Tensor, Tensor]:
        chosen = tokens.reshape(-1, 1)
        wide = torch.promote_types(logits.dtype, torch.float32)
        logprobs = torch.zeros(chosen.shape, dtype=wide, device=logits.device)
        entropies = torch.zeros_like(logprobs)
        for rows, z in _pieces(logits, counts, temperature):
            if z is None:
                continue
            if with_entropies:
                logprobs[rows], entropies[rows] = row_statistics(z, chosen[rows], torch.empty_like(z))
            else:
                logprobs[rows] = torch.log_softmax(z, -1).gather(-1, chosen[rows])
        ctx.save_for_backward(logits, tokens, counts, entropies)
        ctx.temperature, ctx.definition = temperature, definition
        # What was not used, or has no effect on the loss, gets None for its gradient and costs nothing.
        ctx.set_materialize_grads(False)
        # The backward pass needs the entropies, and no view may be changed in place: the caller gets copies.
        results = (x.reshape(tokens.shape).clone() for x in (logprobs, entropies))
        logprobs, entropies = (counted(x, counts) for x in results)
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        logits, tokens, counts, entropies = ctx.saved_tensors
        given = [g for g in gradients if g is not None]
        if not given:
            return None, None, None, None, None, None
        if torch.is_grad_enabled() or not checks.is_ordinary(*given):
            # A gradient of the gradient will be taken, or several gradients are taken at once.
            with torch.enable_grad():
                results = ctx.definition(logits, tokens, counts, ctx.temperature)
            used = [x for x, g in zip(results, gradients, strict=True) if g is not None]
            (gradient,) = torch.autograd.grad(used, logits, given, create_graph=torch.is_grad_enabled())
            return gradient, None, None, None, None, None
        of_logprobs, of_entropies = (
            None if g is None else counted(g, counts).reshape(-1, 1) / ctx.temperature for g in gradients
        )
        gradient = torch.empty(logits.shape, dtype=logits.dtype, device=logits.device)
        by_rows = gradient.view(-1, logits.shape[-1])
        chosen = tokens.reshape(-1, 1)
        for rows, z in _pieces(logits, counts, ctx.temperature):
            if z is None:
                by_rows[rows] = 0.0
                continue
            room = by_rows[rows] if logits.dtype == z.dtype else torch.empty_like(z)
            slopes = row_slopes(
                z,
                chosen[rows],
                entropies[rows],
                None if of_logprobs is None else of_logprobs[rows],
                None if of_entropies is None else of_entropies[rows],
                room,
            )
            if logits.dtype != z.dtype:
                by_rows[rows] = slopes
        return gradient, None, None, None, None, None


def row_statistics(logits: Tensor, tokens: Tensor, room: Tensor) -> tuple[Tensor, Tensor]:
    """Return log-probability and entropy of each row; `room`, which may be the logits, is overwritten."""
    logprobs = torch.log_softmax(logits, -1)
    chosen = logprobs.gather(-1, tokens)
    probs = torch.exp(logprobs.clamp_(min=LOWEST), out=room)
    return chosen, logprobs.mul_(probs).sum(-1, keepdim=True).neg_()


def row_slopes(
    logits: Tensor,
    tokens: Tensor,
    entropies: Tensor,
    grad_logprobs: Tensor | None,
    grad_entropies: Tensor | None,
    room: Tensor,
) -> Tensor:
    """Return the gradient of each row with respect to the logits, in `room`, which may be the logits."""
    if grad_entropies is not None:
        slopes_of(torch.log_softmax(logits, -1), entropies, grad_logprobs, grad_entropies, room)
    elif grad_logprobs is not None:
        torch.softmax(logits, -1, out=room).mul_(-grad_logprobs)
    return room if grad_logprobs is None else room.scatter_add_(-1, tokens, grad_logprobs)


def slopes_of(
    logprobs: Tensor, entropies: Tensor, grad_logprobs: Tensor | None, grad_entropies: Tensor, room: Tensor
) -> Tensor:
    """Return the slopes in the logits without that of the token itself, in `room`.

    The log-probabilities are overwritten.
    """
    probs = torch.exp(logprobs.clamp_(min=LOWEST), out=room)
    slopes = logprobs.add_(entropies).mul_(-grad_entropies)
    if grad_logprobs is not None:
        slopes.sub_(grad_logprobs)
    return probs.mul_(slopes)


def counted_logits(logits: Tensor, temperature: float, counts: Tensor | None) -> Tensor:
    """Return the logits over the temperature, in float32 or wider, with 0 in the places that do not count."""
    logits = counted(checks.wide(logits), None if counts is None else counts.unsqueeze(-1))
    # Division by 1 changes no bit, and would hold a second copy of the largest tensor there is.
    return logits if temperature == 1 else logits / temperature


def _pieces(
    logits: Tensor, counts: Tensor | None, temperature: float
) -> Iterator[tuple[slice, Tensor | None]]:
    """Yield the places of a few rows and what `counted_logits` makes of them, None where none of them counts."""
    size = logits.shape[-1]
    elements = CPU_PIECE_ELEMENTS if logits.device.type == "cpu" else PIECE_ELEMENTS
    most = max(1, elements // size)
    number = logits.numel() // size
    for first in range(0, number, most):
        rows = slice(first, min(first + most, number))
        part = None if counts is None else counts.reshape(-1)[rows]
        if part is not None and checks.may_look(part):
            # Padding and prompts come in runs: most pieces count wholly or not at all.
            if not part.any():
                yield rows, None
                continue
            part = None if part.all() else part
        yield rows, counted_logits(_rows(logits, rows), temperature, part)


def _rows(logits: Tensor, rows: slice) -> Tensor:
    """Return some rows, as a view where the layout allows it; no more than these are ever copied."""
    if logits.ndim <= 2 or logits.is_contiguous():
        return logits.reshape(-1, logits.shape[-1])[rows]
    places = torch.arange(rows.start, rows.stop, device=logits.device)
    return logits[torch.unravel_index(places, logits.shape[:-1])]
