"""From logits over the vocabulary to one number per token: its log-probability, and the entropy there."""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.logit_rows import TokenStatistics, counted_logits, statistics_by_rows
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

    The temperature is that of the sampler: the policy that drew the tokens is the softmax of $z / \tau$. The backward
    pass reads the logits again: leave them as they are until then.

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
    tokens, counts, known = _checked(logits, tokens, temperature, ignore_index, mask)
    if checks.is_eager(logits, tokens, counts):
        logprobs, _ = statistics_by_rows(logits, tokens, counts, temperature, _statistics, entropies=False)
    else:
        logprobs = _logprobs(logits, tokens, counts, temperature)
    return torch.where(known, logprobs, torch.nan)


def entropy(logits: Tensor, *, temperature: float = 1.0, mask: Tensor | None = None) -> Tensor:
    r"""Measure how undecided the policy is at each place.

    $$H = -\sum_v \pi(v) \log \pi(v), \qquad \pi = \operatorname{softmax}(z / \tau)$$

    It is 0 for a policy that is certain and $\log V$ for one that finds all V tokens equally likely. Tokens
    that were ruled out with a logit of minus infinity add nothing, to the value or the gradient. The backward
    pass reads the logits again: leave them as they are until then.

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
    if not checks.is_eager(logits, mask):
        return _entropies(logits, mask, temperature)
    # The entropy does not rest on the token: any one will do.
    tokens = torch.zeros(logits.shape[:-1], dtype=torch.int64, device=logits.device)
    return statistics_by_rows(logits, tokens, mask, temperature, _statistics, entropies=True).entropies


def logit_statistics(
    logits: Tensor,
    tokens: Tensor,
    *,
    temperature: float = 1.0,
    ignore_index: int | None = None,
    mask: Tensor | None = None,
) -> TokenStatistics:
    r"""Compute log-probability and entropy of each token in one pass over the logits.

    $$\log \pi(a_t \mid s_t) = \frac{z_{t, a_t}}{\tau} - \log \sum_v e^{z_{t, v} / \tau}, \qquad
    H_t = -\sum_v \pi(v \mid s_t) \log \pi(v \mid s_t)$$

    The same as `token_logprobs` and `entropy`, with one reading of the logits forward, one backward, and one
    gradient, where two calls have two to be added. The backward pass reads the logits again: leave them as they are
    until then.

    Args:
        logits: Logits of the vocabulary at each place, $z$, shape [..., V].
        tokens: The tokens, int64, shape [...], from 0 to V - 1.
        temperature: What the logits are divided by, $\tau > 0$.
        ignore_index: A number for tokens that do not count, often -100; it may also be a token of the
            vocabulary. Without it no number is special.
        mask: Bool, shape [...]. True: the token counts. Without it every token counts.

    Returns:
        `logprobs` and `entropies`, each of shape [...], in nats, float32 or wider; 0 on uncounted tokens. A
        token whose logit is minus infinity has minus infinity; both are NaN where all logits are.

    Raises:
        TypeError: `logits` is not floating point, `tokens` is not int64, `mask` is not bool, or a
            hyper-parameter is not a plain number.
        ValueError: The shapes do not fit, `temperature` is not finite and above 0, `ignore_index` is not
            an int, or a counted token is not in the vocabulary. The last is found on the CPU in eager
            mode only; elsewhere its log-probability is NaN.

    Gradient:
        Into `logits`, from both results: with respect to $z_{t, v} / \tau$ it is 1 at the token less $\pi(v)$ for
        the log-probability, and $-\pi(v) (\log \pi(v) + H)$ for the entropy; 0 on uncounted tokens whatever
        they hold.

    Source:
        Definition; see `token_logprobs` and `entropy`.

    Examples:
        >>> import torch
        >>> from ppo_core import logit_statistics
        >>> logits = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]).log()
        >>> logprobs, entropies = logit_statistics(logits, torch.tensor([0, 1]))
        >>> logprobs, entropies
        (tensor([-0.6931, -0.6931]), tensor([1.0397, 0.6931]))
    """
    tokens, counts, known = _checked(logits, tokens, temperature, ignore_index, mask)
    if checks.is_eager(logits, tokens, counts):
        found = statistics_by_rows(logits, tokens, counts, temperature, _statistics, entropies=True)
    else:
        found = _statistics(logits, tokens, counts, temperature)
    return TokenStatistics(torch.where(known, found.logprobs, torch.nan), found.entropies)


def _checked(
    logits: Tensor, tokens: Tensor, temperature: float, ignore_index: int | None, mask: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Check the arguments; return tokens of the vocabulary, which of them count, and which were so before."""
    checks.logits_and_mask(logits, mask)
    checks.token_ids("tokens", tokens)
    checks.without_vocabulary("tokens", tokens, logits)
    checks.positive("temperature", temperature)
    counts = counted_tokens(tokens, mask, ignore_index)
    size = logits.shape[-1]
    known = known_tokens(tokens, size, counts)
    return tokens.clamp(0, size - 1), counts, known


def _statistics(logits: Tensor, tokens: Tensor, counts: Tensor | None, temperature: float) -> TokenStatistics:
    """Return both results by their definitions."""
    logprobs = _logprobs(logits, tokens, counts, temperature)
    return TokenStatistics(logprobs, _entropies(logits, counts, temperature))


def _logprobs(logits: Tensor, tokens: Tensor, counts: Tensor | None, temperature: float) -> Tensor:
    """Return the log-probabilities of tokens of the vocabulary by their definition."""
    logprobs = torch.log_softmax(counted_logits(logits, temperature, counts), -1)
    return counted(logprobs.gather(-1, tokens.unsqueeze(-1)).squeeze(-1), counts)


def _entropies(logits: Tensor, counts: Tensor | None, temperature: float) -> Tensor:
    """Return the entropies by their definition."""
    logprobs = torch.log_softmax(counted_logits(logits, temperature, counts), -1)
    # 0 times minus infinity is NaN: the logarithm of 0 is replaced before it is multiplied. It need not stem
    # from a logit of minus infinity: the distance of two finite ones can overflow.
    finite = torch.where(logprobs == -torch.inf, 0.0, logprobs)
    return counted(-(logprobs.exp() * finite).sum(-1), counts)


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
