import math

import pytest
import torch

from ppo_core import entropy, token_logprobs

INF = math.inf


def tensor(x, device, dtype=torch.float64):
    return torch.tensor(x, dtype=dtype, device=device, requires_grad=dtype.is_floating_point)


# --- entropy


@pytest.mark.parametrize("size", [1, 2, 1000])
@pytest.mark.parametrize("shift", [0.0, -50.0, 1e4])
def test_an_even_policy_has_the_logarithm_of_its_size(size, shift, device):
    found = entropy(torch.full((size,), shift, dtype=torch.float64, device=device))
    assert found.item() == pytest.approx(math.log(size), abs=1e-12)


def test_entropy_by_hand(device):
    # Probabilities 1/2, 1/4, 1/4: log 2 / 2 + 2 log 4 / 4 = 3/2 log 2.
    logits = tensor([math.log(2), 0.0, 0.0], device)
    value = entropy(logits)
    assert value.item() == pytest.approx(1.5 * math.log(2), rel=1e-15)
    value.backward()
    # -p (log p + H): at 1/2, -(log 2) / 4; at 1/4, (log 2) / 8.
    expected = [-math.log(2) / 4, math.log(2) / 8, math.log(2) / 8]
    assert logits.grad.tolist() == pytest.approx(expected, rel=1e-14)


def test_ruled_out_tokens_add_nothing(device):
    logits = tensor([[0.0, -INF, 0.0, -INF], [-INF, 3.0, -INF, -INF]], device)
    value = entropy(logits)
    assert value.tolist() == pytest.approx([math.log(2), 0], abs=1e-15)
    value.sum().backward()
    assert logits.grad.tolist() == [pytest.approx([0] * 4, abs=1e-15)] * 2


def test_a_ruled_out_token_leaves_the_slope_of_the_others(device):
    logits = tensor([math.log(2), -INF, 0.0, 0.0], device)
    entropy(logits).backward()
    expected = [-math.log(2) / 4, 0, math.log(2) / 8, math.log(2) / 8]
    assert logits.grad.tolist() == pytest.approx(expected, rel=1e-14)


def test_a_certain_policy_has_none_however_certain(device):
    logits = tensor([1e5, 0.0, 0.0], device)
    value = entropy(logits)
    value.backward()
    assert (value.item(), logits.grad.tolist()) == (0, [0, 0, 0])


def test_where_everything_is_ruled_out_there_is_no_entropy(device):
    assert entropy(tensor([-INF, -INF], device)).isnan()


# --- log-probabilities


def test_logprobs_by_hand(device):
    logits = tensor([[math.log(2), 0.0, 0.0], [5.0, 5.0, -INF]], device)
    value = token_logprobs(logits, tensor([0, 1], device, torch.int64))
    assert value.tolist() == pytest.approx([-math.log(2), -math.log(2)], rel=1e-14)
    value.sum().backward()
    # One at the token, less the probabilities.
    expected = [[1 / 2, -1 / 4, -1 / 4], [-1 / 2, 1 / 2, 0]]
    assert logits.grad.tolist() == [pytest.approx(row, rel=1e-14, abs=1e-16) for row in expected]


def test_a_ruled_out_token_is_impossible(device):
    assert token_logprobs(tensor([0.0, -INF], device), tensor(1, device, torch.int64)).item() == -INF


LOGITS, TOKENS = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [1, 2, -100]


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ([1, 2, 0], "tokens must lie between 0 and 1, got 2 at index [1]; leave padding out with the mask"),
        ([0, -7, 9], "tokens must lie between 0 and 1, got -7 at index [1]; leave padding out with the mask"),
        ([1, 0, -1], "tokens must lie between 0 and 1, got -1 at index [2]; leave padding out with the mask"),
    ],
)
def test_a_token_outside_the_vocabulary_is_an_error_where_looking_is_free(tokens, text, device):
    logits, tokens = tensor(LOGITS, device), tensor(tokens, device, torch.int64)
    if device == "cpu":
        with pytest.raises(ValueError) as raised:
            token_logprobs(logits, tokens)
        assert str(raised.value) == text
    else:
        assert token_logprobs(logits, tokens).isnan().sum() >= 1


def test_a_token_outside_the_vocabulary_is_nan_in_a_compiled_graph(device):
    call = torch.compile(token_logprobs, fullgraph=True, backend="aot_eager")
    found = call(tensor(LOGITS, device), tensor(TOKENS, device, torch.int64))
    assert found.isnan().tolist() == [False, True, True]
    assert found[0].item() == pytest.approx(-math.log(2), rel=1e-15)


def test_under_the_mask_a_token_may_be_any_number(device):
    mask = torch.tensor([True, False, False], device=device)
    found = token_logprobs(tensor(LOGITS, device), tensor(TOKENS, device, torch.int64), mask=mask)
    assert found.tolist() == pytest.approx([-math.log(2), 0, 0], rel=1e-15)
