"""Log-probabilities and entropies where every rank holds a part of the vocabulary, as in tensor parallelism.

No rank ever holds the logits of the others: what travels is five numbers for each token.
"""

from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

from ppo_core import checks
from ppo_core.distributed import over_ranks
from ppo_core.entropies import counted_tokens, in_vocabulary
from ppo_core.logit_rows import TokenStatistics, counted_logits, slopes_of
from ppo_core.masking import counted


def sharded_logprobs(
    logits: Tensor,
    tokens: Tensor,
    *,
    start: int,
    group: ProcessGroup | None,
    temperature: float = 1.0,
    ignore_index: int | None = None,
    mask: Tensor | None = None,
) -> TokenStatistics:
    r"""Compute log-probability and entropy of each token from logits that are divided over ranks by vocabulary.

    $$\log \pi(a_t \mid s_t) = \frac{z_{t, a_t} - m_t}{\tau} - \log \sum_{k = 1}^{R} \sum_{v \in \mathcal{V}_k}
    e^{(z_{t, v} - m_t) / \tau}, \qquad m_t = \max_k \max_{v \in \mathcal{V}_k} z_{t, v}$$

    The same as `token_logprobs` and `entropy` of all logits side by side, on every rank. Rank $k$ holds the
    logits of a range of the vocabulary, $\mathcal{V}_k$; the ranges may differ in size and be empty, and
    together they must hold each token once.

    The ranks exchange the largest logit of each token, and then four sums. The backward pass exchanges nothing.
    For that all ranks must compute the same loss from the results, as they do in tensor parallelism: the
    gradient that a rank gets is then that of this loss, not of a sum over ranks, with respect to its own
    logits.

    Args:
        logits: This rank's logits at each place, $z$, shape [..., V of this rank], for the tokens `start`,
            `start` + 1 and so on.
        tokens: The tokens, int64, shape [...], from 0 to V - 1 of the whole vocabulary, the same on every rank.
        start: The first token of this rank's range.
        group: The ranks that share the vocabulary; None for the default group, all ranks.
        temperature: What the logits are divided by, $\tau > 0$.
        ignore_index: A number for tokens that do not count, often -100; it may also be a token of the
            vocabulary. Without it no number is special.
        mask: Bool, shape [...], the same on every rank. True: the token counts. Without it every token counts.

    Returns:
        `logprobs` and `entropies`, each of shape [...], in nats, float32 or wider, the same on every rank; 0 on
        uncounted tokens.

    Raises:
        TypeError: `logits` is not floating point, `tokens` is not int64, `mask` is not bool, `group` is not a
            process group, or a hyper-parameter is not a plain number.
        ValueError: The shapes do not fit, `temperature` is not finite and above 0, `start` or
            `ignore_index` is not an int, `start` is below 0, `group` is None and there is no default group,
            or a counted token is in the range of no rank or of several. The last is found on the CPU in eager
            mode only, by all ranks alike; elsewhere its log-probability is NaN.
        RuntimeError: A gradient is asked of the gradient: it can be taken once only.

    Gradient:
        Into `logits`, from both results: over $\tau$, 1 at the token less $\pi(v)$ for the log-probability, and
        $-\pi(v) (\log \pi(v) + H)$ for the entropy, for the tokens of this rank. 0 on uncounted tokens
        whatever they hold.

    Source:
        Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism",
        2019, section 3, for the cross entropy of logits that stay where they are.

    Examples:
        A group of one holds the whole vocabulary:

        >>> import torch
        >>> import torch.distributed as dist
        >>> from ppo_core import sharded_logprobs
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> logits = torch.tensor([[0.5, 0.25, 0.25]]).log()
        >>> logprobs, entropies = sharded_logprobs(logits, torch.tensor([1]), start=0, group=None)
        >>> logprobs, entropies
        (tensor([-1.3863]), tensor([1.0397]))
        >>> dist.destroy_process_group()
    """
    checks.logits_and_mask(logits, mask, least=0)
    checks.token_ids("tokens", tokens)
    checks.without_vocabulary("tokens", tokens, logits)
    checks.integer("start", start)
    checks.not_negative("start", start)
    checks.positive("temperature", temperature)
    checks.process_group(group)
    counts = counted_tokens(tokens, mask, ignore_index)
    if counts is None:
        counts = torch.ones_like(tokens, dtype=torch.bool)
    logprobs, entropies, holders = _Statistics.apply(  # type: ignore[no-untyped-call]  # torch gives apply no types
        logits, tokens - start, counts, temperature, group
    )
    known = (holders == 1) | ~counts
    if checks.may_look(tokens) and not known.all():
        first = (~known).nonzero()[0].tolist()
        raise ValueError(
            f"tokens must each lie in the range of one rank, got {tokens[tuple(first)].item()} at index {first}, "
            f"in the range of {int(holders[tuple(first)])}; give each rank its own start, and leave padding out "
            "with mask or ignore_index"
        )
    # The backward pass needs the entropies: the caller gets a copy, to be changed in place at will.
    return TokenStatistics(torch.where(known, logprobs, torch.nan), entropies.clone())


