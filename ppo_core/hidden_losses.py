"""From hidden states to the loss of the policy, with the gradients made on the way.

The loss is a sum over tokens, and the weight of a token in it does not depend on the policy. So the slope of the
loss in a log-probability is known as soon as the logits of its token are, and the gradients are made of them at
once: three matrix products, where a backward pass would make the logits again in a fourth.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.aggregation import aggregate, check_reduction, token_weights
from ppo_core.closed_form import clipped_losses_and_slopes
from ppo_core.entropies import known_tokens
from ppo_core.known_gradients import with_gradients
from ppo_core.masking import counted
from ppo_core.policy import policy_loss
from ppo_core.unembedding import autocast_type, chunks, counted_states, unembedding, without_autocast

# How many logits are held at a time, 64 MiB in float32. They all stand in one place, so that larger products cost no
# new memory for each.
CHUNK_ELEMENTS = 2**24

TWICE = (
    "hidden_policy_loss can be differentiated once only, got a request for the gradient of its gradient; use "
    "token_logprobs of the logits, policy_loss and aggregate for that"
)


class HiddenPolicy(NamedTuple):
    """The loss, of shape [], and the log-probability of each token, which has no gradient."""

    loss: Tensor
    logprobs: Tensor


def hidden_policy_loss(
    hidden: Tensor,
    weight: Tensor,
    tokens: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    bias: Tensor | None = None,
    *,
    epsilon: float,
    mode: str,
    denominator: float | Tensor | None = None,
    epsilon_high: float | None = None,
    dual_clip: float | None = None,
    temperature: float = 1.0,
    sequence_ids: Tensor | None = None,
) -> HiddenPolicy:
    r"""Compute the policy loss from the last hidden states and the unembedding matrix.

    $$L = \frac{1}{N} \sum_{i, t} w_{it}\, \ell_{it}, \qquad
    \log \pi_\theta(a_t \mid s_t) = \frac{z_{t, a_t}}{\tau} - \log \sum_v e^{z_{t, v} / \tau}, \qquad
    z_t = W h_t + b$$

    The same as `hidden_logprobs`, then `policy_loss` for each loss $\ell_{it}$, then `aggregate`, which has the
    weights $w_{it}$ and the denominator $N$, but faster: the gradients are made in the forward pass, while a few
    tokens' logits are there, and kept for the backward pass. They take the memory of `hidden` and `weight` once
    more, in float32 or wider. Use the three functions if the entropy or another term needs a gradient too.

    Half precision and autocast are as in `hidden_logprobs`.

    Args:
        hidden: The last hidden states, $h$, shape [..., T, D].
        weight: The unembedding matrix, $W$, shape [V, D].
        tokens: The tokens, int64, shape [..., T], from 0 to V - 1.
        old_logprobs: Log-probabilities of the tokens under the policy that sampled them, shape [..., T], in
            nats.
        advantages: How much better than expected each token was, shape [..., T], in units of reward.
        mask: Bool, shape [..., T]. True: the token counts.
        bias: The bias of the unembedding, $b$, shape [V]; minus infinity rules a token out. Most models have
            none.
        epsilon: Width of the clip band below 1, strictly between 0 and 1.
        mode: How tokens are reduced to one number, as in `aggregate`.
        denominator: $N$, as in `aggregate`: a plain number, or a tensor of shape [].
        epsilon_high: Width of the clip band above 1, as in `policy_loss`. Without it the band is as wide above
            as below.
        dual_clip: Cap on the ratio of bad tokens, as in `policy_loss`. Without it there is none.
        temperature: What the logits are divided by, $\tau > 0$.
        sequence_ids: Number of each token's sequence in packed rows, int64, shape [..., T]. Without it each row
            is one sequence.

    Returns:
        `loss`, shape [], and `logprobs`, shape [..., T], in nats, both float32 or wider. The log-probabilities
        are 0 on uncounted tokens and have no gradient: they are there to be looked at, as by
        `clip_fractions`.

    Raises:
        TypeError: A tensor has the wrong type, or a hyper-parameter is not a plain number.
        ValueError: The shapes do not fit, a hyper-parameter is out of range, `denominator` is missing with
            `"constant"`, or a counted token is not in the vocabulary. The last is found on the CPU in eager
            mode only; elsewhere the loss is NaN.
        RuntimeError: A gradient is asked of the gradient: it can be taken once only.

    Gradient:
        Into `hidden`, `weight` and `bias`, from the loss: in $z_{t, v} / \tau$ it is the slope of the loss in
        the log-probability, times 1 at the token less $\pi(v)$. It is summed in float32 or wider and returned
        in the type of each argument. 0 on uncounted tokens whatever they hold.

    Source:
        Definition. To make the gradient of the unembedding in the forward pass: Hsu et al., "Liger Kernel:
        Efficient Triton Kernels for LLM Training", 2024, section 3.2.

    Examples:
        >>> import torch
        >>> from ppo_core import hidden_policy_loss
        >>> hidden = torch.tensor([[1.0]], requires_grad=True)
        >>> weight = torch.tensor([[2.0], [1.0], [1.0]]).log()
        >>> token, old, advantage = torch.tensor([0]), torch.tensor([0.625]).log(), torch.tensor([2.0])
        >>> loss, logprobs = hidden_policy_loss(
        ...     hidden, weight, token, old, advantage, torch.tensor([True]), epsilon=0.25, mode="token_mean"
        ... )
        >>> loss.item(), logprobs
        (-1.600, tensor([-0.6931]))
        >>> loss.backward()
        >>> hidden.grad
        tensor([[-0.5545]])
    """
    checks.hidden_and_weight(hidden, weight, bias)
    checks.token_ids("tokens", tokens)
    checks.floating("old_logprobs", old_logprobs)
    checks.floating("advantages", advantages)
    checks.bool_mask(mask)
    each = {"tokens": tokens, "old_logprobs": old_logprobs, "advantages": advantages, "mask": mask}
    for name, x in each.items():
        checks.without_last(name, x, "hidden", hidden, last="the width")
    check_reduction("tokens", mask, mode=mode, denominator=denominator, sequence_ids=sequence_ids)
    checks.positive("temperature", temperature)
    checks.clip_band(epsilon, epsilon_high)
    checks.dual_clip(dual_clip)
    size, width = weight.shape
    known = known_tokens(tokens, size, mask)
    reduction: dict[str, Any] = {"mode": mode, "denominator": denominator, "sequence_ids": sequence_ids}
    clip: dict[str, Any] = {"epsilon": epsilon, "epsilon_high": epsilon_high, "dual_clip": dual_clip}
    arguments = (hidden.reshape(tokens.numel(), width), weight, bias)
    needed = [torch.is_grad_enabled() and x is not None and x.requires_grad for x in arguments]
    wide = torch.float32
    for number in (*arguments, old_logprobs, advantages):
        wide = wide if number is None else torch.promote_types(wide, number.dtype)
    half = autocast_type(hidden)
    with torch.no_grad(), without_autocast(hidden):
        shares = token_weights(mask, wide, **reduction)
        data = [x.reshape(-1, 1) for x in (old_logprobs.to(wide), advantages.to(wide), mask, shares, known)]

        def slopes_of(logprobs: Tensor, rows: slice) -> Tensor:
            old, gains, counts, share, sure = (x[rows] for x in data)
            _, slopes = clipped_losses_and_slopes(logprobs.to(wide), old, gains, counts, **clip)
            return counted((share * slopes).to(logprobs.dtype), sure)

        logprobs, gradients = _logprobs_and_gradients(
            *arguments,
            tokens.clamp(0, size - 1).reshape(-1, 1),
            mask.reshape(-1, 1),
            temperature,
            half,
            needed,
            slopes_of,
        )
        logprobs = torch.where(known, logprobs.reshape(tokens.shape), torch.nan)
        losses = policy_loss(logprobs, old_logprobs, advantages, mask=mask, **clip)
        loss = aggregate(losses, mask, **reduction)
    if any(needed):
        loss = with_gradients(loss, arguments, gradients, twice=TWICE)
    return HiddenPolicy(loss, logprobs)


def _logprobs_and_gradients(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    tokens: Tensor,
    counts: Tensor,
    temperature: float,
    half: torch.dtype | None,
    needed: list[bool],
    slopes_of: Callable[[Tensor, slice], Tensor],
) -> tuple[Tensor, list[Tensor | None]]:
    """Return the log-probabilities, and the gradients of hidden states, weight and bias where they are needed.

    What is per token is a column, shape [N, 1]. `slopes_of` gives the slope of the loss in the log-probabilities
    of some rows.
    """
    weight, bias = unembedding(hidden, weight, bias, temperature, half)
    to_hidden = torch.empty_like(hidden, dtype=weight.dtype) if needed[0] else None
    to_weight = torch.empty_like(weight) if needed[1] else None
    to_bias = torch.zeros_like(bias) if bias is not None and needed[2] else None
    parts = chunks(hidden, weight, CHUNK_ELEMENTS)
    # One place for the logits of every part: to ask for it anew costs time, and memory where it is not given back.
    place = weight.new_empty(hidden[parts[0]].shape[0], weight.shape[0])
    found = []
    for rows in parts:
        states = counted_states(hidden[rows], counts[rows], weight, temperature, half)
        # With beta 0 a product replaces what was there.
        logits = place[: states.shape[0]].addmm_(states, weight.T, beta=0)
        if bias is not None:
            # Where nothing counts a bias that rules all tokens out must do no harm.
            logits.add_(bias).masked_fill_(~counts[rows], 0.0)
        chosen, totals = _exponentials(logits, tokens[rows])
        found.append(counted(chosen, counts[rows]))
        if any(needed):
            slope = slopes_of(found[-1], rows)
            logits.mul_(-slope / totals).scatter_add_(-1, tokens[rows], slope)
        if to_hidden is not None:
            to_hidden[rows] = counted(torch.mm(logits, weight), counts[rows]) / temperature
        if to_weight is not None:
            to_weight.addmm_(logits.T, states, beta=min(rows.start, 1))
        if to_bias is not None:
            to_bias += logits.sum(0) / temperature
    return torch.cat(found), [to_hidden, to_weight, to_bias]


def _exponentials(logits: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Turn logits into probabilities times the total of their row; return log-probabilities and totals."""
    distances = logits.sub_(logits.amax(-1, keepdim=True))
    chosen = distances.gather(-1, tokens)
    totals = distances.exp_().sum(-1, keepdim=True)
    return chosen - totals.log(), totals
