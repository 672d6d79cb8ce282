import math

import pytest
import torch

from ppo_core import masked_weights, policy_loss, truncated_weights

from .packed import agrees

LEVELS = ("token", "sequence")
WINDOW = {"min_weight": 0.5, "max_weight": 2.5}
# Weights 3/2, 4, 1/4 and, not counted, 7; the product of the counted is 3/2.
RATIOS = [[1.5, 4.0, 7.0, 0.25]]
MASK = [[1, 1, 0, 1]]


def arguments(ratios, mask, device, dtype=torch.float64):
    ratios = torch.tensor(ratios, dtype=torch.float64, device=device)
    sampler = torch.full_like(ratios, -2.0)
    return (sampler + ratios.log()).to(dtype), sampler.to(dtype), torch.tensor(mask, device=device).bool()


def close(x):
    return pytest.approx(x, rel=1e-14)


def test_tokens_by_hand(device):
    tensors = arguments(RATIOS, MASK, device)
    assert truncated_weights(*tensors, level="token", max_weight=2)[0].tolist() == close([1.5, 2, 0, 0.25])
    assert masked_weights(*tensors, level="token", **WINDOW)[0].tolist() == close([1.5, 0, 0, 0])


def test_sequences_by_hand(device):
    # Row 2: the product 8 of 2 and 4; row 3: 1/4 of one token; row 4: nothing counts.
    ratios = [*RATIOS, [2.0, 4.0, 1.0, 9.0], [0.25, 9.0, 9.0, 9.0], [9.0] * 4]
    tensors = arguments(ratios, [*MASK, [1, 1, 1, 0], [1, 0, 0, 0], [0] * 4], device)
    capped = truncated_weights(*tensors, level="sequence", max_weight=2).flatten().tolist()
    assert capped == close([1.5, 1.5, 0, 1.5, 2, 2, 2, 0, 0.25, 0, 0, 0, 0, 0, 0, 0])
    kept = masked_weights(*tensors, level="sequence", **WINDOW).flatten().tolist()
    assert kept == close([1.5, 1.5, 0, 1.5] + [0] * 12)


def test_a_packed_row_by_hand(device):
    # Products 6 of 2 and 3, 1/2 of one token, 9 of 9; the first and the last sequence bear one number.
    tensors = arguments([[2.0, 3.0, 5.0, 0.5, 9.0]], [[1, 1, 0, 1, 1]], device)
    ids = torch.tensor([[4, 4, 4, 2, 4]], device=device)
    found = truncated_weights(*tensors, level="sequence", max_weight=7, sequence_ids=ids)
    assert found[0].tolist() == close([6, 6, 0, 0.5, 7])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", LEVELS)
def test_packed_equals_padded(level, seed, device):
    names = ("logprobs", "sampler_logprobs")
    assert agrees(truncated_weights, names, seed, device, level=level, max_weight=1.5) > 4
    assert agrees(masked_weights, names, seed, device, level=level, **WINDOW) > 4


@pytest.mark.parametrize("function", [truncated_weights, masked_weights])
def test_tokens_need_no_numbers_of_sequences(function, device):
    tensors = arguments(RATIOS, MASK, device)
    bounds = WINDOW if function is masked_weights else {"max_weight": 2.0}
    ids = torch.tensor([[0, 0, 1, 1]], device=device)
    found = function(*tensors, level="token", sequence_ids=ids, **bounds)
    assert torch.equal(found, function(*tensors, level="token", **bounds))
    # Nor a dimension for the tokens.
    one, half = torch.tensor(-1.0, device=device), torch.tensor(-1.0 - math.log(2), device=device)
    every = torch.tensor(True, device=device)
    assert function(one, half, every, level="token", **bounds).item() == pytest.approx(2, rel=1e-6)


def test_the_ends_of_the_window_are_inside(device):
    # 0 - log 2 and back: e^(-log 2) need not be 1/2 to the last digit, so 1 stands at both ends.
    new = torch.zeros(1, 1, dtype=torch.float64, device=device)
    every = torch.ones_like(new, dtype=torch.bool)
    for window in ({"min_weight": 1, "max_weight": 2}, {"min_weight": 0.5, "max_weight": 1}):
        assert masked_weights(new, new, every, level="token", **window).item() == 1
    for window in ({"min_weight": 1.001, "max_weight": 2}, {"min_weight": 0, "max_weight": 0.999}):
        assert masked_weights(new, new, every, level="token", **window).item() == 0