class _Statistics(torch.autograd.Function):
    """The plumbing between autograd and the exchange; `places` are the tokens, counted from this rank's first."""

    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        places: Tensor,
        counts: Tensor,
        temperature: float,
        group: ProcessGroup | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        z = counted_logits(logits, temperature, counts)
        peaks = over_ranks(_largest(z), group, largest=True)
        totals, weighted, chosen, holders = over_ranks(_sums(z, places, peaks), group)
        log_totals = totals.log()
        logprobs = counted(chosen - log_totals, counts)
        entropies = counted(log_totals - weighted / totals, counts)
        ctx.save_for_backward(logits, places, counts, entropies, peaks, log_totals)
        ctx.temperature = temperature
        ctx.mark_non_differentiable(holders)
        return logprobs, entropies, holders

    @staticmethod
    def backward(
        ctx: Any, grad_logprobs: Tensor, grad_entropies: Tensor, _: Tensor
    ) -> tuple[Tensor | None, ...]:
        gradient = _Gradient.apply(  # type: ignore[no-untyped-call]
            ctx.temperature, *ctx.saved_tensors, grad_logprobs, grad_entropies
        )
        return gradient, None, None, None, None


class _Gradient(torch.autograd.Function):
    """The gradient of this rank's logits: a function of its own, so that its gradient is an error.

    Torch's `once_differentiable` would leave the gradient without a history, and a penalty on its size would
    silently do nothing.
    """

    @staticmethod
    def forward(
        ctx: Any,
        temperature: float,
        logits: Tensor,
        places: Tensor,
        counts: Tensor,
        entropies: Tensor,
        peaks: Tensor,
        log_totals: Tensor,
        grad_logprobs: Tensor,
        grad_entropies: Tensor,
    ) -> Tensor:
        of_logprobs, of_entropies, entropies, log_totals = (
            counted(x, counts).unsqueeze(-1) for x in (grad_logprobs, grad_entropies, entropies, log_totals)
        )
        logprobs = counted_logits(logits, temperature, counts) - counted(peaks, counts).unsqueeze(-1)
        room = torch.empty_like(logprobs)
        slopes = slopes_of(logprobs.sub_(log_totals), entropies, of_logprobs, of_entropies, room)
        size = logits.shape[-1]
        if size:
            here = counted(of_logprobs, in_vocabulary(places, size).unsqueeze(-1))
            slopes.scatter_add_(-1, places.clamp(0, size - 1).unsqueeze(-1), here)
        return (slopes / temperature).to(logits.dtype)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> NoReturn:
        raise RuntimeError(
            "sharded_logprobs can be differentiated once only, got a request for the gradient of its gradient"
        )


def _largest(z: Tensor) -> Tensor:
    """Return the largest logit at each place; minus infinity on a rank without any."""
    return z.amax(-1) if z.shape[-1] else z.new_full(z.shape[:-1], -torch.inf)


def _sums(z: Tensor, places: Tensor, peaks: Tensor) -> Tensor:
    """Return what this rank adds at each place.

    These are the sum of the exponentials, their sum weighted with the distances from the peak, the distance of
    the token itself and 1, both 0 on the ranks that do not hold it.
    """
    distances = z - peaks.unsqueeze(-1)
    size = z.shape[-1]
    held = in_vocabulary(places, size)
    chosen = torch.zeros_like(peaks)
    if size:
        picked = distances.gather(-1, places.clamp(0, size - 1).unsqueeze(-1)).squeeze(-1)
        chosen = counted(picked, held)
    weights = distances.exp()
    # 0 times minus infinity is NaN: the distance of a token without probability is replaced.
    distances.masked_fill_(weights == 0, 0.0)
    return torch.stack([weights.sum(-1), distances.mul_(weights).sum(-1), chosen, held.to(z.dtype)])
