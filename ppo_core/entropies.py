"""From logits over the vocabulary to one number per token: its log-probability, and the entropy there."""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted


def token_logprobs(
    logits: Tensor,
    tokens: Tensor,
    *,
    temperature: float = 1.0,
    ignore_index: int | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    r"""Pick the log-probability of each token out of the logits at its place.

    $$\log \pi(a_t \mid s_t) = \frac{z_{t, a_t}}{\tau} - \log \sum_v e^{z_{t, v} / \tau}$$

    The temperature is that of the sampler: the policy that drew the tokens is the softmax of $z / \tau$.

    Args:
        logits: Logits of the vocabulary at each place, $z$, shape [..., V].
        tokens: The tokens, int64, shape [...], from 0 to V - 1.
        temperature: What the logits are divided by, $\tau > 0$.
        ignore_index: A number for tokens that do not count, often -100; it may also be a token of the
            vocabulary. Without it no number is special.
        mask: Bool, shape [...]. True: the token counts. Without it every token counts.

    Returns:
        The log-probabilities, shape [...], in nats, float32 or wider; 0 on uncounted tokens. A token whose
        logit is minus infinity has minus infinity.

    Raises:
        TypeError: `logits` is not floating point, `tokens` is not int64, `mask` is not bool, or a
            hyper-parameter is not a plain number.
        ValueError: The shapes do not fit, `temperature` is not finite and above 0, `ignore_index` is not
            an int, or a counted token is not in the vocabulary. The last is found on the CPU in eager
            mode only; elsewhere its log-probability is NaN.

    Gradient:
        Into `logits`: 1 at the token less the probability, over $\tau$, at each element of the vocabulary; 0
        on uncounted tokens whatever they hold.

    Source:
        Definition; the temperature: Ackley, Hinton and Sejnowski, "A Learning Algorithm for Boltzmann
        Machines", 1985.

    Examples:
        >>> import torch
        >>> from ppo_core import token_logprobs
        >>> logits = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]).log()
        >>> token_logprobs(logits, torch.tensor([0, 2])).exp()
        tensor([0.6000, 0.6000])
        >>> token_logprobs(logits, torch.tensor([0, -100]), ignore_index=-100)
        tensor([-0.5108, 0.0000])
    """
    checks.logits_and_mask(logits, mask)
    checks.token_ids("tokens", tokens)
    checks.without_vocabulary("tokens", tokens, logits)
    checks.positive("temperature", temperature)
    counts = counted_tokens(tokens, mask, ignore_index)
    size = logits.shape[-1]
    known = known_tokens(tokens, size, counts)
    logprobs = torch.log_softmax(counted_logits(logits, temperature, counts), -1)
    picked = logprobs.gather(-1, tokens.clamp(0, size - 1).unsqueeze(-1)).squeeze(-1)
    return torch.where(known, counted(picked, counts), torch.nan)


def entropy(logits: Tensor, *, temperature: float = 1.0, mask: Tensor | None = None) -> Tensor:
    r"""Measure how undecided the policy is at each place.

    $$H = -\sum_v \pi(v) \log \pi(v), \qquad \pi = \operatorname{softmax}(z / \tau)$$

    It is 0 for a policy that is certain and $\log V$ for one that finds all V tokens equally likely. Tokens
    that were ruled out with a logit of minus infinity add nothing, to the value or the gradient.

    Args:
        logits: Logits of the vocabulary at each place, $z$, shape [..., V].
        temperature: What the logits are divided by, $\tau > 0$.
        mask: Bool, shape [...]. True: the token counts. Without it every token counts.

    Returns:
        The entropy, shape [...], in nats, float32 or wider; 0 on uncounted tokens. It is NaN where all logits
        are minus infinity, which is no distribution.

    Raises:
        TypeError: `logits` is not floating point, `mask` is not bool or `temperature` is not a plain number.
        ValueError: The shapes do not fit, or `temperature` is not finite and above 0.

    Gradient:
        Into `logits`: $-\pi(v) (\log \pi(v) + H) / \tau$, which sums to 0; 0 on uncounted tokens whatever they
        hold.

    Source:
        Shannon, "A Mathematical Theory of Communication", 1948, section 6. As a bonus: Schulman et al.,
        "Proximal Policy Optimization Algorithms", 2017, $S$ of equation 9.

    Examples:
        >>> import torch
        >>> from ppo_core import entropy
        >>> entropy(torch.tensor([[0.0, 0.0, -torch.inf], [2.0, 0.0, 0.0]]))
        tensor([0.6931, 0.6656])
    """
    checks.logits_and_mask(logits, mask)
    checks.positive("temperature", temperature)
    logprobs = torch.log_softmax(counted_logits(logits, temperature, mask), -1)
    # 0 times minus infinity is NaN: the logarithm of 0 is replaced before it is multiplied. It need not stem
    # from a logit of minus infinity: the distance of two finite ones can overflow.
    finite = torch.where(logprobs == -torch.inf, 0.0, logprobs)
    return counted(-(logprobs.exp() * finite).sum(-1), mask)


def counted_tokens(tokens: Tensor, mask: Tensor | None, ignore_index: int | None) -> Tensor | None:
    """Mark the tokens that count, by the mask and by their number; None where all do."""
    if ignore_index is None:
        return mask
    checks.integer("ignore_index", ignore_index)
    counts = tokens != ignore_index
    return counts if mask is None else counts & mask


def known_tokens(tokens: Tensor, size: int, counts: Tensor | None) -> Tensor:
    """Mark the tokens that are in a vocabulary of `size`; what does not count may be any number."""
    known = in_vocabulary(tokens, size)
    if counts is not None:
        known = known | ~counts
    if checks.may_look(tokens) and not known.all():
        first = (~known).nonzero()[0].tolist()
        raise ValueError(
            f"tokens must lie between 0 and {size - 1}, got {tokens[tuple(first)].item()} at index {first}; "
            "leave padding out with mask or ignore_index"
        )
    return known


def in_vocabulary(tokens: Tensor, size: int) -> Tensor:
    """Mark the tokens from 0 to `size` - 1."""
    return (tokens >= 0) & (tokens < size)


def counted_logits(logits: Tensor, temperature: float, counts: Tensor | None) -> Tensor:
    """Return the logits over the temperature, in float32 or wider, with 0 in the places that do not count."""
    logits = counted(checks.wide(logits), None if counts is None else counts.unsqueeze(-1))
    # Division by 1 changes no bit, and would hold a second copy of the largest tensor there is.
    return logits if temperature == 1 else logits / temperature
