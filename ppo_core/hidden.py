"""From hidden states to log-probabilities and entropies, without ever holding the logits of all tokens.

The logits are the largest tensor of a training step: the hidden states times the vocabulary over the width.
Here they are made for a few tokens at a time, forward and again backward, and thrown away.
"""

from typing import Any, NoReturn

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.entropies import counted_tokens, known_tokens
from ppo_core.logit_rows import TokenStatistics, row_slopes, row_statistics
from ppo_core.masking import counted
from ppo_core.unembedding import autocast_type, chunks, counted_states, unembedding, without_autocast

# How many logits are held at a time, 32 MiB in float32: enough rows to make the products worth it.
CHUNK_ELEMENTS = 2**23


def hidden_logprobs(
    hidden: Tensor,
    weight: Tensor,
    tokens: Tensor,
    bias: Tensor | None = None,
    *,
    temperature: float = 1.0,
    ignore_index: int | None = None,
    mask: Tensor | None = None,
) -> TokenStatistics:
    r"""Compute log-probability and entropy of each token from the last hidden states and the unembedding matrix.

    $$\log \pi(a_t \mid s_t) = \frac{z_{t, a_t}}{\tau} - \log \sum_v e^{z_{t, v} / \tau}, \qquad
    H_t = -\sum_v \pi(v \mid s_t) \log \pi(v \mid s_t), \qquad z_t = W h_t + b$$

    The same as `token_logprobs` and `entropy` of `torch.nn.functional.linear(hidden, weight, bias)`, in the
    memory of a few tokens' logits. What is kept for the backward pass, beside the arguments, the entropy of
    each token; the logits are computed a second time there.

    float16 and bfloat16 arguments are multiplied exactly and summed in float32, where a linear layer would round
    the logits to half precision; this needs a float32 copy of the weight for the time of the call. Under
    autocast `hidden`, `weight` and `bias` are rounded to its type first, as in a linear layer, unless they are
    float64; everything after that is float32.

    Args:
        hidden: The last hidden states, $h$, shape [..., D].
        weight: The unembedding matrix, $W$, shape [V, D].
        tokens: The tokens, int64, shape [...], from 0 to V - 1.
        bias: The bias of the unembedding, $b$, shape [V]; minus infinity rules a token out. Most models have
            none.
        temperature: What the logits are divided by, $\tau > 0$.
        ignore_index: A number for tokens that do not count, often -100; it may also be a token of the
            vocabulary. Without it no number is special.
        mask: Bool, shape [...]. True: the token counts. Without it every token counts.

    Returns:
        `logprobs` and `entropies`, each of shape [...], in nats, float32 or wider; 0 on uncounted tokens.

    Raises:
        TypeError: `hidden`, `weight` or `bias` is not floating point, `tokens` is not int64, `mask` is not bool,
            or a hyper-parameter is not a plain number.
        ValueError: The shapes do not fit, `temperature` is not finite and above 0, `ignore_index` is not
            an int, or a counted token is not in the vocabulary. The last is found on the CPU in eager
            mode only; elsewhere its log-probability is NaN.
        RuntimeError: A gradient is asked of the gradient: it can be taken once only.

    Gradient:
        Into `hidden`, `weight` and `bias`, from both results: with respect to $z_{t, v} / \tau$ it is 1 at the
        token less $\pi(v)$ for the log-probability, and $-\pi(v) (\log \pi(v) + H)$ for the entropy. It is
        summed in float32 or wider and returned in the type of each argument. 0 on uncounted tokens whatever
        they hold.

    Source:
        Definition. To compute the logits in parts and twice: Chen et al., "Training Deep Nets with Sublinear
        Memory Cost", 2016, section 3.

    Examples:
        >>> import torch
        >>> from ppo_core import hidden_logprobs
        >>> hidden, weight = torch.tensor([[1.0], [0.0]]), torch.tensor([[2.0], [1.0], [1.0]]).log()
        >>> logprobs, entropies = hidden_logprobs(hidden, weight, torch.tensor([0, 2]))
        >>> logprobs, entropies
        (tensor([-0.6931, -1.0986]), tensor([1.0397, 1.0986]))
    """
    checks.hidden_and_weight(hidden, weight, bias)
    checks.token_ids("tokens", tokens)
    checks.without_last("tokens", tokens, "hidden", hidden, last="the width")
    if mask is not None:
        checks.bool_mask(mask)
        checks.without_last("mask", mask, "hidden", hidden, last="the width")
    checks.positive("temperature", temperature)
    size, width = weight.shape
    counts = counted_tokens(tokens, mask, ignore_index)
    known = known_tokens(tokens, size, counts)
    if counts is None:
        counts = torch.ones_like(known)
    logprobs, entropies = _Statistics.apply(  # type: ignore[no-untyped-call]  # torch gives apply no types
        hidden.reshape(tokens.numel(), width),
        weight,
        bias,
        tokens.clamp(0, size - 1).reshape(-1, 1),
        counts.reshape(-1, 1),
        temperature,
        autocast_type(hidden),
    )
    logprobs = torch.where(known, logprobs.reshape(tokens.shape), torch.nan)
    # The backward pass needs the entropies: the caller gets a copy, to be changed in place at will.
    return TokenStatistics(logprobs, entropies.reshape(tokens.shape).clone())


