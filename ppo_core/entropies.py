"""From logits over the vocabulary to one number per token: its log-probability, and the entropy there."""

import torch
from torch import Tensor

from ppo_core import checks
from ppo_core.masking import counted


def token_logprobs(logits: Tensor, tokens: Tensor, *, mask: Tensor | None = None) -> Tensor:
    r"""Pick the log-probability of each token out of the logits at its place.

    $$\log \pi(a_t \mid s_t) = z_{t, a_t} - \log \sum_v e^{z_{t, v}}$$

    Args:
        logits: Logits of the vocabulary at each place, $z$, shape [..., V].
        tokens: The tokens, int64, shape [...], from 0 to V - 1.
        mask: Bool, shape [...]. True: the token counts. Without it every token counts.

    Returns:
        The log-probabilities, shape [...], in nats, float32 or wider; 0 on uncounted tokens. A token whose
        logit is minus infinity has minus infinity.

    Raises:
        TypeError: `logits` is not floating point, `tokens` is not int64 or `mask` is not bool.
        ValueError: The shapes do not fit, or a counted token is not in the vocabulary. The last is found on
            the CPU in eager mode only; elsewhere its log-probability is NaN.

    Gradient:
        Into `logits`: 1 at the token less the probability, at each element of the vocabulary; 0 on uncounted
        tokens whatever they hold.

    Source:
        Definition.

    Examples:
        >>> import torch
        >>> from ppo_core import token_logprobs
        >>> logits = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]).log()
        >>> token_logprobs(logits, torch.tensor([0, 2])).exp()
        tensor([0.6000, 0.6000])
    """
    checks.logits_and_mask(logits, mask)
    checks.token_ids("tokens", tokens)
    checks.without_vocabulary("tokens", tokens, logits)
    size = logits.shape[-1]
    known = (tokens >= 0) & (tokens < size)
    if mask is not None:
        # An uncounted token may be any number, -100 as a rule.
        known = known | ~mask
    if checks.may_look(tokens) and not known.all():
        first = (~known).nonzero()[0].tolist()
        raise ValueError(
            f"tokens must lie between 0 and {size - 1}, got {tokens[tuple(first)].item()} at index {first}; "
            "leave padding out with the mask"
        )
    logprobs = torch.log_softmax(_counted_logits(logits, mask), -1)
    picked = logprobs.gather(-1, tokens.clamp(0, size - 1).unsqueeze(-1)).squeeze(-1)
    return torch.where(known, counted(picked, mask), torch.nan)


def entropy(logits: Tensor, *, mask: Tensor | None = None) -> Tensor:
    r"""Measure how undecided the policy is at each place.

    $$H = -\sum_v \pi(v) \log \pi(v), \qquad \pi = \operatorname{softmax}(z)$$

    It is 0 for a policy that is certain and $\log V$ for one that finds all V tokens equally likely. Tokens
    that were ruled out with a logit of minus infinity add nothing, to the value or the gradient.

    Args:
        logits: Logits of the vocabulary at each place, $z$, shape [..., V].
        mask: Bool, shape [...]. True: the token counts. Without it every token counts.

    Returns:
        The entropy, shape [...], in nats, float32 or wider; 0 on uncounted tokens. It is NaN where all logits
        are minus infinity, which is no distribution.

    Raises:
        TypeError: `logits` is not floating point or `mask` is not bool.
        ValueError: The shapes do not fit.

    Gradient:
        Into `logits`: $-\pi(v) (\log \pi(v) + H)$, which sums to 0; 0 on uncounted tokens whatever they hold.

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
    logits = _counted_logits(logits, mask)
    logprobs = torch.log_softmax(logits, -1)
    # 0 times minus infinity is NaN: the logarithm of 0 is replaced before it is multiplied.
    finite = torch.where(logits == -torch.inf, 0.0, logprobs)
    return counted(-(logprobs.exp() * finite).sum(-1), mask)


def _counted_logits(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Return the logits in float32 or wider, with 0 in the places that the mask leaves out."""
    return counted(checks.wide(logits), None if mask is None else mask.unsqueeze(-1))
