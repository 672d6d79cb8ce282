import math

import mpmath
import pytest
import torch

from ppo_core import log_ratio, ratio, sequence_ratio

from .packed import agrees


def tensor(x, device, **options):
    return torch.tensor(x, dtype=torch.float64, device=device, **options)


def test_by_hand(device):
    # 0.8 is 1.6 times 0.5; 0.25 is half of 0.5.
    new = torch.tensor([0.8, 0.25], dtype=torch.float64, device=device).log()
    old = torch.tensor([0.5, 0.5], dtype=torch.float64, device=device).log()
    assert ratio(new, old).tolist() == pytest.approx([1.6, 0.5], rel=1e-15)
    assert log_ratio(new, old).tolist() == pytest.approx(
        [0.47000362924573563, -0.6931471805599453], rel=1e-15
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_the_same_weights_give_exactly_one(dtype, device):
    logprobs = torch.linspace(-30, 0, 101, dtype=dtype, device=device)
    assert (ratio(logprobs, logprobs) == 1).all()
    assert (log_ratio(logprobs, logprobs) == 0).all()
    every = torch.ones_like(logprobs, dtype=torch.bool)
    assert (sequence_ratio(logprobs, logprobs, every) == 1).all()


def test_gradients_are_one_and_the_ratio(device):
    new = torch.tensor([0.8, 0.25], dtype=torch.float64, device=device).log().requires_grad_()
    old = torch.tensor([0.5, 0.5], dtype=torch.float64, device=device).log()
    (slope,) = torch.autograd.grad(log_ratio(new, old).sum(), new)
    assert slope.tolist() == [1, 1]
    (slope,) = torch.autograd.grad(ratio(new, old).sum(), new)
    assert slope.tolist() == pytest.approx([1.6, 0.5], rel=1e-15)


def test_it_overflows_where_the_docstring_says(device):
    # The largest float32 is about e^88.72.
    new = torch.tensor([88.7, 88.8], device=device)
    finite, infinite = ratio(new, torch.zeros_like(new)).tolist()
    assert math.isfinite(finite) and infinite == math.inf


def test_half_precision_inputs_keep_the_digits_of_the_ratio(device):
    # 0.0625 is exact in bfloat16; its exponential, 1.0644944589, is not: bfloat16 would give 1.0625.
    new, old = (torch.tensor([x], dtype=torch.bfloat16, device=device) for x in (-1.0, -1.0625))
    assert ratio(new, old).item() == pytest.approx(1.0644944589, rel=1e-6)


# --- the bound on the log-ratio ---


def test_a_bound_by_hand(device):
    # Beyond 2 on either side, on the edges, and inside.
    new = tensor([-1000.0, -3.0, -2.0, 0.5, 2.0, 3.0, 1000.0, math.inf], device, requires_grad=True)
    found = ratio(new, torch.zeros_like(new), log_bound=2)
    low, high, inside = math.exp(-2), math.exp(2), math.exp(0.5)
    assert found.tolist() == pytest.approx([low] * 3 + [inside] + [high] * 4, rel=1e-15)
    (slope,) = torch.autograd.grad(found.sum(), new)
    # Beyond the bound the gradient is dead; on the edge it lives.
    assert slope.tolist() == pytest.approx([0, 0, low, inside, high, 0, 0, 0], rel=1e-15)


def test_beyond_a_bound_that_overflows_the_gradient_is_dead_too(device):
    new = torch.tensor([200.0], device=device, requires_grad=True)
    found = ratio(new, torch.zeros_like(new), log_bound=100.0)
    (slope,) = torch.autograd.grad(found.sum(), new)
    assert (found.item(), slope.item()) == (math.inf, 0)


def test_a_nan_passes_the_bound(device):
    assert ratio(tensor([math.nan], device), tensor([0.0], device), log_bound=1.0).isnan().all()


@pytest.mark.parametrize("bad", [0, -1.0, math.inf, math.nan])
def test_a_bad_bound(bad):
    with pytest.raises(ValueError) as raised:
        ratio(torch.ones(1), torch.ones(1), log_bound=bad)
    assert str(raised.value) == f"log_bound must be finite and above 0, got {bad}"


def test_a_bound_is_a_plain_number():
    with pytest.raises(TypeError, match=r"^log_bound must be a plain number, got Tensor"):
        ratio(torch.ones(1), torch.ones(1), log_bound=torch.tensor(1.0))


# --- one ratio for a sequence ---


def test_a_sequence_by_hand(device):
    # Row 1: ratios 8, 1, 1 counted: the cube root of 8. Row 2: ratios 4 and 9: the root of 36. Row 3: none.
    ratios = tensor([[8.0, 1.0, 5.0, 1.0], [4.0, 9.0, 5.0, 5.0], [5.0] * 4], device)
    mask = torch.tensor([[1, 1, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0]], device=device).bool()
    new = ratios.log().requires_grad_()
    found = sequence_ratio(new, torch.zeros_like(new), mask)
    expected = [2, 2, 0, 2, 6, 6, 0, 0, 0, 0, 0, 0]
    assert found.flatten().tolist() == pytest.approx(expected, rel=1e-15)
    # Each element has the slope s / n in every counted token; with weights 1, 10, 100, 1000 on the places the
    # tokens of row 1 get (1 + 10 + 1000) 2 / 3, those of row 2 (1 + 10) 6 / 2.
    (slope,) = torch.autograd.grad((found * tensor([1.0, 10.0, 100.0, 1000.0], device)).sum(), new)
    expected = [674, 674, 0, 674, 33, 33, 0, 0, 0, 0, 0, 0]
    assert slope.flatten().tolist() == pytest.approx(expected, rel=1e-14)


def test_a_packed_row_by_hand(device):
    # Ratios 8, 1, 1 | 4, (5), 9 | (5) | 4, counted where not in brackets; the numbers need not rise, and the
    # last sequence bears the number of the first.
    ratios = tensor([8.0, 1.0, 1.0, 4.0, 5.0, 9.0, 5.0, 4.0], device)
    mask = torch.tensor([1, 1, 1, 1, 0, 1, 0, 1], device=device).bool()
    ids = torch.tensor([6, 6, 6, 3, 3, 3, 4, 6], device=device)
    new = ratios.log().requires_grad_()
    found = sequence_ratio(new, torch.zeros_like(new), mask, sequence_ids=ids)
    assert found.tolist() == pytest.approx([2, 2, 2, 6, 0, 6, 0, 4], rel=1e-15)
    (slope,) = torch.autograd.grad(found.sum(), new)
    assert slope.tolist() == pytest.approx([2, 2, 2, 6, 0, 6, 0, 4], rel=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_packed_equals_padded(seed, device):
    assert agrees(sequence_ratio, ("logprobs", "old_logprobs"), seed, device) > 4


@pytest.mark.parametrize("ids", [None, [[3, 3, 1, 2]]], ids=["a row", "packed"])
def test_a_sequence_without_a_counted_token_makes_no_nan_on_the_way_back(ids, device):
    new = tensor([[0.1, 0.2, 0.3, 0.4]], device, requires_grad=True)
    ids = None if ids is None else torch.tensor(ids, device=device)
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        found = sequence_ratio(
            new, torch.zeros_like(new), torch.zeros_like(new, dtype=torch.bool), sequence_ids=ids
        )
        (slope,) = torch.autograd.grad(found.sum(), new)
    assert found.tolist() == slope.tolist() == [[0, 0, 0, 0]]


def test_of_one_token_it_is_the_ratio(device):
    new, old = tensor([[-1.0], [-2.5]], device), tensor([[-1.5], [-0.5]], device)
    every = torch.ones(2, 1, dtype=torch.bool, device=device)
    assert torch.equal(sequence_ratio(new, old, every), ratio(new, old))


def test_a_long_sequence_does_not_overflow(device):
    # The product of 1000 ratios e is e^1000; their geometric mean is e.
    new = torch.ones(1000, device=device)
    every = torch.ones_like(new, dtype=torch.bool)
    assert sequence_ratio(new, torch.zeros_like(new), every).tolist() == pytest.approx(
        [math.e] * 1000, rel=1e-6
    )


@pytest.mark.parametrize("ids", [False, True], ids=["a row", "packed"])
def test_error_of_a_long_sequence_in_float32(ids, device):
    torch.manual_seed(0)
    new, old = torch.rand(2, 4096, device=device) * -3
    every = torch.ones_like(new, dtype=torch.bool)
    numbers = torch.arange(4096, device=device) // 2048 if ids else None
    found = sequence_ratio(new, old, every, sequence_ids=numbers)
    places = [range(2048), range(2048, 4096)] if ids else [range(4096)]
    for sequence in places:
        with mpmath.workdps(40):
            differences = [mpmath.mpf(new[t].item()) - mpmath.mpf(old[t].item()) for t in sequence]
            exact = float(mpmath.exp(mpmath.fsum(differences) / len(sequence)))
        assert found[sequence[0]].item() == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"mask": torch.ones(2, 3)}, TypeError,
         "mask must be a bool tensor (True: the token counts), got torch.float32; write mask.bool()"),
        ({"mask": torch.ones(2, dtype=torch.bool)}, ValueError,
         "logprobs and mask must have the same shape, got [2, 3] and [2]; nothing is broadcast: expand or index "
         "one of them first"),
        ({"sequence_ids": torch.zeros(3, dtype=torch.int64)}, ValueError,
         "logprobs and sequence_ids must have the same shape, got [2, 3] and [3]; nothing is broadcast: expand "
         "or index one of them first"),
        ({"sequence_ids": torch.zeros(2, 3)}, TypeError,
         "sequence_ids must be an int64 tensor, got torch.float32; write sequence_ids.long()"),
        ({"logprobs": torch.tensor(1.0), "old_logprobs": torch.tensor(1.0), "mask": torch.tensor(True)},
         ValueError, "logprobs must have at least one dimension, the tokens, got []; write logprobs.reshape(1)"),
    ],
)  # fmt: skip
def test_bad_arguments_of_a_sequence(change, kind, text):
    good = {
        "logprobs": torch.ones(2, 3),
        "old_logprobs": torch.ones(2, 3),
        "mask": torch.ones(2, 3, dtype=torch.bool),
    }
    with pytest.raises(kind) as raised:
        sequence_ratio(**{**good, **change})
    assert str(raised.value) == text
