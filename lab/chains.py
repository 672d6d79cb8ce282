r"""Answers of two tokens, all of them: what a wrong critic does to the average policy gradient.

The policy samples a first token $a$ and then a second, $b$, given the first; the answer gets a score at its
end. Everything is a sum over the answers: `first_probs` holds $\pi(a)$, `second_probs` holds $\pi(b \mid a)$
in row $a$, `scores` holds $r_{ab}$. The parameters are the logits of the first token.
"""

import torch
from torch import Tensor

from lab import worlds
from ppo_core import checks, gae


def answer_value(first_probs: Tensor, second_probs: Tensor, scores: Tensor) -> Tensor:
    r"""Average the score over all answers.

    $$V = \sum_a \pi(a) \sum_b \pi(b \mid a)\, r_{ab}$$

    Args:
        first_probs: Probabilities of the first token, shape [n] with n at least 2, all above 0, with sum 1.
        second_probs: Probabilities of the second token given the first, shape [n, m], each row the same.
        scores: Score of each answer, shape [n, m], in units of reward.

    Returns:
        The expected score, shape [], in units of reward.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes do not fit or the probabilities are no distributions.

    Gradient:
        Into all three arguments, as in any sum of products.

    Source:
        Definition.

    Examples:
        >>> import torch
        >>> from lab import answer_value
        >>> second_probs = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
        >>> scores = torch.tensor([[1.0, 3.0], [0.0, 1.0]])
        >>> answer_value(torch.tensor([0.2, 0.8]), second_probs, scores)
        tensor(0.4800)
    """
    first_probs, second_probs, scores = worlds.answers(first_probs, second_probs, scores)
    return (first_probs * (second_probs * scores).sum(1)).sum()


def answer_gradient(first_probs: Tensor, second_probs: Tensor, scores: Tensor) -> Tensor:
    r"""Differentiate the expected score through the softmax of the first token, with no estimate at all.

    $$\nabla_z \sum_a \pi(a) \sum_b \pi(b \mid a)\, r_{ab}, \qquad \pi(a) = \operatorname{softmax}(z)_a$$

    Args:
        first_probs: Probabilities of the first token, shape [n] with n at least 2, all above 0, with sum 1.
        second_probs: Probabilities of the second token given the first, shape [n, m], each row the same.
        scores: Score of each answer, shape [n, m], in units of reward.

    Returns:
        The gradient, shape [n], in units of reward per unit of logit; it sums to 0.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes do not fit or the probabilities are no distributions.

    Gradient:
        None: the result is a vector of numbers.

    Source:
        Definition.

    Examples:
        >>> import torch
        >>> from lab import answer_gradient
        >>> second_probs = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
        >>> scores = torch.tensor([[1.0, 3.0], [0.0, 1.0]])
        >>> answer_gradient(torch.tensor([0.2, 0.8]), second_probs, scores)
        tensor([ 0.3040, -0.3040])
    """
    first_probs, second_probs, scores = worlds.answers(first_probs, second_probs, scores)
    with torch.enable_grad():
        logits = first_probs.detach().log().requires_grad_()
        value = (torch.softmax(logits, -1) * (second_probs * scores).detach().sum(1)).sum()
        (gradient,) = torch.autograd.grad(value, logits)
    return gradient


def gae_gradient(
    first_probs: Tensor,
    second_probs: Tensor,
    scores: Tensor,
    values: Tensor,
    *,
    lam: float,
    start_value: float = 0.0,
) -> Tensor:
    r"""Average the policy gradient with GAE advantages over all answers.

    $$\sum_{a, b} \pi(a)\, \pi(b \mid a)\, \hat A_{ab}\, \nabla_z \log \pi(a)$$

    with $\hat A_{ab}$ what `gae` gives the first token of answer $ab$, at $\gamma = 1$. With $\lambda = 1$ it
    is the exact gradient whatever the critic says; with $\lambda < 1$ the critic's errors stay in it. With
    $\lambda = 0$ the score of the answer plays no part, as in an answer that is cut off after its first token
    and bootstraps from the critic.

    Args:
        first_probs: Probabilities of the first token, shape [n] with n at least 2, all above 0, with sum 1.
        second_probs: Probabilities of the second token given the first, shape [n, m], each row the same.
        scores: Score of each answer, shape [n, m], in units of reward.
        values: The critic's value after each first token, shape [n], in units of reward, right or wrong.
        lam: $\lambda$ of GAE, from 0 to 1.
        start_value: The critic's value before the first token, a baseline: it drops out of the average.

    Returns:
        The average, shape [n], in units of reward per unit of logit; it sums to 0.

    Raises:
        TypeError: A tensor is not floating point or a hyper-parameter is not a plain number.
        ValueError: The shapes do not fit, the probabilities are no distributions or a hyper-parameter is out
            of range.

    Gradient:
        None: the result is a vector of numbers.

    Source:
        Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", 2016,
        section 3.

    Examples:
        >>> import torch
        >>> from lab import gae_gradient
        >>> second_probs = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
        >>> scores = torch.tensor([[1.0, 3.0], [0.0, 1.0]])
        >>> values = torch.tensor([0.0, 5.0])
        >>> gae_gradient(torch.tensor([0.2, 0.8]), second_probs, scores, values, lam=1.0)
        tensor([ 0.3040, -0.3040])
        >>> gae_gradient(torch.tensor([0.2, 0.8]), second_probs, scores, values, lam=0.0)
        tensor([-0.8000,  0.8000])
    """
    weights, estimates = _estimates(first_probs, second_probs, scores, values, lam, start_value)
    return (weights.unsqueeze(-1) * estimates).sum((0, 1))


