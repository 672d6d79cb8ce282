r"""A world with one state: the policy gradient and its variance, exactly, by enumerating the actions.

The policy is a softmax. The one parameter is the logit of the first action, $z_1$, so the score function of
action $a$ is $\partial \log \pi(a) / \partial z_1 = 1[a = 1] - \pi(1)$.
"""

import torch
from torch import Tensor

from lab import worlds
from ppo_core import checks


def expected_reward(probs: Tensor, rewards: Tensor) -> Tensor:
    r"""Average the rewards over the policy: the value of the one state.

    $$V = \sum_a \pi(a)\, r_a$$

    Args:
        probs: Probabilities of the actions, shape [n] with n at least 2, all above 0, with sum 1.
        rewards: Reward of each action, shape [n].

    Returns:
        The value, shape [], in units of reward.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes do not fit or `probs` is not such a distribution.

    Gradient:
        Into both arguments, as in any sum of products.

    Source:
        Sutton and Barto, "Reinforcement Learning: An Introduction", 2nd edition, 2018, equation 3.12, with
        one step.

    Examples:
        >>> import torch
        >>> from lab import expected_reward
        >>> expected_reward(torch.tensor([0.9, 0.1]), torch.tensor([1.0, 0.0]))
        tensor(0.9000)
    """
    probs, rewards = _world(probs, rewards)
    return (probs * rewards).sum()


def exact_policy_gradient(probs: Tensor, rewards: Tensor) -> Tensor:
    r"""Differentiate the expected reward through the softmax, with no score function and no sampling.

    $$\frac{\partial V}{\partial z_1}, \qquad \pi = \operatorname{softmax}(z)$$

    Args:
        probs: Probabilities of the actions, shape [n] with n at least 2, all above 0, with sum 1.
        rewards: Reward of each action, shape [n].

    Returns:
        The derivative, shape [], in units of reward per unit of logit.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes do not fit or `probs` is not such a distribution.

    Gradient:
        None: the result is a number.

    Source:
        Definition; `policy_gradient_mean` must agree by the policy gradient theorem.

    Examples:
        >>> import torch
        >>> from lab import exact_policy_gradient
        >>> exact_policy_gradient(torch.tensor([0.9, 0.1]), torch.tensor([1.0, 0.0]))
        tensor(0.0900)
    """
    probs, rewards = _world(probs, rewards)
    with torch.enable_grad():
        logits = probs.detach().log().requires_grad_()
        value = (torch.softmax(logits, -1) * rewards).sum()
        (gradient,) = torch.autograd.grad(value, logits)
    return gradient[0]


def policy_gradient_mean(probs: Tensor, rewards: Tensor, *, baseline: float = 0.0) -> Tensor:
    r"""Average the one-sample policy-gradient estimate over the actions.

    $$\sum_a \pi(a)\, (r_a - b)\, (1[a = 1] - \pi(1))$$

    The baseline drops out, because the score function averages to zero.

    Args:
        probs: Probabilities of the actions, shape [n] with n at least 2, all above 0, with sum 1.
        rewards: Reward of each action, shape [n].
        baseline: What is subtracted from every reward, $b$.

    Returns:
        The mean, shape [], in units of reward per unit of logit.

    Raises:
        TypeError: A tensor is not floating point or `baseline` is not a plain number.
        ValueError: The shapes do not fit, `probs` is not such a distribution or `baseline` is not finite.

    Gradient:
        Into both tensors, as in any sum of products.

    Source:
        Williams, "Simple Statistical Gradient-Following Algorithms for Connectionist Reinforcement Learning",
        1992, theorem 1.

    Examples:
        >>> import torch
        >>> from lab import policy_gradient_mean
        >>> probs, rewards = torch.tensor([0.9, 0.1]), torch.tensor([1.0, 0.0])
        >>> policy_gradient_mean(probs, rewards), policy_gradient_mean(probs, rewards, baseline=0.9)
        (tensor(0.0900), tensor(0.0900))
    """
    probs, estimates = _estimates(probs, rewards, baseline)
    return (probs * estimates).sum()