def test_a_window_from_zero_keeps_small_weights(device):
    tensors = arguments([[1e-30, 0.5]], [[1, 1]], device)
    found = masked_weights(*tensors, level="token", min_weight=0, max_weight=2)
    assert found[0].tolist() == pytest.approx([1e-30, 0.5], rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("level", LEVELS)
def test_where_sampler_and_trainer_agree_the_weight_is_exactly_one(level, dtype, device):
    logprobs = torch.linspace(-30, 0, 100, device=device).to(dtype).reshape(4, 25)
    every = torch.ones_like(logprobs, dtype=torch.bool)
    assert (truncated_weights(logprobs, logprobs, every, level=level, max_weight=2) == 1).all()
    assert (masked_weights(logprobs, logprobs, every, level=level, **WINDOW) == 1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_product_that_overflows_is_capped_or_left_out(dtype, device):
    # Rows: e^(+-1000) of 1000 tokens; and a product of 1 whose first half alone would be infinite.
    up = torch.ones(1000, dtype=dtype, device=device)
    logprobs = torch.stack([up, -up, torch.cat([up[:500], -up[:500]])])
    zero, every = torch.zeros_like(logprobs), torch.ones_like(logprobs, dtype=torch.bool)
    capped = truncated_weights(logprobs, zero, every, level="sequence", max_weight=2)
    assert capped[:, 0].tolist() == [2, 0, 1]
    kept = masked_weights(logprobs, zero, every, level="sequence", **WINDOW)
    assert kept[:, 0].tolist() == [0, 0, 1]


@pytest.mark.parametrize("level", LEVELS)
def test_an_infinite_weight_is_capped_or_left_out(level, device):
    # The sampler gave the token the log-probability -inf: it says that the token was impossible.
    tensors = arguments([[math.inf, 1.0]], [[1, 1]], device)
    assert truncated_weights(*tensors, level=level, max_weight=2)[0, 0] == 2
    assert masked_weights(*tensors, level=level, **WINDOW)[0, 0] == 0


@pytest.mark.parametrize("level", LEVELS)
def test_a_nan_is_neither_capped_nor_left_out(level, device):
    tensors = arguments([[math.nan, 1.0], [1.0, 1.0]], [[1, 1], [1, 1]], device)
    expected = [[True, level == "sequence"], [False, False]]
    assert truncated_weights(*tensors, level=level, max_weight=2).isnan().tolist() == expected
    assert masked_weights(*tensors, level=level, **WINDOW).isnan().tolist() == expected


def test_the_weights_scale_loss_and_gradient_and_get_none(device):
    new, sampler, mask = arguments([[1.5, 0.25, 7.0]], [[1, 1, 0]], device)
    new.requires_grad_()
    A = torch.tensor([[2.0, -4.0, 1.0]], dtype=torch.float64, device=device)
    weights = truncated_weights(new, sampler, mask, level="token", max_weight=2)
    loss = policy_loss(new, new.detach(), A, epsilon=0.2, mask=mask) * weights
    assert loss[0].tolist() == close([-3, 1, 0])
    (gradient,) = torch.autograd.grad(loss.sum(), new)
    assert gradient[0].tolist() == close([-3, 1, 0])


GOOD = {
    "logprobs": torch.ones(2, 3),
    "sampler_logprobs": torch.ones(2, 3),
    "mask": torch.ones(2, 3, dtype=torch.bool),
    "level": "sequence",
    "max_weight": 2.0,
}
SHAPE = "nothing is broadcast: expand or index one of them first"
ERRORS = [
    ({"sampler_logprobs": torch.ones(3)}, ValueError,
     f"logprobs and sampler_logprobs must have the same shape, got [2, 3] and [3]; {SHAPE}"),
    ({"sampler_logprobs": [1.0]}, TypeError,
     "sampler_logprobs must be a torch.Tensor, got list; write torch.tensor(sampler_logprobs)"),
    ({"mask": torch.ones(3, dtype=torch.bool)}, ValueError,
     f"logprobs and mask must have the same shape, got [2, 3] and [3]; {SHAPE}"),
    ({"sequence_ids": torch.zeros(3, dtype=torch.int64)}, ValueError,
     f"logprobs and sequence_ids must have the same shape, got [2, 3] and [3]; {SHAPE}"),
    ({"sequence_ids": torch.zeros(2, 3), "level": "token"}, TypeError,
     "sequence_ids must be an int64 tensor, got torch.float32; write sequence_ids.long()"),
    ({"level": "row"}, ValueError, "level must be one of token, sequence, got 'row'"),
    ({"level": None}, ValueError, "level must be one of token, sequence, got None"),
    ({"logprobs": torch.tensor(1.0), "sampler_logprobs": torch.tensor(1.0), "mask": torch.tensor(True)},
     ValueError, "logprobs must have at least one dimension, the tokens, got []; write logprobs.reshape(1)"),
    *(({"max_weight": bad}, ValueError, f"max_weight must be finite and above 0, got {bad}")
      for bad in (0, -1.0, math.inf, math.nan)),
    ({"max_weight": torch.tensor(2.0)}, TypeError,
     "max_weight must be a plain number, got Tensor; write a float or an int"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "kind", "text"), ERRORS, ids=[text for _, _, text in ERRORS])
@pytest.mark.parametrize("function", [truncated_weights, masked_weights])
def test_bad_arguments(function, change, kind, text):
    window = {"min_weight": 0.5} if function is masked_weights else {}
    with pytest.raises(kind) as raised:
        function(**{**GOOD, **window, **change})
    assert str(raised.value) == text


@pytest.mark.parametrize(
    ("bad", "kind", "text"),
    [
        *((bad, ValueError, f"min_weight must be finite and at least 0, got {bad}")
          for bad in (-0.1, math.inf, math.nan)),
        (True, TypeError, "min_weight must be a plain number, got bool; write a float or an int"),
        (2.0, ValueError, "max_weight must be above min_weight, got 2.0 and 2.0"),
        (3, ValueError, "max_weight must be above min_weight, got 2.0 and 3"),
    ],
)  # fmt: skip
def test_a_bad_lower_end(bad, kind, text):
    with pytest.raises(kind) as raised:
        masked_weights(**GOOD, min_weight=bad)
    assert str(raised.value) == text
