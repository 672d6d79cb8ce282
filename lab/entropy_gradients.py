"""Where the entropy bonus pulls, exactly: to be held against the pull of the leash."""

import torch
from torch import Tensor

from ppo_core import checks, entropy


def entropy_gradient(logits: Tensor) -> Tensor:
    r"""Differentiate the entropy of the policy with respect to its logits.

    $$\nabla_z \Bigl(-\sum_a \pi(a) \log \pi(a)\Bigr), \qquad \pi = \operatorname{softmax}(z)$$

    A bonus follows this direction, toward the even policy; a leash follows the negative of `kl_gradient`,
    toward the reference. The two disagree where the reference is on the other side of the policy than the even one.

    Args:
        logits: Logits of the policy, $z$, shape [n] with n at least 1.

    Returns:
        The gradient, shape [n], in nats per unit of logit; it sums to 0.

    Raises:
        TypeError: `logits` is not a floating-point tensor.
        ValueError: `logits` has another shape.

    Gradient:
        None: the result is a vector of numbers.

    Source:
        Definition; in closed form $-\pi(a) (\log \pi(a) + H)$.

    Examples:
        >>> import torch
        >>> from lab import entropy_gradient
        >>> entropy_gradient(torch.tensor([1.0, 0.0]))
        tensor([-0.1966,  0.1966])
    """
    (logits,) = checks.floats({"logits": logits})
    if logits.ndim != 1 or logits.numel() == 0:
        raise ValueError(f"logits must have the shape [n] with n at least 1, got {list(logits.shape)}")
    with torch.enable_grad():
        z = logits.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(entropy(z), z)
    return gradient
