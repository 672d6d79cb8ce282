import math

import pytest
import torch

from lab import entropy_gradient, kl_gradient


def tensor(x):
    return torch.tensor(x, dtype=torch.float64)


def test_by_hand():
    # Probabilities 1/2, 1/4, 1/4 and H = 3/2 log 2: -p (log p + H).
    found = entropy_gradient(tensor([math.log(2), 0.0, 0.0])).tolist()
    assert found == pytest.approx([-math.log(2) / 4, math.log(2) / 8, math.log(2) / 8], rel=1e-14)
    assert entropy_gradient(tensor([3.0, 3.0, 3.0])).tolist() == pytest.approx([0] * 3, abs=1e-15)
    assert entropy_gradient(tensor([3.0])).tolist() == [0]


@pytest.mark.parametrize("logits", [[1.0, 0.0], [0.3, -1.2, 2.0], [5.0, -5.0, 0.0, 1.0]])
def test_it_is_the_leash_to_an_even_reference(logits):
    # KL(pi || even) = log n - H.
    found = entropy_gradient(tensor(logits))
    even = kl_gradient(tensor(logits), tensor([0.0] * len(logits)))
    torch.testing.assert_close(found, -even, rtol=1e-13, atol=1e-15)


def test_bonus_and_leash_pull_apart_where_the_reference_is_sharper():
    logits, sharper, flatter = tensor([1.0, 0.0]), tensor([3.0, 0.0]), tensor([0.5, 0.0])
    bonus = entropy_gradient(logits)
    assert (bonus * -kl_gradient(logits, sharper)).sum() < 0
    assert (bonus * -kl_gradient(logits, flatter)).sum() > 0


@pytest.mark.parametrize("shape", [(), (0,), (1, 2)])
def test_text_of_errors(shape):
    with pytest.raises(ValueError) as raised:
        entropy_gradient(torch.zeros(shape))
    assert str(raised.value) == f"logits must have the shape [n] with n at least 1, got {list(shape)}"
