import pytest
import torch

from lab import answer_value, sequence_ratio_estimate, token_ratio_estimate


def tensor(x):
    return torch.tensor(x, dtype=torch.float64)


# The world of test_chains and an old policy of it: the new one is worth 1.
FIRST, SECOND, SCORES = (
    tensor([0.25, 0.75]),
    tensor([[0.5, 0.5], [0.75, 0.25]]),
    tensor([[2.0, 6.0], [1.0, -3.0]]),
)
OLD_FIRST, OLD_SECOND = tensor([0.5, 0.5]), tensor([[0.25, 0.75], [0.5, 0.5]])
POLICIES = (FIRST, SECOND, OLD_FIRST, OLD_SECOND, SCORES)


def test_ratios_by_hand():
    # First token corrected: 1/4 (2/4 + 18/4) + 3/4 (1/2 - 3/2). Second corrected: 1/2 * 4 + 1/2 * 0.
    assert token_ratio_estimate(*POLICIES).tolist() == pytest.approx([0.5, 2], rel=1e-14)
    assert sequence_ratio_estimate(*POLICIES).item() == pytest.approx(1, rel=1e-14)


def test_the_product_is_exact_and_one_ratio_is_not():
    exact = answer_value(FIRST, SECOND, SCORES)
    torch.testing.assert_close(sequence_ratio_estimate(*POLICIES), exact, rtol=1e-13, atol=0)
    assert (token_ratio_estimate(*POLICIES) - exact).abs().min() > 0.1


def test_near_the_old_policy_one_ratio_is_off_by_what_the_other_token_would_add():
    # New policies a step h away: the error of each token's ratio shrinks with h, that of their sum with its
    # square.
    errors = []
    for h in (0.02, 0.01):
        first = OLD_FIRST + h * tensor([1.0, -1.0])
        second = OLD_SECOND + h * tensor([[1.0, -1.0], [0.0, 0.0]])
        policies = (first, second, OLD_FIRST, OLD_SECOND, SCORES)
        exact, old = answer_value(first, second, SCORES), answer_value(OLD_FIRST, OLD_SECOND, SCORES)
        each = token_ratio_estimate(*policies)
        errors.append([*(each - exact).abs().tolist(), (each.sum() - old - exact).abs().item()])
    first, second, both = (one / other for one, other in zip(*errors, strict=True))
    assert (first, second, both) == pytest.approx((2, 2, 4), abs=0.15)


def test_the_same_policy_needs_no_correction():
    same = (FIRST, SECOND, FIRST, SECOND, SCORES)
    assert token_ratio_estimate(*same).tolist() == pytest.approx([1, 1], rel=1e-14)


CALLS = {
    "tokens": lambda first, second: token_ratio_estimate(first, second, FIRST, SECOND, SCORES),
    "sequence": lambda first, second: sequence_ratio_estimate(first, second, FIRST, SECOND, SCORES),
    "old tokens": lambda first, second: token_ratio_estimate(FIRST, SECOND, first, second, SCORES),
    "old sequence": lambda first, second: sequence_ratio_estimate(FIRST, SECOND, first, second, SCORES),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            FIRST,
            tensor([[0.5, 0.5], [0.5, 0.25]]),
            "{}second_probs must sum to 1, got [0.5, 0.25] with sum 0.75",
        ),
        (tensor([0.5, 0.25]), SECOND, "{}first_probs must sum to 1, got [0.5, 0.25] with sum 0.75"),
    ],
)
def test_text_of_errors(name, first, second, text):
    with pytest.raises(ValueError) as raised:
        CALLS[name](first, second)
    assert str(raised.value) == text.format("old_" if name.startswith("old") else "")