def policy_gradient_variance(probs: Tensor, rewards: Tensor, *, baseline: float = 0.0) -> Tensor:
    r"""Take the variance of the one-sample policy-gradient estimate over the actions.

    $$\sum_a \pi(a)\, \bigl((r_a - b)\, (1[a = 1] - \pi(1)) - \text{mean}\bigr)^2$$

    Here the baseline matters, for better or worse: with probabilities 0.9 and 0.1 and rewards 1 and 0, the
    value 0.9 as baseline makes it 64 times larger.

    Args:
        probs: Probabilities of the actions, shape [n] with n at least 2, all above 0, with sum 1.
        rewards: Reward of each action, shape [n].
        baseline: What is subtracted from every reward, $b$.

    Returns:
        The variance, shape [], in squared units of the mean.

    Raises:
        TypeError: A tensor is not floating point or `baseline` is not a plain number.
        ValueError: The shapes do not fit, `probs` is not such a distribution or `baseline` is not finite.

    Gradient:
        Into both tensors, as in any sum of products.

    Source:
        Greensmith, Bartlett and Baxter, "Variance Reduction Techniques for Gradient Estimates in
        Reinforcement Learning", 2004.

    Examples:
        >>> import torch
        >>> from lab import policy_gradient_variance
        >>> probs, rewards = torch.tensor([0.9, 0.1]), torch.tensor([1.0, 0.0])
        >>> policy_gradient_variance(probs, rewards), policy_gradient_variance(probs, rewards, baseline=0.9)
        (tensor(0.0009), tensor(0.0576))
    """
    probs, estimates = _estimates(probs, rewards, baseline)
    mean = (probs * estimates).sum()
    return (probs * (estimates - mean) ** 2).sum()


def best_baseline(probs: Tensor, rewards: Tensor) -> Tensor:
    r"""Find the baseline with the smallest variance of the one-sample estimate.

    $$b^* = \frac{\sum_a \pi(a)\, r_a\, s_a^2}{\sum_a \pi(a)\, s_a^2}, \qquad s_a = 1[a = 1] - \pi(1)$$

    It is an average of the rewards weighted by the squared score function, not the value of the state.

    Args:
        probs: Probabilities of the actions, shape [n] with n at least 2, all above 0, with sum 1.
        rewards: Reward of each action, shape [n].

    Returns:
        The baseline, shape [], in units of reward.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes do not fit or `probs` is not such a distribution.

    Gradient:
        Into both arguments, as in any quotient of sums.

    Source:
        Greensmith, Bartlett and Baxter, "Variance Reduction Techniques for Gradient Estimates in
        Reinforcement Learning", 2004.

    Examples:
        >>> import torch
        >>> from lab import best_baseline
        >>> best_baseline(torch.tensor([0.9, 0.1]), torch.tensor([1.0, 0.0]))
        tensor(0.1000)
    """
    probs, rewards = _world(probs, rewards)
    weights = probs * _scores(probs) ** 2
    return (weights * rewards).sum() / weights.sum()


def _scores(probs: Tensor) -> Tensor:
    """Return the score function of each action: 1[a = 1] - pi(1)."""
    first = torch.zeros_like(probs)
    first[0] = 1
    return first - probs[0]


def _estimates(probs: Tensor, rewards: Tensor, baseline: float) -> tuple[Tensor, Tensor]:
    """Return the probabilities and the one-sample estimate that each action would give."""
    probs, rewards = _world(probs, rewards)
    checks.finite("baseline", baseline)
    return probs, (rewards - baseline) * _scores(probs)


def _world(probs: Tensor, rewards: Tensor) -> list[Tensor]:
    """Check that probabilities and rewards describe a bandit with at least two possible actions."""
    probs, rewards = checks.floats({"probs": probs, "rewards": rewards})
    worlds.distribution("probs", probs)
    return [probs, rewards]
