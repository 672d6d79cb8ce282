"""What the exact worlds ask of the probabilities that they are given."""

from torch import Tensor

from ppo_core import checks


def distribution(name: str, probs: Tensor) -> None:
    """Check that `probs` holds the probabilities of at least two possible actions."""
    if probs.ndim != 1 or probs.numel() < 2:
        raise ValueError(f"{name} must have the shape [n] with n at least 2, got {list(probs.shape)}")
    _probabilities(name, probs)


def distributions(name: str, probs: Tensor, first_name: str, first: Tensor) -> None:
    """Check that `probs` holds one such distribution for each action of `first`, row by row."""
    if probs.ndim != 2 or probs.shape[0] != first.shape[0] or probs.shape[1] < 2:
        raise ValueError(
            f"{name} must have the shape [n, m] with n as in {first_name} and m at least 2, got "
            f"{list(probs.shape)} and {list(first.shape)}; give one row for each first token"
        )
    for row in probs:
        _probabilities(name, row)


def answers(first_probs: Tensor, second_probs: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Check a policy of two tokens and the scores of its answers; return them in float32 or wider."""
    (first_probs,) = checks.floats({"first_probs": first_probs})
    second_probs, scores = checks.floats({"second_probs": second_probs, "scores": scores})
    distribution("first_probs", first_probs)
    distributions("second_probs", second_probs, "first_probs", first_probs)
    return first_probs, second_probs, scores


def _probabilities(name: str, probs: Tensor) -> None:
    if not (probs > 0).all():
        raise ValueError(f"{name} must all be above 0, got {probs.tolist()}; leave impossible actions out")
    if not (probs.sum() - 1).abs() <= 1e-6:
        raise ValueError(f"{name} must sum to 1, got {probs.tolist()} with sum {probs.sum().item():.6g}")
