r"""Answers of two tokens of an old policy, reweighted for a new one: by the ratio of one token, and by both.

`first_probs` holds $\pi(a)$, `second_probs` holds $\pi(b \mid a)$ in row $a$, `scores` holds $r_{ab}$, as in
`chains`, whose `answer_value` is what the reweighted averages should be.
"""

import torch
from torch import Tensor

from lab import worlds
from ppo_core import checks, ratio


def token_ratio_estimate(
    first_probs: Tensor,
    second_probs: Tensor,
    old_first_probs: Tensor,
    old_second_probs: Tensor,
    scores: Tensor,
) -> Tensor:
    r"""Average the score over answers of the old policy, reweighted by the ratio of one token alone.

    $$\sum_{a, b} \pi_\text{old}(a)\, \pi_\text{old}(b \mid a)\, \rho_t\, r_{ab},
    \qquad \rho_1 = \frac{\pi(a)}{\pi_\text{old}(a)}, \quad
    \rho_2 = \frac{\pi(b \mid a)}{\pi_\text{old}(b \mid a)}$$

    The ratio of the second token corrects that token; its prefix, the first, still comes as often as under
    the old policy. Neither is `answer_value` of the new policy.

    Args:
        first_probs: Probabilities of the first token, shape [n] with n at least 2, all above 0, with sum 1.
        second_probs: Probabilities of the second token given the first, shape [n, m], each row the same.
        old_first_probs: As `first_probs`, under the old policy, shape [n].
        old_second_probs: As `second_probs`, under the old policy, shape [n, m].
        scores: Score of each answer, shape [n, m], in units of reward.

    Returns:
        The average with the ratio of the first token and with that of the second, shape [2], in units of
        reward.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes do not fit or the probabilities are no distributions.

    Gradient:
        Into `first_probs`, `second_probs` and `scores`, as in any sum of products.

    Source:
        Definition; the approximation of Schulman et al., "Trust Region Policy Optimization", 2015, equation
        3.

    Examples:
        >>> import torch
        >>> from lab import token_ratio_estimate
        >>> old_first, old_second = torch.tensor([0.5, 0.5]), torch.tensor([[0.5, 0.5], [0.5, 0.5]])
        >>> first, second = torch.tensor([0.9, 0.1]), torch.tensor([[0.9, 0.1], [0.5, 0.5]])
        >>> scores = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
        >>> token_ratio_estimate(first, second, old_first, old_second, scores)
        tensor([0.4500, 0.4500])
    """
    weights, ratios, scores = _reweighted(
        first_probs, second_probs, old_first_probs, old_second_probs, scores
    )
    return torch.stack([(weights * each * scores).sum() for each in ratios])


def sequence_ratio_estimate(
    first_probs: Tensor,
    second_probs: Tensor,
    old_first_probs: Tensor,
    old_second_probs: Tensor,
    scores: Tensor,
) -> Tensor:
    r"""Average the score over answers of the old policy, reweighted by the ratio of the whole answer.

    $$\sum_{a, b} \pi_\text{old}(a)\, \pi_\text{old}(b \mid a)\, \rho_1\, \rho_2\, r_{ab}$$

    It is `answer_value` of the new policy, exactly.

    Args:
        first_probs: Probabilities of the first token, shape [n] with n at least 2, all above 0, with sum 1.
        second_probs: Probabilities of the second token given the first, shape [n, m], each row the same.
        old_first_probs: As `first_probs`, under the old policy, shape [n].
        old_second_probs: As `second_probs`, under the old policy, shape [n, m].
        scores: Score of each answer, shape [n, m], in units of reward.

    Returns:
        The average, shape [], in units of reward.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes do not fit or the probabilities are no distributions.

    Gradient:
        Into `first_probs`, `second_probs` and `scores`, as in any sum of products.

    Source:
        Definition of importance sampling.

    Examples:
        >>> import torch
        >>> from lab import sequence_ratio_estimate
        >>> old_first, old_second = torch.tensor([0.5, 0.5]), torch.tensor([[0.5, 0.5], [0.5, 0.5]])
        >>> first, second = torch.tensor([0.9, 0.1]), torch.tensor([[0.9, 0.1], [0.5, 0.5]])
        >>> scores = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
        >>> sequence_ratio_estimate(first, second, old_first, old_second, scores)
        tensor(0.8100)
    """
    weights, (first_ratio, second_ratio), scores = _reweighted(
        first_probs, second_probs, old_first_probs, old_second_probs, scores
    )
    return (weights * first_ratio * second_ratio * scores).sum()


def _reweighted(
    first_probs: Tensor,
    second_probs: Tensor,
    old_first_probs: Tensor,
    old_second_probs: Tensor,
    scores: Tensor,
) -> tuple[Tensor, tuple[Tensor, Tensor], Tensor]:
    """Return the old probability of each answer, the ratios of its two tokens, and its score, each [n, m]."""
    first_probs, second_probs, scores = worlds.answers(first_probs, second_probs, scores)
    _, old_first = checks.floats({"first_probs": first_probs, "old_first_probs": old_first_probs})
    _, old_second = checks.floats({"second_probs": second_probs, "old_second_probs": old_second_probs})
    worlds.distribution("old_first_probs", old_first)
    worlds.distributions("old_second_probs", old_second, "old_first_probs", old_first)
    first_ratio = ratio(first_probs.log(), old_first.log())[:, None].expand_as(scores)
    second_ratio = ratio(second_probs.log(), old_second.log())
    return old_first[:, None] * old_second, (first_ratio, second_ratio), scores