def gae_variance(
    first_probs: Tensor,
    second_probs: Tensor,
    scores: Tensor,
    values: Tensor,
    *,
    lam: float,
    start_value: float = 0.0,
) -> Tensor:
    r"""Take the variance of the policy gradient that one answer gives with its GAE advantage.

    $$\sum_{a, b} \pi(a)\, \pi(b \mid a)\, \bigl\lVert \hat A_{ab}\, \nabla_z \log \pi(a) - \text{mean}
    \bigr\rVert^2$$

    It is the sum of the variances of the components. A smaller $\lambda$ listens less to the score of the one
    answer, which is where the noise is.

    Args:
        first_probs: Probabilities of the first token, shape [n] with n at least 2, all above 0, with sum 1.
        second_probs: Probabilities of the second token given the first, shape [n, m], each row the same.
        scores: Score of each answer, shape [n, m], in units of reward.
        values: The critic's value after each first token, shape [n], in units of reward, right or wrong.
        lam: $\lambda$ of GAE, from 0 to 1.
        start_value: The critic's value before the first token, a baseline.

    Returns:
        The variance, shape [], in squared units of the gradient.

    Raises:
        TypeError: A tensor is not floating point or a hyper-parameter is not a plain number.
        ValueError: The shapes do not fit, the probabilities are no distributions or a hyper-parameter is out
            of range.

    Gradient:
        None: the result is a number.

    Source:
        Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation", 2016,
        section 3, the trade-off.

    Examples:
        >>> import torch
        >>> from lab import gae_variance
        >>> second_probs = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
        >>> scores = torch.tensor([[1.0, 3.0], [0.0, 1.0]])
        >>> values = torch.tensor([2.0, 0.1])
        >>> gae_variance(torch.tensor([0.2, 0.8]), second_probs, scores, values, lam=1.0)
        tensor(1.1016)
        >>> gae_variance(torch.tensor([0.2, 0.8]), second_probs, scores, values, lam=0.0)
        tensor(0.8398)
    """
    weights, estimates = _estimates(first_probs, second_probs, scores, values, lam, start_value)
    mean = (weights.unsqueeze(-1) * estimates).sum((0, 1))
    return (weights.unsqueeze(-1) * (estimates - mean) ** 2).sum()


def gae_bias(
    first_probs: Tensor, second_probs: Tensor, scores: Tensor, values: Tensor, *, lam: float
) -> Tensor:
    r"""Subtract the exact gradient from the average of the one with GAE advantages.

    $$(1 - \lambda)\, \pi(i) \Bigl(e_i - \sum_a \pi(a)\, e_a\Bigr),
    \qquad e_a = V(a) - \sum_b \pi(b \mid a)\, r_{ab}$$

    with $e_a$ the critic's error after the first token $a$. It is 0 with $\lambda = 1$, and with a critic
    that is wrong by the same amount everywhere.

    Args:
        first_probs: Probabilities of the first token, shape [n] with n at least 2, all above 0, with sum 1.
        second_probs: Probabilities of the second token given the first, shape [n, m], each row the same.
        scores: Score of each answer, shape [n, m], in units of reward.
        values: The critic's value after each first token, shape [n], in units of reward, right or wrong.
        lam: $\lambda$ of GAE, from 0 to 1.

    Returns:
        The bias, shape [n], in units of reward per unit of logit; it sums to 0.

    Raises:
        TypeError: A tensor is not floating point or `lam` is not a plain number.
        ValueError: The shapes do not fit, the probabilities are no distributions or `lam` is out of range.

    Gradient:
        None: the result is a vector of numbers.

    Source:
        Definition; the equation follows from that of GAE.

    Examples:
        >>> import torch
        >>> from lab import gae_bias
        >>> second_probs = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
        >>> scores = torch.tensor([[1.0, 3.0], [0.0, 1.0]])
        >>> values = torch.tensor([0.0, 5.0])
        >>> gae_bias(torch.tensor([0.2, 0.8]), second_probs, scores, values, lam=0.5)
        tensor([-0.5520,  0.5520])
    """
    estimated = gae_gradient(first_probs, second_probs, scores, values, lam=lam)
    return estimated - answer_gradient(first_probs, second_probs, scores)


def _estimates(
    first_probs: Tensor,
    second_probs: Tensor,
    scores: Tensor,
    values: Tensor,
    lam: float,
    start_value: float,
) -> tuple[Tensor, Tensor]:
    """Return the probability of each answer, [n, m], and the gradient it would give by itself, [n, m, n]."""
    first_probs, second_probs, scores = (
        x.detach() for x in worlds.answers(first_probs, second_probs, scores)
    )
    _, values = checks.floats({"first_probs": first_probs, "values": values})
    checks.finite("start_value", start_value)
    after_first = values[:, None].expand_as(scores)
    advantages = gae(
        torch.stack([torch.zeros_like(scores), scores], -1),
        torch.stack([torch.full_like(scores, start_value), after_first], -1),
        torch.ones(*scores.shape, 2, dtype=torch.bool),
        gamma=1.0,
        lam=lam,
    )
    # The score function of the first token: row a is 1 at a, less the probabilities.
    score_function = torch.eye(first_probs.numel(), dtype=first_probs.dtype) - first_probs
    estimates = advantages[..., :1] * score_function.unsqueeze(1)
    return first_probs[:, None] * second_probs, estimates
