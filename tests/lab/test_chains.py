import math

import pytest
import torch

from lab import answer_gradient, answer_value, gae_bias, gae_gradient, gae_variance


def tensor(x):
    return torch.tensor(x, dtype=torch.float64)


# First token one to three; after it the scores are 4 and 0 on average.
FIRST, SECOND, SCORES = (
    tensor([0.25, 0.75]),
    tensor([[0.5, 0.5], [0.75, 0.25]]),
    tensor([[2.0, 6.0], [1.0, -3.0]]),
)
RIGHT, WRONG = tensor([4.0, 0.0]), tensor([0.0, 8.0])


def test_the_exact_world_by_hand():
    assert answer_value(FIRST, SECOND, SCORES).item() == 1
    # p (4 - 1) and p (0 - 1)
    found = answer_gradient(FIRST, SECOND, SCORES).tolist()
    assert found == pytest.approx([0.75, -0.75], rel=1e-14)


def test_gae_by_hand():
    # With lambda 0 the advantage is the critic's value: 0 and 8, average 6.
    found = gae_gradient(FIRST, SECOND, SCORES, WRONG, lam=0)
    assert found.tolist() == pytest.approx([0.25 * -6, 0.75 * 2], rel=1e-14)
    # With lambda 1/2 it is half the critic's value and half the score: 2 and 4, average 3.5.
    found = gae_gradient(FIRST, SECOND, SCORES, WRONG, lam=0.5)
    assert found.tolist() == pytest.approx([0.25 * -1.5, 0.75 * 0.5], rel=1e-14)
    # Bias: what is left over the exact 0.75.
    assert gae_bias(FIRST, SECOND, SCORES, WRONG, lam=0.5).tolist() == pytest.approx(
        [-1.125, 1.125], rel=1e-14
    )


@pytest.mark.parametrize("values", [RIGHT, WRONG, tensor([-1e3, 1e3])], ids=["right", "wrong", "far off"])
@pytest.mark.parametrize("start_value", [0.0, 1.0, -50.0])
def test_with_lambda_one_no_critic_biases(values, start_value):
    found = gae_gradient(FIRST, SECOND, SCORES, values, lam=1, start_value=start_value)
    torch.testing.assert_close(found, answer_gradient(FIRST, SECOND, SCORES), rtol=1e-12, atol=0)


@pytest.mark.parametrize("lam", [0.0, 0.5, 0.95])
def test_below_one_a_wrong_critic_biases_and_a_right_one_does_not(lam):
    assert gae_bias(FIRST, SECOND, SCORES, WRONG, lam=lam).abs().max() > 0.1
    assert gae_bias(FIRST, SECOND, SCORES, RIGHT, lam=lam).abs().max() < 1e-14
    # An error that is the same everywhere drops out.
    assert gae_bias(FIRST, SECOND, SCORES, RIGHT + 5, lam=lam).abs().max() < 1e-14


def test_variance_by_hand():
    # Lambda 1, start value 1: advantages 1, 5, 0, -4 at probabilities 2, 2, 9, 3 sixteenths. The score
    # function has two components, 3/4 and -3/4 after the first token, -1/4 and 1/4 after the second: squares
    # 9/8 and 1/8.
    squares = (1 * 2 + 25 * 2) * 9 / 8 / 16 + (16 * 3) / 8 / 16
    found = gae_variance(FIRST, SECOND, SCORES, RIGHT, lam=1, start_value=1.0)
    assert found.item() == pytest.approx(squares - 2 * 0.75**2, rel=1e-14)


def test_with_a_right_critic_a_smaller_lambda_is_quieter():
    found = [
        gae_variance(FIRST, SECOND, SCORES, RIGHT, lam=lam, start_value=1.0).item() for lam in (0, 0.5, 1)
    ]
    assert found[0] < found[1] < found[2]


def test_gradient_and_variance_are_those_of_samples():
    # 20 000 answers, so the estimates are good to a few percent.
    torch.manual_seed(0)
    first = torch.multinomial(FIRST, 20000, replacement=True)
    second = torch.multinomial(SECOND[first], 1).squeeze(-1)
    A = 0.3 * SCORES[first, second] + 0.7 * WRONG[first] - 1.5
    estimates = A.unsqueeze(-1) * (torch.nn.functional.one_hot(first, 2) - FIRST)
    options = {"lam": 0.3, "start_value": 1.5}
    mean = gae_gradient(FIRST, SECOND, SCORES, WRONG, **options)
    torch.testing.assert_close(estimates.mean(0), mean, rtol=0.05, atol=0)
    variance = gae_variance(FIRST, SECOND, SCORES, WRONG, **options)
    torch.testing.assert_close(estimates.var(0).sum(), variance, rtol=0.05, atol=0)


CALLS = {
    "value": lambda first, second: answer_value(first, second, SCORES),
    "gradient": lambda first, second: answer_gradient(first, second, SCORES),
    "gae": lambda first, second: gae_gradient(first, second, SCORES, RIGHT, lam=1.0),
    "variance": lambda first, second: gae_variance(first, second, SCORES, RIGHT, lam=1.0),
    "bias": lambda first, second: gae_bias(first, second, SCORES, RIGHT, lam=1.0),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (FIRST, tensor([[0.5, 0.5], [0.5, 0.25]]), "second_probs must sum to 1, got [0.5, 0.25] with sum 0.75"),
        (FIRST, tensor([[1.0, 0.0], [0.5, 0.5]]), "second_probs must all be above 0, got [1.0, 0.0]; leave "
         "impossible actions out"),
        (tensor([0.5, 0.25]), SECOND, "first_probs must sum to 1, got [0.5, 0.25] with sum 0.75"),
    ],
)  # fmt: skip
def test_text_of_errors(name, first, second, text):
    with pytest.raises(ValueError) as raised:
        CALLS[name](first, second)
    assert str(raised.value) == text


@pytest.mark.parametrize("shape", [(2,), (3, 2), (2, 1)])
def test_text_of_errors_of_shapes(shape):
    with pytest.raises(ValueError) as raised:
        answer_value(FIRST, torch.full(shape, 0.5), torch.ones(shape))
    assert str(raised.value) == (
        "second_probs must have the shape [n, m] with n as in first_probs and m at least 2, got "
        f"{list(shape)} and [2]; give one row for each first token"
    )


def test_text_of_other_errors():
    for call, kind, text in [
        (lambda: answer_value(FIRST, SECOND, SCORES[0]), ValueError, "second_probs and scores must have the same "
         "shape, got [2, 2] and [2]; nothing is broadcast: expand or index one of them first"),
        (lambda: gae_bias(FIRST, SECOND, SCORES, RIGHT[:1], lam=1.0), ValueError, "first_probs and values must have "
         "the same shape, got [2] and [1]; nothing is broadcast: expand or index one of them first"),
        (lambda: gae_bias(FIRST, SECOND, SCORES, RIGHT, lam=1.5), ValueError, "lam must lie between 0 and 1, got 1.5"),
        (lambda: gae_gradient(FIRST, SECOND, SCORES, RIGHT, lam=1.0, start_value=math.inf), ValueError,
         "start_value must be finite, got inf"),
        (lambda: gae_variance(FIRST, SECOND, SCORES, RIGHT, lam=1.0, start_value=True), TypeError,
         "start_value must be a plain number, got bool; write a float or an int"),
    ]:  # fmt: skip
        with pytest.raises(kind) as raised:
            call()
        assert str(raised.value) == text