class _Statistics(torch.autograd.Function):
    """The plumbing between autograd and `_statistics`; what is per token is a column, shape [N, 1]."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        tokens: Tensor,
        counts: Tensor,
        temperature: float,
        half: torch.dtype | None,
    ) -> tuple[Tensor, Tensor]:
        with without_autocast(hidden):
            logprobs, entropies = _statistics(hidden, weight, bias, tokens, counts, temperature, half)
        ctx.save_for_backward(hidden, weight, bias, tokens, counts, entropies)
        ctx.temperature, ctx.half = temperature, half
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, grad_logprobs: Tensor, grad_entropies: Tensor) -> tuple[Tensor | None, ...]:
        gradients = _Gradients.apply(  # type: ignore[no-untyped-call]
            ctx.temperature,
            ctx.half,
            ctx.needs_input_grad[:3],
            *ctx.saved_tensors,
            grad_logprobs,
            grad_entropies,
        )
        return *gradients, None, None, None, None


class _Gradients(torch.autograd.Function):
    """The plumbing between autograd and `_gradients`: a function of its own, so that its gradient is an error.

    Torch's `once_differentiable` would leave the gradient without a history, and a penalty on its size would
    silently do nothing.
    """

    @staticmethod
    def forward(
        ctx: Any,
        temperature: float,
        half: torch.dtype | None,
        needed: tuple[bool, ...],
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        *per_token: Tensor,
    ) -> tuple[Tensor | None, ...]:
        with without_autocast(hidden):
            return _gradients(hidden, weight, bias, per_token, temperature, half, needed)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> NoReturn:
        raise RuntimeError(
            "hidden_logprobs can be differentiated once only, got a request for the gradient of its gradient; "
            "use token_logprobs and entropy of the logits for that"
        )


def _statistics(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    tokens: Tensor,
    counts: Tensor,
    temperature: float,
    half: torch.dtype | None,
) -> tuple[Tensor, Tensor]:
    """Return the log-probabilities and entropies."""
    weight, bias = unembedding(hidden, weight, bias, temperature, half)
    found = []
    for rows in chunks(hidden, weight, CHUNK_ELEMENTS):
        states = counted_states(hidden[rows], counts[rows], weight, temperature, half)
        logits = torch.nn.functional.linear(states, weight, bias)
        found.append(row_statistics(logits, tokens[rows], room=logits))
    logprobs, entropies = (counted(torch.cat(parts), counts) for parts in zip(*found, strict=True))
    return logprobs, entropies


def _gradients(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    per_token: tuple[Tensor, ...],
    temperature: float,
    half: torch.dtype | None,
    needed: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Return the gradients of hidden states, weight and bias, None where none is needed."""
    types = [None if x is None else x.dtype for x in (hidden, weight, bias)]
    weight, bias = unembedding(hidden, weight, bias, temperature, half)
    to_hidden = torch.empty_like(hidden) if needed[0] else None
    to_weight = torch.zeros_like(weight) if needed[1] else None
    to_bias = torch.zeros_like(bias) if bias is not None and needed[2] else None
    for rows in chunks(hidden, weight, CHUNK_ELEMENTS):
        tokens, counts, entropies, of_logprobs, of_entropies = (column[rows] for column in per_token)
        states = counted_states(hidden[rows], counts, weight, temperature, half)
        logits = torch.nn.functional.linear(states, weight, bias)
        slopes = row_slopes(logits, tokens, entropies, of_logprobs, of_entropies, room=logits)
        # A bias may rule out all tokens, and what comes from above may be NaN.
        slopes.masked_fill_(~counts, 0.0)
        if to_hidden is not None:
            to_hidden[rows] = counted(torch.mm(slopes, weight), counts) / temperature
        if to_weight is not None:
            to_weight.addmm_(slopes.T, states)
        if to_bias is not None:
            to_bias += slopes.sum(0) / temperature
    gradients = (to_hidden, to_weight, to_bias)
    return tuple(None if x is None else x.to(dtype) for x, dtype in zip(gradients, types, strict=True))
