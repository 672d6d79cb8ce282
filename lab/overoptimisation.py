"""A score that stands in for what is wanted, and what optimising the stand-in does to the real thing."""

import torch
from torch import Tensor

from lab.optimum import kl_regularised_optimum
from ppo_core import checks


def proxy_and_true(ref_probs: Tensor, proxy_scores: Tensor, true_scores: Tensor, *, beta: float) -> Tensor:
    r"""Optimise the proxy score under a leash, and read off both scores and the distance from the reference.

    $$\Bigl(\sum_a \pi^*(a)\, \tilde r_a,\ \sum_a \pi^*(a)\, r_a,
    \mathrm{KL}(\pi^* \Vert \pi_\text{ref})\Bigr),
    \qquad \pi^*(a) \propto \pi_\text{ref}(a)\, e^{\tilde r_a / \beta}$$

    With a proxy that is right on likely actions and wrong on an unlikely one, a weaker leash first raises
    both and then only the proxy: over-optimisation.

    Args:
        ref_probs: Probabilities under the reference, shape [n] with n at least 2, all above 0, with sum 1.
        proxy_scores: What the reward model gives each action, $\tilde r$, shape [n], in units of reward.
        true_scores: What each action is worth, $r$, shape [n], in units of reward.
        beta: Strength of the leash, above 0, in units of reward per nat.

    Returns:
        Expected proxy score, expected true score and divergence of the policy that is best for the proxy,
        shape [3]; the scores in units of reward, the divergence in nats.

    Raises:
        TypeError: A tensor is not floating point or `beta` is not a plain number.
        ValueError: The shapes differ, `ref_probs` is not such a distribution or `beta` is not above 0.

    Gradient:
        Into all three tensors, as in any softmax and sum.

    Source:
        Gao, Schulman and Hilton, "Scaling Laws for Reward Model Overoptimization", 2023, the effect; the
        world is ours.

    Examples:
        >>> import torch
        >>> from lab import proxy_and_true
        >>> ref_probs = torch.tensor([0.50, 0.49, 0.01])
        >>> proxy_scores, true_scores = torch.tensor([0.0, 1.0, 3.0]), torch.tensor([0.0, 1.0, -3.0])
        >>> for beta in (10.0, 1.0, 0.2):
        ...     proxy_and_true(ref_probs, proxy_scores, true_scores, beta=beta)
        tensor([0.5517, 0.4749, 0.0016])
        tensor([0.9516, 0.3588, 0.2422])
        tensor([ 2.9955, -2.9911,  4.5805])
    """
    ref_probs, proxy_scores, true_scores = checks.floats(
        {"ref_probs": ref_probs, "proxy_scores": proxy_scores, "true_scores": true_scores}
    )
    best = kl_regularised_optimum(ref_probs, proxy_scores, beta=beta)
    # From the logits, so that an action whose probability is rounded to 0 adds 0 and not NaN.
    log_ratio = torch.log_softmax(ref_probs.log() + proxy_scores / beta, -1) - ref_probs.log()
    return torch.stack([(best * each).sum() for each in (proxy_scores, true_scores, log_ratio)])
