"""The leash without sampling: the exact KL divergence from two sets of logits."""

from typing import Any

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.kl import exp_remainder
from ppo_core.masking import counted


def full_kl(logits: Tensor, ref_logits: Tensor, *, mask: Tensor | None = None) -> Tensor:
    r"""Sum the KL divergence from the reference over the whole vocabulary, at each place.

    $$\mathrm{KL}(\pi \Vert \pi_\text{ref}) = \sum_v \pi(v) \log \frac{\pi(v)}{\pi_\text{ref}(v)}
    = \sum_v \pi(v) \bigl(e^{d(v)} - 1 - d(v)\bigr), \qquad d = \log \pi_\text{ref} - \log \pi$$

    with $\pi = \operatorname{softmax}(z)$ and $\pi_\text{ref} = \operatorname{softmax}(z_\text{ref})$. Its
    gradient is that of the divergence itself: nothing is sampled at this place. What the choice of a token
    does to later places it does not know; see `kl_loss`.

    For two policies that are close the terms of the first sum cancel: at $10^{-8}$ nats float32 loses every
    digit. The second sum has no negative terms, and $d$ comes from the difference of the logits, whose
    rounding is carried along. In float32 the relative error is below $10^{-5}$ however small the divergence
    is, also where one set of logits is shifted against the other. For the backward pass nothing is kept but
    the two sets of logits.

    Args:
        logits: Logits of the vocabulary under the trained policy, $z$, shape [..., V].
        ref_logits: The same under the frozen reference policy, same shape.
        mask: Bool, shape [...]. True: the place counts. Without it every place counts.

    Returns:
        The divergence, shape [...], in nats, float32 or wider; 0 at uncounted places. Tokens that are ruled
        out in both, with logits of minus infinity, add nothing. It is infinite where the reference alone
        rules a token out, and NaN where all logits of one of the two are minus infinity.

    Raises:
        TypeError: A tensor of logits is not floating point or `mask` is not bool.
        ValueError: The shapes do not fit.

    Gradient:
        Into `logits` alone: $-\pi(v) (d(v) + \mathrm{KL})$, which sums to 0; 0 at uncounted places whatever
        they hold, and for tokens that are ruled out. Where the divergence is infinite it is not finite.

    Source:
        Kullback and Leibler, "On Information and Sufficiency", 1951, for the first sum.

    Examples:
        >>> import torch
        >>> from ppo_core import full_kl
        >>> full_kl(torch.tensor([0.75, 0.25]).log(), torch.tensor([0.5, 0.5]).log())
        tensor(0.1308)
        >>> logits = torch.tensor([1.0, 0.0, -torch.inf])
        >>> full_kl(logits, logits + torch.tensor([1e-4, 0.0, 0.0])).item()
        9.834e-10
    """
    logits, ref_logits = checks.floats({"logits": logits, "ref_logits": ref_logits})
    checks.logits_and_mask(logits, mask)
    places = None if mask is None else mask.unsqueeze(-1)
    # Where nothing counts both policies are even, and equal.
    logits, ref_logits = counted(logits, places), counted(ref_logits, places).detach()
    return _Divergence.apply(logits, ref_logits)  # type: ignore[no-any-return, no-untyped-call]


class _Divergence(torch.autograd.Function):
    """The divergence with its gradient in closed form: autograd would keep twenty tensors of the logits' size."""

    generate_vmap_rule = True

    @staticmethod
    def forward(logits: Tensor, ref_logits: Tensor) -> Tensor:
        p, q, d, near = _compare(logits, ref_logits)
        impossible = d == -torch.inf
        # A probability that is rounded to 0 is not 0: a token that the reference alone rules out costs infinity.
        weight = torch.where(impossible, p + torch.finfo(p.dtype).tiny, p)
        # Far from each other e^d may overflow, but not its product with p, which is q.
        terms = torch.where(near, p * exp_remainder(torch.where(near, d, 0.0)), q - p - weight * d)
        return terms.sum(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        # In operations that have gradients themselves, so that this may be differentiated again.
        p, _, d, _ = _compare(*ctx.saved_tensors)
        cost = -p * d
        return grad.unsqueeze(-1) * (cost - p * cost.sum(-1, keepdim=True)), None


def _compare(logits: Tensor, ref_logits: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the probabilities of both policies, their log-ratio, and where it is below 1 in size.

    The log-ratio is minus infinity where the reference alone rules a token out, and some finite number, of no
    weight, where the policy does.
    """
    p, q = logits.softmax(-1), ref_logits.softmax(-1)
    possible, ref_possible = logits != -torch.inf, ref_logits != -torch.inf
    d = _log_ratio(logits, ref_logits, possible & ref_possible)
    near = possible & ref_possible & (d.abs() < 1)
    # The probabilities of the reference, p e^d, sum to 1. What they miss by is the rounding of the normalisers,
    # which all d share.
    excess = torch.where(near, p * torch.expm1(torch.where(near, d, 0.0)), q - p).sum(-1, keepdim=True)
    return p, q, torch.where(possible & ~ref_possible, -torch.inf, d - excess), near


def _log_ratio(logits: Tensor, ref_logits: Tensor, finite: Tensor) -> Tensor:
    """Return the log-probabilities of the reference less those of the policy; any number where not finite."""
    # A shift of all logits says nothing about the policy: it is taken out of the normalisers, and of the
    # difference with both of its roundings.
    shift, ref_shift = (x.amax(-1, keepdim=True) for x in (logits, ref_logits))
    normaliser = (logits - shift).logsumexp(-1, keepdim=True)
    ref_normaliser = (ref_logits - ref_shift).logsumexp(-1, keepdim=True)
    logits, ref_logits = (torch.where(finite, x, 0.0) for x in (logits, ref_logits))
    difference, lost = _difference(ref_logits, logits)
    offset, offset_lost = _difference(ref_shift, shift)
    return (difference - offset) + (lost - offset_lost) + (normaliser - ref_normaliser)


def _difference(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return `a - b` as it is rounded, and exactly what the rounding lost (Knuth's two-sum)."""
    difference = a - b
    part = difference - a
    return difference, (a - (difference - part)) - (b + part)
