"""The policy loss from hidden states: memory, half precision, autocast, compiled graphs and errors."""

import pytest
import torch
from torch.nn.functional import linear

import ppo_core.hidden_losses
from ppo_core import hidden_policy_loss

from .hidden_batches import LEAVES, batch, close, plain, values_and_gradients
from .ordinary import calls_of
from .sizes import Sizes

MEAN = {"epsilon": 0.2, "mode": "token_mean"}
COMPILED = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


# --- memory


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_logits_are_never_all_held(dtype, monkeypatch, device):
    tokens, vocabulary = 600, 500
    monkeypatch.setattr(ppo_core.hidden_losses, "CHUNK_ELEMENTS", 10_000)
    inputs = batch((20, 30), device, dtype, vocabulary=vocabulary, width=8)
    with Sizes() as sizes:
        values_and_gradients(inputs, **MEAN)
    assert max(sizes.found) <= 10_000 < tokens * vocabulary / 20
    with Sizes() as sizes:
        values_and_gradients(inputs, plain, **MEAN)
    assert max(sizes.found) == tokens * vocabulary


def test_a_chunk_of_logits_is_64_mib(monkeypatch):
    # On a device without data: 2**14 tokens over a vocabulary of 2**11 have 128 MiB of logits in float32.
    numbers = calls_of(monkeypatch, ppo_core.hidden_losses, "chunks", keep=len)
    inputs = {
        "hidden": torch.empty(2**14, 1),
        "weight": torch.empty(2**11, 1),
        "old_logprobs": torch.empty(2**14),
    }
    inputs |= {
        "advantages": torch.empty(2**14),
        "mask": torch.ones(2**14).bool(),
        "tokens": torch.ones(2**14).long(),
    }
    hidden_policy_loss(**{name: x.to("meta") for name, x in inputs.items()}, **MEAN)
    assert numbers == [2]


def test_a_token_that_does_not_count_may_be_any_number(device):
    inputs = batch((2, 3), device)
    expected = values_and_gradients(inputs, **MEAN)
    for number in (7, 8, -100):
        inputs["tokens"] = torch.where(inputs["mask"], inputs["tokens"], number)
        assert not inputs["mask"].all()
        close(values_and_gradients(inputs, **MEAN), expected)


def test_what_is_kept_for_the_backward_pass_is_the_gradients(device):
    inputs = batch((2, 3), device, vocabulary=500)
    kept = []

    def pack(x):
        kept.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        hidden_policy_loss(**inputs, **MEAN)
    given = {x.untyped_storage().data_ptr() for x in inputs.values()}
    found = sorted(x.numel() for x in kept if x.untyped_storage().data_ptr() not in given)
    # Beside them there is what makes the slopes of the 6 tokens, for the time of the call.
    assert [size for size in found if size > 6] == sorted(inputs[name].numel() for name in LEAVES)


# --- precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_in_half_precision_the_error_is_that_of_float32(dtype, device):
    inputs = batch((8, 8), device, dtype, vocabulary=257, width=64)
    with torch.no_grad():
        inputs["weight"] /= 4
        inputs["old_logprobs"] = plain(**inputs, **MEAN)[1].to(dtype)

    def cast(dtype):
        return {
            name: x.detach().to(dtype).requires_grad_(name in LEAVES) if x.is_floating_point() else x
            for name, x in inputs.items()
        }

    exact = values_and_gradients(cast(torch.float64), plain, **MEAN, epsilon_high=1.5)
    single = values_and_gradients(cast(torch.float32), plain, **MEAN, epsilon_high=1.5)
    found = values_and_gradients(inputs, **MEAN, epsilon_high=1.5)
    assert [x.dtype for x in found] == [torch.float32, torch.float32, dtype, dtype, dtype]

    def error(x, reference):
        return (x.double() - reference).abs().max()

    # A sum of 64 losses of size 1, of which most cancel.
    assert error(found[0], exact[0]) <= 1e-6
    assert error(found[1], exact[1]) <= 2 * error(single[1], exact[1])
    # The gradients return in half precision: rounding the exact ones to it is the least error there is.
    for ours, right in zip(found[2:], exact[2:], strict=True):
        assert error(ours, right) <= 1.01 * error(right.to(dtype), right)


def two_tokens(dtype, device, places=512):
    """A batch of ratios 1 and advantages -1: the slope of each loss is 1, and both tokens have the probability 1/2."""
    return {
        "hidden": torch.ones(places, 1, dtype=dtype, device=device, requires_grad=True),
        "weight": torch.zeros(2, 1, dtype=dtype, device=device, requires_grad=True),
        "tokens": torch.zeros(places, dtype=torch.int64, device=device),
        "old_logprobs": torch.full((places,), 0.5, device=device).log(),
        "advantages": torch.full((places,), -1.0, device=device),
        "mask": torch.ones(places, dtype=torch.bool, device=device),
    }


