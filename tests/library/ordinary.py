"""What the tests of the fast paths share: inputs far and near, the definition in their place, and who was called."""

from contextlib import contextmanager

import torch

from ppo_core import checks


@contextmanager
def definition(monkeypatch):
    """No tensor is ordinary for a while."""
    with monkeypatch.context() as patch:
        patch.setattr(checks, "is_ordinary", lambda *_: False)
        yield


def batch(shape, dtype, seed=0):
    """Log-probabilities far and near, advantages of all signs and 0, and a mask with holes."""
    draw = torch.Generator().manual_seed(seed)
    old = -3 * torch.rand(shape, generator=draw, dtype=torch.float64)
    moves = torch.tensor([0.0, 0.1, -0.1, 0.3, -0.3, 1.2, -1.2, 15, -15, 95, -95], dtype=torch.float64)
    new = old + moves[torch.randint(len(moves), shape, generator=draw)]
    advantages = torch.randint(-2, 3, shape, generator=draw).double()
    mask = torch.rand(shape, generator=draw) < 0.7
    return new.to(dtype).requires_grad_(), old.to(dtype), advantages.to(dtype), mask


def calls_of(monkeypatch, module, name, keep=lambda result: None):
    """Record the calls of a function of a module, which goes on as before."""
    calls, original = [], getattr(module, name)

    def recorded(*arguments, **options):
        result = original(*arguments, **options)
        calls.append(keep(result))
        return result

    monkeypatch.setattr(module, name, recorded)
    return calls
