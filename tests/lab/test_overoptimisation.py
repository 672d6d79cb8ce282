import math

import pytest
import torch

from lab import proxy_and_true


def tensor(x):
    return torch.tensor(x, dtype=torch.float64)


def test_by_hand():
    # Proxy log 3 and 0 on an even reference, beta 1: the best policy is (3/4, 1/4).
    found = proxy_and_true(tensor([0.5, 0.5]), tensor([math.log(3), 0.0]), tensor([-4.0, 8.0]), beta=1.0)
    expected = [0.75 * math.log(3), -1.0, 0.75 * math.log(3) - math.log(2)]
    assert found.tolist() == pytest.approx(expected, rel=1e-14)


def test_a_weaker_leash_first_raises_both_and_then_only_the_proxy():
    ref, proxy, true = tensor([0.50, 0.49, 0.01]), tensor([0.0, 1.0, 3.0]), tensor([0.0, 1.0, -3.0])
    rows = [proxy_and_true(ref, proxy, true, beta=beta).tolist() for beta in (100.0, 10.0, 3.0, 1.0, 0.2)]
    proxies, trues, divergences = zip(*rows, strict=True)
    assert list(proxies) == sorted(proxies)
    assert list(divergences) == sorted(divergences)
    assert trues[0] < trues[1] > trues[3] > trues[4]
    # At first the reference, at last the action that only the proxy likes.
    assert trues[0] == pytest.approx(0.46, abs=0.005)
    assert trues[4] < -2.9


def test_a_leash_so_weak_that_probabilities_are_rounded_to_zero():
    found = proxy_and_true(tensor([0.5, 0.5]), tensor([1.0, 0.0]), tensor([2.0, 3.0]), beta=1e-4)
    assert found.tolist() == pytest.approx([1, 2, math.log(2)], rel=1e-14)


def test_text_of_errors():
    two = torch.tensor([0.5, 0.5])
    for arguments, text in [
        ((two, two, torch.ones(3)), "ref_probs and true_scores must have the same shape, got [2] and [3]; nothing "
         "is broadcast: expand or index one of them first"),
        ((2 * two, two, two), "ref_probs must sum to 1, got [1.0, 1.0] with sum 2"),
    ]:  # fmt: skip
        with pytest.raises(ValueError) as raised:
            proxy_and_true(*arguments, beta=0.5)
        assert str(raised.value) == text