def test_the_gradient_of_the_weight_is_summed_in_float32(monkeypatch, device):
    # Each token adds 1/2 to the first row. Summed in bfloat16 it would stay at 128 = 128 + 1/2.
    monkeypatch.setattr(ppo_core.hidden_losses, "CHUNK_ELEMENTS", 2)
    inputs = two_tokens(torch.bfloat16, device)
    hidden_policy_loss(**inputs, epsilon=0.2, mode="constant", denominator=1).loss.backward()
    assert inputs["weight"].grad.tolist() == [[256], [-256]]


def test_a_loss_scale_saves_small_gradients(device):
    # Each token adds 2^-40 / 2, which float16 does not have; times the scale it is 1/2 again.
    inputs = two_tokens(torch.float16, device)
    loss = hidden_policy_loss(**inputs, epsilon=0.2, mode="constant", denominator=2**40).loss
    (loss * 2**40).backward()
    assert inputs["weight"].grad.tolist() == [[256], [-256]]


@pytest.mark.parametrize(
    ("types", "result"),
    [
        ((torch.bfloat16, torch.float32, torch.float32), torch.float32),
        ((torch.float16, torch.bfloat16, torch.bfloat16), torch.float32),
        ((torch.float64, torch.float32, torch.bfloat16), torch.float64),
        ((torch.bfloat16, torch.float16, torch.float64), torch.float64),
    ],
    ids=str,
)
def test_types_may_be_mixed(types, result, device):
    inputs = batch((5,), device, result)
    rounded = {name: inputs[name].detach().to(t) for name, t in zip(LEAVES, types, strict=True)}
    mixed = inputs | {name: x.clone().requires_grad_() for name, x in rounded.items()}
    wide = inputs | {name: x.to(result).requires_grad_() for name, x in rounded.items()}
    found, expected = values_and_gradients(mixed, **MEAN), values_and_gradients(wide, **MEAN)
    assert [x.dtype for x in found] == [result, result, *types]
    torch.testing.assert_close(
        found, [x.to(y.dtype) for x, y in zip(expected, found, strict=True)], rtol=0, atol=0
    )


def test_old_log_probabilities_and_advantages_may_be_wider(device):
    inputs = batch((2, 3), device)
    narrow = inputs | {name: inputs[name].detach().float().requires_grad_() for name in LEAVES}
    found = values_and_gradients(narrow, **MEAN)
    assert [x.dtype for x in found] == [torch.float64, *[torch.float32] * 4]
    expected = values_and_gradients(narrow, plain, **MEAN)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_autocast_rounds_the_arguments_as_a_linear_layer_does(dtype, half, device):
    inputs = batch((5,), device, dtype)
    # torch leaves float64 as it is.
    rounded = inputs | {
        name: inputs[name].detach().to(half).to(torch.float32).requires_grad_() for name in LEAVES
    }
    expected = values_and_gradients(inputs if dtype == torch.float64 else rounded, **MEAN)
    with torch.autocast(device, dtype=half):
        kind = linear(inputs["hidden"], inputs["weight"]).dtype
        inside = values_and_gradients(inputs, **MEAN)
        outside = hidden_policy_loss(**inputs, **MEAN)
    assert kind == (dtype if dtype == torch.float64 else half)
    # The gradient may as well be taken after the context has ended.
    gradients = torch.autograd.grad(-3.0 * outside.loss, [inputs[name] for name in LEAVES])
    for found in (inside, [outside.loss.detach(), outside.logprobs, *gradients]):
        assert [x.dtype for x in found[2:]] == [dtype] * 3
        torch.testing.assert_close(
            found, [x.to(y.dtype) for x, y in zip(expected, found, strict=True)], rtol=0, atol=0
        )


# --- compiled, and without data


def compiled(**options):
    return torch.compile(hidden_policy_loss, fullgraph=True, backend="aot_eager", **options)


@COMPILED
def test_compiles_into_one_graph(monkeypatch, device):
    monkeypatch.setattr(ppo_core.hidden_losses, "CHUNK_ELEMENTS", 4 * 7)
    inputs = batch(device=device)
    options = {**MEAN, "temperature": 0.7, "dual_clip": 1.5}
    close(
        values_and_gradients(inputs, compiled(), **options),
        values_and_gradients(inputs, plain, **options),
    )


@COMPILED
@pytest.mark.parametrize("dynamic", [None, pytest.param(True, marks=pytest.mark.slow)])
def test_compiled_it_takes_other_sizes(dynamic, monkeypatch, device):
    monkeypatch.setattr(ppo_core.hidden_losses, "CHUNK_ELEMENTS", 20)
    call = compiled(dynamic=dynamic)
    for tokens, vocabulary in ((2, 7), (3, 8)):
        inputs = batch((tokens,), device, vocabulary=vocabulary)
        close(values_and_gradients(inputs, call, **MEAN), values_and_gradients(inputs, plain, **MEAN))


@COMPILED
def test_compiled_under_autocast(device):
    inputs = batch((3,), device, torch.float32)
    with torch.autocast(device, dtype=torch.bfloat16):
        found, expected = (
            values_and_gradients(inputs, call, **MEAN) for call in (compiled(), hidden_policy_loss)
        )
    close(found, expected, 1e-6)


