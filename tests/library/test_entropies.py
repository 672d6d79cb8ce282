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


def test_the_distance_of_two_logits_may_overflow(device):
    # Both are float32, their distance is not: no probability is left, and no NaN.
    logits = tensor([3e38, -3e38], device, torch.float32)
    value = entropy(logits)
    value.backward()
    assert (value.item(), logits.grad.tolist()) == (0, [0, 0])


def test_temperature_of_the_entropy_by_hand(device):
    # Half of log 4 is log 2: probabilities 2/3 and 1/3.
    logits = tensor([math.log(4), 0.0], device)
    value = entropy(logits, temperature=2)
    expected = math.log(3) - 2 / 3 * math.log(2)
    assert value.item() == pytest.approx(expected, rel=1e-15)
    value.backward()
    # -p (log p + H) / 2: 2/3 log 2 - log 3 + H is 0, so log p + H is 1/3 log 2 for the first.
    slope = -2 / 3 * math.log(2) / 3 / 2
    assert logits.grad.tolist() == pytest.approx([slope, -slope], rel=1e-14)


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


def test_temperature_by_hand(device):
    # Half of log 4 is log 2: probabilities 2/3 and 1/3.
    logits = tensor([math.log(4), 0.0], device)
    value = token_logprobs(logits, tensor(0, device, torch.int64), temperature=2)
    assert value.item() == pytest.approx(math.log(2 / 3), rel=1e-15)
    value.backward()
    # (1 - 2/3) / 2 and -1/3 / 2.
    assert logits.grad.tolist() == pytest.approx([1 / 6, -1 / 6], rel=1e-14)


def test_the_largest_temperature_finds_everything_equally_likely(device):
    logits = tensor([3.0, -2.0, 0.5], device)
    assert entropy(logits, temperature=1e12).item() == pytest.approx(math.log(3), rel=1e-12)
    assert token_logprobs(logits, tensor(1, device, torch.int64), temperature=1e12).item() == pytest.approx(
        -math.log(3), rel=1e-11
    )


def test_the_smallest_temperature_finds_one_token_certain(device):
    logits = tensor([3.0, -2.0, 0.5], device)
    assert entropy(logits, temperature=1e-3).item() == 0
    assert token_logprobs(logits, tensor(0, device, torch.int64), temperature=1e-3).item() == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_divided_in_float32(dtype, device):
    # 1000 / 3 is no number of either type.
    logits = tensor([1000.0, 0.0], device, dtype)
    expected = torch.log_softmax(logits.detach().float() / 3, -1)[1].item()
    assert token_logprobs(logits, tensor(1, device, torch.int64), temperature=3).item() == expected


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_in_half_precision_the_error_is_that_of_float32(dtype, device):
    generator = torch.Generator().manual_seed(5)
    logits = (torch.randn(64, 1025, generator=generator) * 4).to(device, dtype)
    tokens = torch.randint(1025, (64,), generator=generator).to(device)
    exact = torch.log_softmax(logits.double(), -1)
    picked, undecided = exact.gather(-1, tokens[:, None])[:, 0], -(exact.exp() * exact).sum(-1)
    plain = torch.log_softmax(logits.float(), -1)

    def error(found, expected):
        return (found.double() - expected).abs().max()

    plain_picked, plain_undecided = plain.gather(-1, tokens[:, None])[:, 0], -(plain.exp() * plain).sum(-1)
    assert error(token_logprobs(logits, tokens), picked) <= 2 * error(plain_picked, picked)
    assert error(entropy(logits), undecided) <= 2 * error(plain_undecided, undecided)


def test_ignored_tokens_do_not_count(device):
    logits = tensor([[0.0, 0.0], [math.nan, 0.0], [0.0, 0.0]], device)
    found = token_logprobs(logits, tensor([1, -100, 0], device, torch.int64), ignore_index=-100)
    assert found.tolist() == pytest.approx([-math.log(2), 0, -math.log(2)], rel=1e-15)
    found.sum().backward()
    assert logits.grad.tolist() == [[-0.5, 0.5], [0, 0], [0.5, -0.5]]


def test_an_ignored_token_may_be_one_of_the_vocabulary(device):
    found = token_logprobs(tensor(LOGITS, device), tensor([0, 1, 0], device, torch.int64), ignore_index=0)
    assert found.tolist() == pytest.approx([0, -math.log(2), 0], rel=1e-15)


def test_what_is_ignored_and_what_is_masked_do_not_count(device):
    mask = torch.tensor([True, True, False], device=device)
    tokens = tensor([1, -1, 1], device, torch.int64)
    found = token_logprobs(tensor(LOGITS, device), tokens, ignore_index=-1, mask=mask)
    assert found.tolist() == pytest.approx([-math.log(2), 0, 0], rel=1e-15)


def test_where_all_are_ignored_all_is_zero(device):
    logits = tensor(LOGITS, device)
    found = token_logprobs(logits, tensor([-100] * 3, device, torch.int64), ignore_index=-100)
    found.sum().backward()
    assert (found.tolist(), logits.grad.tolist()) == ([0, 0, 0], [[0, 0]] * 3)


@pytest.mark.parametrize(
    ("name", "value", "kind", "text"),
    [
        ("temperature", 0, ValueError, "temperature must be finite and above 0, got 0"),
        ("temperature", -1.0, ValueError, "temperature must be finite and above 0, got -1.0"),
        ("temperature", INF, ValueError, "temperature must be finite and above 0, got inf"),
        ("temperature", math.nan, ValueError, "temperature must be finite and above 0, got nan"),
        ("ignore_index", -100.0, ValueError, "ignore_index must be an int, got -100.0"),
        (
            "ignore_index",
            "pad",
            TypeError,
            "ignore_index must be a plain number, got str; write a float or an int",
        ),
    ],
)
def test_errors_of_the_hyper_parameters(name, value, kind, text):
    calls = [
        lambda **options: token_logprobs(torch.zeros(3, 2), torch.zeros(3, dtype=torch.int64), **options)
    ]
    if name == "temperature":
        calls.append(lambda **options: entropy(torch.zeros(3, 2), **options))
    for call in calls:
        with pytest.raises(kind) as raised:
            call(**{name: value})
        assert str(raised.value) == text


OUT = "leave padding out with mask or ignore_index"
LOGITS, TOKENS = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], [1, 2, -100]


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ([1, 2, 0], f"tokens must lie between 0 and 1, got 2 at index [1]; {OUT}"),
        ([0, -7, 9], f"tokens must lie between 0 and 1, got -7 at index [1]; {OUT}"),
        ([1, 0, -1], f"tokens must lie between 0 and 1, got -1 at index [2]; {OUT}"),
        ([-100, 0, -1], f"tokens must lie between 0 and 1, got -100 at index [0]; {OUT}"),
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
