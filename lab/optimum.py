r"""The best policy under a KL leash, in closed form, and what DPO finds without ever being told a reward.

One state, a few answers. The objective is $\mathbb{E}_{a \sim \pi}[r_a] - \beta\, \mathrm{KL}(\pi \Vert
\pi_\text{ref})$; its maximiser can be written down, and DPO is built on that formula.
"""

import torch
from torch import Tensor

from lab import worlds
from ppo_core import checks, dpo_loss, preference_probability

# From the reference Newton's method moves a difference of implicit rewards by about 1 a step and then doubles
# its digits with each: 40 steps are enough for all rewards that are at most 20 apart.
NEWTON_STEPS = 40
FINEST_STEP = 1e-14  # of a logit; a shorter one is rounding
LARGEST_SPREAD = 20.0


def kl_divergence(probs: Tensor, ref_probs: Tensor) -> Tensor:
    r"""Average the log-ratio of two policies over the first.

    $$\mathrm{KL}(\pi \Vert \pi_\text{ref}) = \sum_a \pi(a) \log \frac{\pi(a)}{\pi_\text{ref}(a)}$$

    Args:
        probs: Probabilities of the actions, shape [n] with n at least 2, all above 0, with sum 1.
        ref_probs: The same under the reference policy, shape [n].

    Returns:
        The divergence, shape [], in nats; 0 only for equal policies.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes differ or an argument is not such a distribution.

    Gradient:
        Into both arguments, as in any sum of products.

    Source:
        Kullback and Leibler, "On Information and Sufficiency", 1951.

    Examples:
        >>> import torch
        >>> from lab import kl_divergence
        >>> even, uneven = torch.tensor([0.5, 0.5]), torch.tensor([0.9, 0.1])
        >>> kl_divergence(even, uneven), kl_divergence(uneven, even)
        (tensor(0.5108), tensor(0.3681))
    """
    probs, ref_probs = checks.floats({"probs": probs, "ref_probs": ref_probs})
    worlds.distribution("probs", probs)
    worlds.distribution("ref_probs", ref_probs)
    return (probs * (probs.log() - ref_probs.log())).sum()


def kl_objective(probs: Tensor, ref_probs: Tensor, rewards: Tensor, *, beta: float) -> Tensor:
    r"""Take the expected reward less what the leash costs.

    $$J(\pi) = \sum_a \pi(a)\, r_a - \beta\, \mathrm{KL}(\pi \Vert \pi_\text{ref})$$

    Args:
        probs: Probabilities of the actions, shape [n] with n at least 2, all above 0, with sum 1.
        ref_probs: The same under the reference policy, shape [n].
        rewards: Reward of each action, shape [n].
        beta: Strength of the leash, at least 0, in units of reward per nat.

    Returns:
        The objective, shape [], in units of reward.

    Raises:
        TypeError: A tensor is not floating point or `beta` is not a plain number.
        ValueError: The shapes differ, `probs` or `ref_probs` is not such a distribution, or `beta` is
            negative or not finite.

    Gradient:
        Into all three tensors, as in any sum of products.

    Source:
        Rafailov et al., "Direct Preference Optimization: Your Language Model is Secretly a Reward Model",
        2023, equation 3, for one prompt.

    Examples:
        >>> import torch
        >>> from lab import kl_objective
        >>> ref_probs, rewards = torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0])
        >>> kl_objective(torch.tensor([0.9, 0.1]), ref_probs, rewards, beta=0.5)
        tensor(0.7160)
    """
    probs, ref_probs, rewards = checks.floats({"probs": probs, "ref_probs": ref_probs, "rewards": rewards})
    checks.not_negative("beta", beta)
    return (probs * rewards).sum() - beta * kl_divergence(probs, ref_probs)


