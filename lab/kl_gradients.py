r"""What the KL estimators do in a loss: their gradients, averaged over the policy exactly.

A batch sampled from the policy averages the gradient of an estimator over the policy, with the samples held
fixed. Over a few actions that average can be enumerated and held against the true gradient of the divergence.
"""

import torch
from torch import Tensor

from ppo_core import checks, kl_k1, kl_k2, kl_k3

ESTIMATORS = {"k1": kl_k1, "k2": kl_k2, "k3": kl_k3}


def kl_gradient(logits: Tensor, ref_logits: Tensor) -> Tensor:
    r"""Differentiate the exact KL divergence with respect to the policy's logits.

    $$\nabla_z \sum_a \pi(a) \log \frac{\pi(a)}{\pi_\text{ref}(a)}, \qquad \pi = \operatorname{softmax}(z)$$

    Args:
        logits: Logits of the policy, $z$, shape [n] with n at least 1.
        ref_logits: Logits of the reference policy, shape [n].

    Returns:
        The gradient, shape [n], in nats per unit of logit; it sums to 0.

    Raises:
        TypeError: An argument is not a floating-point tensor.
        ValueError: The shapes do not fit.

    Gradient:
        None: the result is a vector of numbers.

    Source:
        Definition; in closed form $\pi(a) (\log \frac{\pi(a)}{\pi_\text{ref}(a)} - \mathrm{KL})$.

    Examples:
        >>> import torch
        >>> from lab import kl_gradient
        >>> kl_gradient(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 0.0]))
        tensor([ 0.1966, -0.1966])
    """
    logits, ref_logits = _logits(logits, ref_logits)
    with torch.enable_grad():
        z = logits.detach().requires_grad_()
        logprobs = torch.log_softmax(z, -1)
        divergence = (logprobs.exp() * (logprobs - torch.log_softmax(ref_logits, -1))).sum()
        (gradient,) = torch.autograd.grad(divergence, z)
    return gradient


def sampled_kl_gradient(logits: Tensor, ref_logits: Tensor, *, estimator: str) -> Tensor:
    r"""Average the gradient of an estimator over the actions of the policy, with the samples held fixed.

    $$\sum_a \pi(a)\, \nabla_z k_j(a), \qquad \pi = \operatorname{softmax}(z)$$

    For k1 it is zero, for k2 the gradient of $\mathrm{KL}(\pi \Vert \pi_\text{ref})$, for k3 that of
    $\mathrm{KL}(\pi_\text{ref} \Vert \pi)$.

    Args:
        logits: Logits of the policy, $z$, shape [n] with n at least 1.
        ref_logits: Logits of the reference policy, shape [n].
        estimator: `"k1"`, `"k2"` or `"k3"`.

    Returns:
        The average gradient, shape [n], in nats per unit of logit; it sums to 0.

    Raises:
        TypeError: A tensor is not floating point.
        ValueError: The shapes do not fit or `estimator` is unknown.

    Gradient:
        None: the result is a vector of numbers.

    Source:
        Tang and Munos, "On a few pitfalls in KL divergence gradient estimation for RL", 2025.

    Examples:
        >>> import torch
        >>> from lab import sampled_kl_gradient
        >>> logits, ref_logits = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 0.0])
        >>> sampled_kl_gradient(logits, ref_logits, estimator="k2")
        tensor([ 0.1966, -0.1966])
        >>> sampled_kl_gradient(logits, ref_logits, estimator="k3")
        tensor([ 0.2311, -0.2311])
    """
    logits, ref_logits = _logits(logits, ref_logits)
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator!r}")
    with torch.enable_grad():
        z = logits.detach().requires_grad_()
        logprobs = torch.log_softmax(z, -1)
        per_action = ESTIMATORS[estimator](logprobs, torch.log_softmax(ref_logits, -1))
        # The policy chose the samples; their weights are no part of what the loss differentiates.
        (gradient,) = torch.autograd.grad((logprobs.exp().detach() * per_action).sum(), z)
    return gradient


def _logits(logits: Tensor, ref_logits: Tensor) -> list[Tensor]:
    """Check that both are logits over the same actions; return them in float32 or wider."""
    logits, ref_logits = checks.floats({"logits": logits, "ref_logits": ref_logits})
    if logits.ndim != 1 or logits.numel() == 0:
        raise ValueError(f"logits must have the shape [n] with n at least 1, got {list(logits.shape)}")
    return [logits, ref_logits]
