r"""How far a token's probability moves while one batch is used for several steps, in spite of the clip.

One state, a few tokens, a softmax policy. The batch is all tokens, weighted by the probabilities under the
old policy, so that nothing is left to chance.
"""

import torch
from torch import Tensor

from ppo_core import checks, policy_loss


def repeated_steps(logits: Tensor, advantages: Tensor, *, epsilon: float, lr: float, steps: int) -> Tensor:
    r"""Descend the clipped policy loss by several plain gradient steps on the same batch.

    $$z \leftarrow z - \eta\, \nabla_z \sum_a \pi_\text{old}(a)\, \ell_a(z),
    \qquad \pi = \operatorname{softmax}(z)$$

    with $\ell_a$ the loss of `policy_loss`. A token whose clip is active has no term of its own any more, but
    it still moves with the others: probabilities sum to 1. And the clip is looked at only before a step, so
    one large step can carry any token past the band.

    Args:
        logits: Logits of the old policy, where the steps begin, shape [n] with n at least 2.
        advantages: Advantage of each token, shape [n], in units of reward.
        epsilon: Half-width of the band, strictly between 0 and 1.
        lr: Size of a step, $\eta$, above 0, in units of logit squared per unit of reward.
        steps: Number of steps, a whole number of at least 1.

    Returns:
        The probabilities after the steps, shape [n].

    Raises:
        TypeError: A tensor is not floating point or a hyper-parameter is not a plain number.
        ValueError: The shapes do not fit or a hyper-parameter is out of range.

    Gradient:
        None: the result is a vector of numbers.

    Source:
        Schulman et al., "Proximal Policy Optimization Algorithms", 2017, algorithm 1, with one state.

    Examples:
        >>> import torch
        >>> from lab import repeated_steps
        >>> logits = torch.tensor([0.8, 0.1, 0.1]).log()
        >>> repeated_steps(logits, torch.tensor([-1.0, 1.0, 0.0]), epsilon=0.2, lr=1.0, steps=1).tolist()
        [0.7360, 0.1386, 0.1254]
    """
    logits, advantages = _batch(logits, advantages)
    checks.clip_width(epsilon)
    checks.positive("lr", lr)
    checks.whole("steps", steps, least=1)
    z = logits.detach()
    old_logprobs = torch.log_softmax(z, -1)
    for _ in range(int(steps)):
        with torch.enable_grad():
            z = z.clone().requires_grad_()
            losses = policy_loss(torch.log_softmax(z, -1), old_logprobs, advantages, epsilon=epsilon)
            (slope,) = torch.autograd.grad((old_logprobs.exp() * losses).sum(), z)
        z = z.detach() - lr * slope
    return torch.softmax(z, -1)


def ratio_after_steps(logits: Tensor, advantages: Tensor, *, epsilon: float, lr: float, steps: int) -> Tensor:
    r"""Divide the probabilities after several steps on one batch by those before.

    $$\rho_a = \frac{\pi_\text{after}(a)}{\pi_\text{old}(a)}$$

    A value outside $[1 - \epsilon, 1 + \epsilon]$ is a token that has left the clip band: nothing clamps it.

    Args:
        logits: Logits of the old policy, where the steps begin, shape [n] with n at least 2.
        advantages: Advantage of each token, shape [n], in units of reward.
        epsilon: Half-width of the band, strictly between 0 and 1.
        lr: Size of a step, above 0, in units of logit squared per unit of reward.
        steps: Number of steps, a whole number of at least 1.

    Returns:
        The ratios, shape [n].

    Raises:
        TypeError: A tensor is not floating point or a hyper-parameter is not a plain number.
        ValueError: The shapes do not fit or a hyper-parameter is out of range.

    Gradient:
        None: the result is a vector of numbers.

    Source:
        Definition; see `repeated_steps`.

    Examples:
        >>> import torch
        >>> from lab import ratio_after_steps
        >>> logits = torch.tensor([0.8, 0.1, 0.1]).log()
        >>> ratio_after_steps(logits, torch.tensor([-1.0, 1.0, 0.0]), epsilon=0.2, lr=1.0, steps=1).tolist()
        [0.9199, 1.3862, 1.2543]
    """
    after = repeated_steps(logits, advantages, epsilon=epsilon, lr=lr, steps=steps)
    (logits,) = checks.floats({"logits": logits})
    return after / torch.softmax(logits.detach(), -1)


def _batch(logits: Tensor, advantages: Tensor) -> list[Tensor]:
    """Check that there are advantages for the tokens of a policy with a choice."""
    logits, advantages = checks.floats({"logits": logits, "advantages": advantages})
    if logits.ndim != 1 or logits.numel() < 2:
        raise ValueError(f"logits must have the shape [n] with n at least 2, got {list(logits.shape)}")
    return [logits, advantages]