def kl_regularised_optimum(ref_probs: Tensor, rewards: Tensor, *, beta: float) -> Tensor:
    r"""Give the policy with the largest expected reward less the cost of the leash.

    $$\pi^*(a) = \frac{1}{Z}\, \pi_\text{ref}(a)\, e^{r_a / \beta},
    \qquad Z = \sum_b \pi_\text{ref}(b)\, e^{r_b / \beta}$$

    A small $\beta$ puts all weight on the best action, a large one gives back the reference.

    Args:
        ref_probs: Probabilities under the reference, shape [n] with n at least 2, all above 0, with sum 1.
        rewards: Reward of each action, shape [n].
        beta: Strength of the leash, above 0, in units of reward per nat.

    Returns:
        The probabilities of the best policy, shape [n].

    Raises:
        TypeError: A tensor is not floating point or `beta` is not a plain number.
        ValueError: The shapes differ, `ref_probs` is not such a distribution or `beta` is not above 0.

    Gradient:
        Into both tensors, as in any softmax.

    Source:
        Rafailov et al., "Direct Preference Optimization: Your Language Model is Secretly a Reward Model",
        2023, equation 4.

    Examples:
        >>> import torch
        >>> from lab import kl_regularised_optimum
        >>> ref_probs, rewards = torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0])
        >>> kl_regularised_optimum(ref_probs, rewards, beta=0.5)
        tensor([0.8808, 0.1192])
    """
    ref_probs, rewards = _leashed(ref_probs, rewards, beta)
    return torch.softmax(ref_probs.log() + rewards / beta, -1)


def dpo_minimiser(ref_probs: Tensor, rewards: Tensor, *, beta: float) -> Tensor:
    r"""Find the policy with the smallest expected DPO loss, by Newton's method on its logits.

    $$\sum_{a, b} \pi_\text{ref}(a)\, \pi_\text{ref}(b)\, \sigma(r_a - r_b)\, \ell_\text{DPO}(a \succ b)$$

    Both answers of a pair come from the reference, and who wins follows the Bradley-Terry model: the loss
    sees wins, never a reward. It must be the policy of `kl_regularised_optimum`, which is computed another
    way.

    Args:
        ref_probs: Probabilities under the reference, shape [n] with n at least 2, all above 0, with sum 1.
        rewards: Reward of each action, shape [n], by which pairs are judged; at most 20 apart.
        beta: The $\beta$ of the DPO loss, above 0, in units of reward per nat.

    Returns:
        The probabilities of that policy, shape [n], in float64.

    Raises:
        TypeError: A tensor is not floating point or `beta` is not a plain number.
        ValueError: The shapes differ, `ref_probs` is not such a distribution, `beta` is not above 0 or two
            rewards are further apart.

    Gradient:
        None: the result is a vector of numbers.

    Source:
        Definition, with the loss of Rafailov et al., "Direct Preference Optimization: Your Language Model is
        Secretly a Reward Model", 2023, equation 7.

    Examples:
        >>> import torch
        >>> from lab import dpo_minimiser
        >>> dpo_minimiser(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]), beta=0.5).tolist()
        [0.8808, 0.1192]
    """
    ref_probs, rewards = (x.detach().double() for x in _leashed(ref_probs, rewards, beta))
    if not rewards.max() - rewards.min() <= LARGEST_SPREAD:
        raise ValueError(
            f"rewards must be at most {LARGEST_SPREAD:g} apart, got {rewards.tolist()}; further apart the loss is "
            "too flat to find its minimum"
        )
    ref_logprobs = ref_probs.log()
    weights = torch.outer(ref_probs, ref_probs) * preference_probability(*_pairs(rewards))

    def expected_loss(logits: Tensor) -> Tensor:
        losses = dpo_loss(*_pairs(torch.log_softmax(logits, -1)), *_pairs(ref_logprobs), beta=beta)
        return (weights * losses).sum()

    logits = ref_logprobs
    with torch.enable_grad():
        for _ in range(NEWTON_STEPS):
            slope = torch.autograd.functional.jacobian(expected_loss, logits)
            curvature = torch.autograd.functional.hessian(expected_loss, logits)
            # The loss does not change when all logits rise alike; the 1 gives that direction a curvature.
            step = torch.linalg.solve(curvature + 1, slope)
            logits = logits - step
            if step.abs().max() <= FINEST_STEP:
                break
    return torch.softmax(logits, -1)


def _pairs(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first and the second of all ordered pairs, each of shape [n, n]."""
    n = x.numel()
    return x.unsqueeze(1).expand(n, n), x.unsqueeze(0).expand(n, n)


def _leashed(ref_probs: Tensor, rewards: Tensor, beta: float) -> list[Tensor]:
    """Check a reference, rewards of its actions and the strength of a leash that is there."""
    ref_probs, rewards = checks.floats({"ref_probs": ref_probs, "rewards": rewards})
    worlds.distribution("ref_probs", ref_probs)
    checks.positive("beta", beta)
    return [ref_probs, rewards]