@COMPILED
def test_a_token_outside_the_vocabulary_makes_the_loss_nan_in_a_compiled_graph(device):
    inputs = batch((4,), device)
    inputs["mask"] = torch.tensor([True, True, True, False], device=device)
    inputs["tokens"] = torch.tensor([1, 7, 2, 7], device=device)
    loss, logprobs, *gradients = values_and_gradients(inputs, compiled(), **MEAN)
    assert loss.isnan()
    assert logprobs.isnan().tolist() == [False, True, False, False]
    # The gradient is that of the other tokens, as it is of a loss that was made in steps.
    inputs["mask"][1] = False
    expected = values_and_gradients(inputs, plain, epsilon=0.2, mode="constant", denominator=3)
    close(gradients, expected[2:])


@COMPILED
def test_a_denominator_out_of_range_makes_the_loss_nan_in_a_compiled_graph(device):
    inputs = batch((3,), device)
    denominator = torch.tensor(0.0, dtype=torch.float64, device=device)
    assert compiled()(**inputs, **MEAN, denominator=denominator).loss.isnan()


def test_nothing_looks_at_the_data():
    # Tensors on the meta device have no data: a look would raise.
    inputs = {name: x.detach().to("meta").requires_grad_(name in LEAVES) for name, x in batch().items()}
    loss, logprobs, *gradients = values_and_gradients(inputs, **MEAN)
    assert loss.shape == () and logprobs.shape == (2, 3)
    assert [x.shape for x in gradients] == [inputs[name].shape for name in LEAVES]


# --- errors


HIDDEN, WEIGHT, TOKENS = torch.zeros(2, 3, 4), torch.zeros(5, 4), torch.zeros(2, 3, dtype=torch.int64)
NUMBERS = torch.zeros(2, 3)
RIGHT = {
    "hidden": HIDDEN,
    "weight": WEIGHT,
    "tokens": TOKENS,
    "old_logprobs": NUMBERS,
    "advantages": NUMBERS,
    "mask": TOKENS.bool(),
    "bias": torch.zeros(5),
    **MEAN,
}
FIT = "must have the shape of hidden without its last dimension, the width, got"
SHAPE = "nothing is broadcast: expand or index one of them first"


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (
            {"hidden": HIDDEN.long()},
            TypeError,
            "hidden must be a floating-point tensor, got torch.int64; write hidden.float()",
        ),
        (
            {"tokens": TOKENS.int()},
            TypeError,
            "tokens must be an int64 tensor, got torch.int32; write tokens.long()",
        ),
        (
            {"old_logprobs": TOKENS},
            TypeError,
            "old_logprobs must be a floating-point tensor, got torch.int64; write old_logprobs.float()",
        ),
        (
            {"advantages": TOKENS},
            TypeError,
            "advantages must be a floating-point tensor, got torch.int64; write advantages.float()",
        ),
        (
            {"mask": TOKENS},
            TypeError,
            "mask must be a bool tensor (True: the token counts), got torch.int64; write mask.bool()",
        ),
        (
            {"sequence_ids": NUMBERS},
            TypeError,
            "sequence_ids must be an int64 tensor, got torch.float32; write sequence_ids.long()",
        ),
        (
            {"bias": torch.zeros(1)},
            ValueError,
            "bias must have the shape [V] where weight has [V, D], got [1] and [5, 4]",
        ),
        *(
            ({name: RIGHT[name][:, :1]}, ValueError, f"{name} {FIT} [2, 1] and [2, 3, 4]; {SHAPE}")
            for name in ("tokens", "old_logprobs", "advantages", "mask")
        ),
        (
            {"sequence_ids": TOKENS[:1]},
            ValueError,
            f"tokens and sequence_ids must have the same shape, got [2, 3] and [1, 3]; {SHAPE}",
        ),
        (
            {name: RIGHT[name][0, 0] for name in ("hidden", "tokens", "old_logprobs", "advantages", "mask")},
            ValueError,
            "tokens must have at least one dimension, the tokens, got []; write tokens.reshape(1)",
        ),
        (
            {"tokens": TOKENS + 5, "mask": ~TOKENS.bool()},
            ValueError,
            "tokens must lie between 0 and 4, got 5 at index [0, 0]; leave padding out with mask or ignore_index",
        ),
        ({"temperature": 0}, ValueError, "temperature must be finite and above 0, got 0"),
        (
            {"dual_clip": 1},
            ValueError,
            "dual_clip must be finite and above 1, got 1; it caps the ratio of bad tokens, which begins at 1; 3 is "
            "usual",
        ),
        ({"epsilon_high": 0}, ValueError, "epsilon_high must be finite and above 0, got 0"),
        (
            {"mode": "constant"},
            ValueError,
            'mode "constant" needs a denominator, for example denominator=batch_size * max_tokens',
        ),
        ({"denominator": 0}, ValueError, "denominator must be finite and above 0, got 0"),
    ],
)
def test_errors(change, kind, text):
    with pytest.raises(kind) as raised:
        hidden_policy_loss(**RIGHT | change)
    assert str(raised.value) == text
