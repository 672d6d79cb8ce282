"""Log-probabilities and entropies from hidden states: equal to the plain way, in less memory."""

import math

import pytest
import torch
from torch.nn.functional import linear

import ppo_core.hidden
import reference
from ppo_core import entropy, hidden_logprobs, token_logprobs

from .sizes import Sizes

INF = math.inf
COMPILED = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


@pytest.fixture(params=[1, 2, 5, 6, 100])
def chunk(request, monkeypatch):
    """How many tokens are taken at a time, with the vocabulary of `arguments`, 7 tokens."""
    monkeypatch.setattr(ppo_core.hidden, "CHUNK_ELEMENTS", 7 * request.param + 6)
    return request.param


def arguments(shape=(2, 3), device="cpu", dtype=torch.float64, bias=True, seed=0, vocabulary=7, width=4):
    """Draw hidden states, weight, tokens and bias; all but the tokens want a gradient."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(*size):
        return torch.randn(size, generator=generator, dtype=torch.float64).to(device, dtype).requires_grad_()

    tokens = torch.randint(vocabulary, shape, generator=generator).to(device)
    return drawn(*shape, width), drawn(vocabulary, width), tokens, drawn(vocabulary) if bias else None


def plain(hidden, weight, tokens, bias=None, *, temperature=1.0, ignore_index=None, mask=None):
    """The definition in torch's own words: every logit, its logarithmic softmax, and what is picked of it."""
    counts = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
    counts = counts & (tokens != ignore_index) if ignore_index is not None else counts
    logprobs = torch.log_softmax(linear(hidden, weight, bias) / temperature, -1)
    picked = logprobs.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    undecided = -(logprobs.exp() * logprobs).sum(-1)
    return torch.where(counts, picked, 0.0), torch.where(counts, undecided, 0.0)


def values_and_gradients(call, inputs, **options):
    """Return both results, and the gradients of a sum in which every element of both has a weight of its own."""
    leaves = [x for x in inputs if x is not None and x.is_floating_point()]
    results = torch.stack(list(call(*inputs, **options)))
    weights = torch.linspace(-1, 2, results.numel(), dtype=results.dtype, device=results.device)
    gradients = torch.autograd.grad((results * weights.reshape(results.shape)).sum(), leaves)
    return [results.detach(), *gradients]


def close(found, expected, tolerance=1e-12):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


# --- by hand


def test_by_hand(device):
    # One width, weights log 2, 0, 0: with h = 1 the probabilities are 1/2, 1/4, 1/4.
    hidden = torch.ones(1, 1, dtype=torch.float64, device=device, requires_grad=True)
    weight = torch.tensor(
        [[math.log(2)], [0.0], [0.0]], dtype=torch.float64, device=device, requires_grad=True
    )
    logprobs, entropies = hidden_logprobs(hidden, weight, torch.tensor([1], device=device))
    assert logprobs.tolist() == pytest.approx([-math.log(4)], rel=1e-15)
    assert entropies.tolist() == pytest.approx([1.5 * math.log(2)], rel=1e-15)
    # With respect to the logits: one at the token less the probabilities, -1/2, 3/4, -1/4. Into the weight
    # times h, into h times the weight.
    of_hidden, of_weight = torch.autograd.grad(logprobs, (hidden, weight), retain_graph=True)
    assert of_weight[:, 0].tolist() == pytest.approx([-1 / 2, 3 / 4, -1 / 4], rel=1e-15)
    assert of_hidden.item() == pytest.approx(-math.log(2) / 2, rel=1e-15)
    # -p (log p + H): -(log 2) / 4, (log 2) / 8, (log 2) / 8.
    of_hidden, of_weight = torch.autograd.grad(entropies, (hidden, weight))
    slopes = [-math.log(2) / 4, math.log(2) / 8, math.log(2) / 8]
    assert of_weight[:, 0].tolist() == pytest.approx(slopes, rel=1e-14)
    assert of_hidden.item() == pytest.approx(-(math.log(2) ** 2) / 4, rel=1e-14)


def test_the_results_have_names(device):
    hidden, weight, tokens, bias = arguments(device=device)
    found = hidden_logprobs(hidden, weight, tokens, bias)
    assert found._fields == ("logprobs", "entropies")
    assert found.logprobs is found[0] and found.entropies is found[1]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)], ids=str)
def test_without_a_bias_it_agrees_with_the_plain_float_twin(shape, device):
    hidden, weight, tokens, _ = arguments(shape, device, bias=False)
    found = hidden_logprobs(hidden, weight, tokens, temperature=0.6, ignore_index=3)
    expected = reference.hidden_logprobs(
        hidden.tolist(), weight.tolist(), tokens.tolist(), temperature=0.6, ignore_index=3
    )
    for ours, twin in zip(found, expected, strict=True):
        close(ours.detach(), torch.tensor(twin, dtype=torch.float64, device=device), 1e-13)


# --- the plain way, in value and gradient


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("shape", [(11,), (1, 6), (4, 3), (2, 2, 3)], ids=str)
def test_equal_to_log_softmax_of_the_logits(shape, bias, chunk, device):
    inputs = arguments(shape, device, bias=bias)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(3)).to(device) < 0.7
    for options in (
        {},
        {"temperature": 0.7},
        {"mask": mask},
        {"ignore_index": 2},
        {"temperature": 3, "ignore_index": 0, "mask": mask},
    ):
        close(
            values_and_gradients(hidden_logprobs, inputs, **options),
            values_and_gradients(plain, inputs, **options),
        )


def test_equal_to_the_two_functions_of_the_logits(chunk, device):
    inputs = arguments(device=device)
    mask = torch.tensor([[True, False, True], [True, True, False]], device=device)

    def two(hidden, weight, tokens, bias, **options):
        logits = linear(hidden, weight, bias)
        return token_logprobs(logits, tokens, **options), entropy(logits, **options)

    options = {"temperature": 1.5, "mask": mask}
    close(
        values_and_gradients(hidden_logprobs, inputs, **options), values_and_gradients(two, inputs, **options)
    )


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_both_gradients_are_the_numerical_ones(bias, chunk, device):
    hidden, weight, tokens, bias = arguments(device=device, bias=bias)
    mask = torch.tensor([[True, False, True], [True, True, True]], device=device)
    leaves = [hidden, weight] if bias is None else [hidden, weight, bias]

    def call(hidden, weight, bias=None):
        return tuple(hidden_logprobs(hidden, weight, tokens, bias, temperature=0.8, mask=mask))

    assert torch.autograd.gradcheck(call, leaves)


def test_how_the_tokens_are_divided_changes_nothing(chunk, monkeypatch, device):
    inputs = arguments((6,), device)
    found = values_and_gradients(hidden_logprobs, inputs)
    monkeypatch.setattr(ppo_core.hidden, "CHUNK_ELEMENTS", 1)
    close(found, values_and_gradients(hidden_logprobs, inputs), 1e-14)


def test_a_vocabulary_larger_than_a_chunk_is_taken_a_token_at_a_time(monkeypatch, device):
    inputs = arguments((5,), device, vocabulary=40, width=1)
    expected = values_and_gradients(plain, inputs)
    monkeypatch.setattr(ppo_core.hidden, "CHUNK_ELEMENTS", 3)
    with Sizes() as sizes:
        close(values_and_gradients(hidden_logprobs, inputs), expected)
    assert max(sizes.found) == 40


@pytest.mark.parametrize("used", [0, 1])
def test_one_result_may_be_left_alone(used, chunk, device):
    inputs = arguments(device=device)

    def one(call):
        return lambda *arguments: [call(*arguments)[used]]

    close(values_and_gradients(one(hidden_logprobs), inputs), values_and_gradients(one(plain), inputs))


def test_the_results_may_be_changed_in_place(device):
    inputs = arguments(device=device)

    def changed(call):
        def doubled(*inputs):
            results = call(*inputs)
            return [x.mul_(2) for x in results]

        return doubled

    close(
        values_and_gradients(changed(hidden_logprobs), inputs), values_and_gradients(changed(plain), inputs)
    )


# --- which gradients


@pytest.mark.parametrize("wanted", [(0,), (1,), (3,), (0, 1), (0, 3), (1, 3), (0, 1, 3)], ids=str)
def test_a_gradient_goes_where_one_is_wanted(wanted, device):
    inputs = [x.detach() for x in arguments(device=device)]
    expected = dict(zip((0, 1, 3), values_and_gradients(plain, arguments(device=device))[1:], strict=True))
    for i in wanted:
        inputs[i].requires_grad_()
    results = torch.stack(hidden_logprobs(*inputs))
    weights = torch.linspace(-1, 2, 12, dtype=results.dtype, device=device).reshape(results.shape)
    (results * weights).sum().backward()
    for i in (0, 1, 3):
        assert (inputs[i].grad is not None) == (i in wanted)
        if i in wanted:
            close(inputs[i].grad, expected[i])


def test_what_no_gradient_is_wanted_for_is_not_computed(device):
    hidden, weight, tokens, _ = arguments((3,), device, vocabulary=50, width=20)
    with Sizes() as sizes:
        hidden_logprobs(hidden, weight.detach(), tokens).logprobs.sum().backward()
    assert 3 * 20 in sizes.found
    # The size of the weight occurs nowhere: no gradient of it was made.
    assert 50 * 20 not in sizes.found
    with Sizes() as sizes:
        hidden_logprobs(hidden, weight, tokens).logprobs.sum().backward()
    assert 50 * 20 in sizes.found


def test_without_gradients_there_is_no_history(device):
    inputs = [x.detach() for x in arguments(device=device)]
    assert not any(x.requires_grad for x in hidden_logprobs(*inputs))
    with torch.no_grad():
        assert not any(x.requires_grad for x in hidden_logprobs(*arguments(device=device)))


ONCE = (
    "hidden_logprobs can be differentiated once only, got a request for the gradient of its gradient; use "
    "token_logprobs and entropy of the logits for that"
)


@pytest.mark.parametrize("leaf", [0, 1, 3])
@pytest.mark.parametrize("result", [0, 1])
def test_the_gradient_has_no_gradient(leaf, result, device):
    inputs = arguments(device=device)
    (gradient,) = torch.autograd.grad(hidden_logprobs(*inputs)[result].sum(), inputs[leaf], create_graph=True)
    # It is right, and may be looked at; a penalty on its size would need the second derivative.
    close(gradient.detach(), torch.autograd.grad(plain(*inputs)[result].sum(), inputs[leaf])[0])
    with pytest.raises(RuntimeError) as raised:
        gradient.square().sum().backward()
    assert str(raised.value) == ONCE


# --- what is ruled out, and what does not count


def test_ruled_out_tokens_are_no_nan(chunk, device):
    hidden, weight, _, bias = arguments((4,), device)
    tokens = torch.tensor([0, 1, 3, 6], device=device)
    out = torch.tensor([False, False, True, False, True, True, False], device=device)
    bias = bias.detach().masked_fill(out, -INF).requires_grad_()
    found = values_and_gradients(hidden_logprobs, (hidden, weight, tokens.clamp(max=1), bias))
    # The same as if the vocabulary had no such tokens.
    kept = (hidden, weight.detach()[~out].requires_grad_(), tokens.clamp(max=1), bias.detach()[~out])
    kept[3].requires_grad_()
    expected = values_and_gradients(hidden_logprobs, kept)
    close(found[0], expected[0])
    close(found[1], expected[1])
    close(found[2][~out], expected[2])
    close(found[3][~out], expected[3])
    assert (found[2][out] == 0).all() and (found[3][out] == 0).all()


def test_a_ruled_out_token_is_impossible(device):
    hidden, weight, tokens, bias = arguments((2,), device)
    bias = bias.detach().index_fill(0, tokens[:1], -INF)
    logprobs, entropies = hidden_logprobs(hidden, weight, tokens, bias)
    assert logprobs[0] == -INF
    assert logprobs[1].isfinite() and entropies.isfinite().all()


def test_where_everything_is_ruled_out_there_is_no_distribution(device):
    hidden, weight, tokens, bias = arguments((2,), device)
    logprobs, entropies = hidden_logprobs(hidden, weight, tokens, torch.full_like(bias, -INF))
    assert logprobs.isnan().all() and entropies.isnan().all()


def test_a_certain_policy(device):
    # Logits of 0 and 1e5: probabilities 0 and 1 to every digit.
    hidden = torch.tensor([[1e5]], dtype=torch.float64, device=device, requires_grad=True)
    weight = torch.tensor([[1.0], [0.0]], dtype=torch.float64, device=device, requires_grad=True)
    logprobs, entropies = hidden_logprobs(hidden, weight, torch.tensor([1], device=device))
    assert (logprobs.item(), entropies.item()) == (-1e5, 0)
    gradients = torch.autograd.grad(logprobs + entropies, (hidden, weight))
    assert [g.flatten().tolist() for g in gradients] == [[-1], [-1e5, 1e5]]


@pytest.mark.parametrize("poison", [math.nan, INF, -INF])
def test_what_does_not_count_may_hold_anything(poison, chunk, device):
    hidden, weight, tokens, bias = arguments((2, 4), device)
    mask = torch.tensor([[True, False, True, True], [False, True, True, False]], device=device)
    expected = values_and_gradients(hidden_logprobs, (hidden, weight, tokens, bias), mask=mask)
    poisoned = hidden.detach().masked_fill(~mask.unsqueeze(-1), poison).requires_grad_()
    marked = tokens.masked_fill(~mask, -100)
    found = [
        values_and_gradients(hidden_logprobs, (poisoned, weight, marked, bias), **options)
        for options in ({"mask": mask}, {"ignore_index": -100})
    ]
    torch.testing.assert_close(found, [expected, expected], rtol=0, atol=0)
    assert (expected[0][:, ~mask] == 0).all() and (expected[1][~mask] == 0).all()


@pytest.mark.parametrize("token", [7, 8, 10**12, -1, -(10**12)])
def test_under_the_mask_a_token_may_be_any_number(token, device):
    hidden, weight, tokens, bias = arguments((3,), device)
    mask = torch.tensor([True, False, True], device=device)
    expected = values_and_gradients(hidden_logprobs, (hidden, weight, tokens, bias), mask=mask)
    tokens = tokens.masked_fill(~mask, token)
    found = values_and_gradients(hidden_logprobs, (hidden, weight, tokens, bias), mask=mask)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_a_nan_from_above_does_not_pass_where_nothing_counts(device):
    hidden, weight, tokens, bias = arguments((3,), device)
    mask = torch.tensor([True, False, True], device=device)
    results = torch.stack(hidden_logprobs(hidden, weight, tokens, bias, mask=mask))
    upstream = torch.ones_like(results).masked_fill(~mask, math.nan)
    gradients = torch.autograd.grad(results, (hidden, weight, bias), upstream)
    assert all(g.isfinite().all() for g in gradients)
    assert (gradients[0][1] == 0).all()


def test_where_nothing_counts_a_bias_that_rules_all_out_does_no_harm(device):
    hidden, weight, tokens, bias = arguments((3,), device)
    bias = torch.full_like(bias, -INF).requires_grad_()
    mask = torch.zeros(3, dtype=torch.bool, device=device)
    for x in values_and_gradients(hidden_logprobs, (hidden, weight, tokens, bias), mask=mask):
        assert (x == 0).all()


@pytest.mark.parametrize("name", ["hidden", "weight", "bias"])
def test_a_nan_that_counts_surfaces(name, device):
    inputs = dict(zip(("hidden", "weight", "tokens", "bias"), arguments(device=device), strict=True))
    inputs[name] = inputs[name].detach().index_fill(-1, torch.tensor([0], device=device), math.nan)
    assert all(x.isnan().all() for x in hidden_logprobs(**inputs))


# --- sizes


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)], ids=str)
def test_no_tokens(shape, chunk, device):
    hidden, weight, tokens, bias = arguments(shape, device)
    found = hidden_logprobs(hidden, weight, tokens, bias, mask=torch.ones_like(tokens, dtype=torch.bool))
    assert [x.shape for x in found] == [shape, shape]
    (found.logprobs.sum() + found.entropies.sum()).backward()
    assert hidden.grad.shape == hidden.shape
    assert (weight.grad == 0).all() and (bias.grad == 0).all()


def test_a_vocabulary_of_one_token_is_certain(device):
    inputs = arguments((3,), device, vocabulary=1)
    results, *gradients = values_and_gradients(hidden_logprobs, inputs)
    assert (results == 0).all() and all((g == 0).all() for g in gradients)


def test_without_a_width_the_bias_is_all_there_is(device):
    hidden, weight, tokens, bias = arguments((3,), device, width=0)
    logprobs, _ = hidden_logprobs(hidden, weight, tokens, bias)
    close(logprobs, torch.log_softmax(bias, 0)[tokens])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_logits_are_never_all_held(dtype, monkeypatch, device):
    tokens, vocabulary, width = 600, 500, 8
    monkeypatch.setattr(ppo_core.hidden, "CHUNK_ELEMENTS", 10_000)
    inputs = arguments((20, 30), device, dtype, vocabulary=vocabulary, width=width)
    with Sizes() as sizes:
        values_and_gradients(hidden_logprobs, inputs, temperature=0.5)
    assert max(sizes.found) <= 10_000 < tokens * vocabulary / 20
    with Sizes() as sizes:
        values_and_gradients(plain, inputs, temperature=0.5)
    assert max(sizes.found) == tokens * vocabulary


def test_a_chunk_is_far_below_what_a_large_model_would_hold_and_yet_many_tokens(device):
    inputs = arguments((120,), device, torch.float32, vocabulary=151_936, width=1)
    with Sizes() as sizes:
        values_and_gradients(hidden_logprobs, inputs)
    # Of 8192 tokens, what a batch may have, between a half and one percent at a time.
    assert 8192 * 151_936 / 200 < max(sizes.found) < 8192 * 151_936 / 100


def test_what_is_kept_for_the_backward_pass_is_a_few_numbers_per_token(device):
    inputs = arguments((20, 30), device, vocabulary=500)
    kept = []

    def pack(x):
        kept.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        hidden_logprobs(*inputs)
    given = {x.untyped_storage().data_ptr() for x in inputs}
    assert max(x.numel() for x in kept if x.untyped_storage().data_ptr() not in given) == 600


# --- precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_in_half_precision_the_error_is_that_of_float32(dtype, device):
    hidden, weight, tokens, bias = arguments((64,), device, dtype, vocabulary=257, width=64)
    inputs = (hidden, weight.detach().div(4).requires_grad_(), tokens, bias)

    def cast(dtype):
        return [x.detach().to(dtype).requires_grad_() if x.is_floating_point() else x for x in inputs]

    exact = values_and_gradients(plain, cast(torch.float64))
    single = values_and_gradients(plain, cast(torch.float32))
    found = values_and_gradients(hidden_logprobs, inputs)
    assert [x.dtype for x in found] == [torch.float32, dtype, dtype, dtype]

    def error(x, reference):
        return (x.double() - reference).abs().max()

    assert error(found[0], exact[0]) <= 2 * error(single[0], exact[0])
    # The gradients return in half precision: rounding the exact ones to it is the least error there is.
    for ours, right in zip(found[1:], exact[1:], strict=True):
        assert error(ours, right) <= 1.01 * error(right.to(dtype), right)


def test_the_gradient_of_the_weight_is_summed_in_float32(monkeypatch, device):
    # Each token adds 1/2 to the first row. Summed in bfloat16 it would stay at 128 = 128 + 1/2.
    monkeypatch.setattr(ppo_core.hidden, "CHUNK_ELEMENTS", 2)
    hidden = torch.ones(512, 1, dtype=torch.bfloat16, device=device)
    weight = torch.zeros(2, 1, dtype=torch.bfloat16, device=device, requires_grad=True)
    tokens = torch.zeros(512, dtype=torch.int64, device=device)
    hidden_logprobs(hidden, weight, tokens).logprobs.sum().backward()
    assert weight.grad.tolist() == [[256], [-256]]


@pytest.mark.parametrize(
    ("types", "result"),
    [
        ((torch.bfloat16, torch.float32, torch.float32), torch.float32),
        ((torch.float32, torch.bfloat16, torch.float16), torch.float32),
        ((torch.float16, torch.bfloat16, torch.bfloat16), torch.float32),
        ((torch.float64, torch.float32, torch.bfloat16), torch.float64),
        ((torch.bfloat16, torch.float16, torch.float64), torch.float64),
    ],
    ids=str,
)
def test_types_may_be_mixed(types, result, device):
    hidden, weight, tokens, bias = arguments((5,), device)
    inputs = [x.detach().to(t).requires_grad_() for x, t in zip((hidden, weight, bias), types, strict=True)]
    found = values_and_gradients(hidden_logprobs, (*inputs[:2], tokens, inputs[2]))
    wide = [x.detach().to(result).requires_grad_() for x in inputs]
    expected = values_and_gradients(hidden_logprobs, (*wide[:2], tokens, wide[2]))
    assert [x.dtype for x in found] == [result, *types]
    torch.testing.assert_close(
        found, [x.to(y.dtype) for x, y in zip(expected, found, strict=True)], rtol=0, atol=0
    )


def test_a_device_without_autocast_rounds_nothing(monkeypatch):
    inputs = arguments((5,), dtype=torch.float32)
    expected = hidden_logprobs(*inputs)
    monkeypatch.setattr(torch.amp, "is_autocast_available", lambda device: False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(hidden_logprobs(*inputs).logprobs, expected.logprobs)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_autocast_rounds_the_arguments_as_a_linear_layer_does(dtype, half, device):
    hidden, weight, tokens, bias = arguments((5,), device, dtype)
    inputs = (hidden, weight, tokens, bias)
    # torch leaves float64 as it is.
    rounded = [
        x.detach().to(half).to(torch.float32).requires_grad_() if x.is_floating_point() else x for x in inputs
    ]
    expected = values_and_gradients(hidden_logprobs, inputs if dtype == torch.float64 else rounded)
    with torch.autocast(device, dtype=half):
        assert linear(hidden, weight, bias).dtype == (dtype if dtype == torch.float64 else half)
        inside = values_and_gradients(hidden_logprobs, inputs)
        results = torch.stack(hidden_logprobs(*inputs))
    # The gradient may as well be taken after the context has ended.
    weights = torch.linspace(-1, 2, 10, dtype=results.dtype, device=device).reshape(results.shape)
    after = [results.detach(), *torch.autograd.grad((results * weights).sum(), (hidden, weight, bias))]
    for found in (inside, after):
        assert [x.dtype for x in found[1:]] == [dtype] * 3
        torch.testing.assert_close(
            found, [x.to(y.dtype) for x, y in zip(expected, found, strict=True)], rtol=0, atol=0
        )


def test_strided_hidden_states(chunk, device):
    hidden, weight, tokens, bias = arguments((2, 3), device)
    strided = hidden.detach().transpose(0, 1).contiguous().transpose(0, 1).requires_grad_()
    assert not strided.is_contiguous()
    close(
        values_and_gradients(hidden_logprobs, (strided, weight, tokens.mT.contiguous().mT, bias)),
        values_and_gradients(hidden_logprobs, (hidden, weight, tokens, bias)),
        1e-15,
    )


# --- compiled, and without data


@COMPILED
def test_compiles_into_one_graph_with_both_gradients(monkeypatch, device):
    monkeypatch.setattr(ppo_core.hidden, "CHUNK_ELEMENTS", 4 * 7)
    inputs = arguments((2, 3), device)
    mask = torch.tensor([[True, False, True], [True, True, True]], device=device)
    compiled = torch.compile(hidden_logprobs, fullgraph=True, backend="aot_eager")
    options = {"temperature": 0.7, "ignore_index": 3, "mask": mask}
    close(
        values_and_gradients(compiled, inputs, **options),
        values_and_gradients(hidden_logprobs, inputs, **options),
        1e-15,
    )


@COMPILED
def test_compiled_it_takes_other_temperatures(device):
    inputs = arguments((3,), device, bias=False)
    compiled = torch.compile(hidden_logprobs, fullgraph=True, backend="aot_eager")
    for temperature in (1.0, 0.7, 2.5):
        close(
            values_and_gradients(compiled, inputs, temperature=temperature),
            values_and_gradients(plain, inputs, temperature=temperature),
        )


@COMPILED
@pytest.mark.parametrize("dynamic", [None, pytest.param(True, marks=pytest.mark.slow)])
def test_compiled_it_takes_other_sizes(dynamic, monkeypatch, device):
    monkeypatch.setattr(ppo_core.hidden, "CHUNK_ELEMENTS", 20)
    compiled = torch.compile(hidden_logprobs, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for tokens, vocabulary in ((2, 7), (3, 8)):
        inputs = arguments((tokens,), device, vocabulary=vocabulary)
        close(values_and_gradients(compiled, inputs), values_and_gradients(plain, inputs))


@COMPILED
def test_compiled_under_autocast(device):
    inputs = arguments((3,), device, torch.float32)
    compiled = torch.compile(hidden_logprobs, fullgraph=True, backend="aot_eager")
    with torch.autocast(device, dtype=torch.bfloat16):
        found, expected = (values_and_gradients(call, inputs) for call in (compiled, hidden_logprobs))
    close(found, expected, 1e-6)


@COMPILED
def test_a_token_outside_the_vocabulary_is_nan_in_a_compiled_graph(device):
    hidden, weight, tokens, bias = arguments((3,), device)
    tokens[1] = 7
    compiled = torch.compile(hidden_logprobs, fullgraph=True, backend="aot_eager")
    logprobs, entropies = compiled(hidden, weight, tokens, bias)
    assert logprobs.isnan().tolist() == [False, True, False]
    # The entropy does not rest on the token.
    close(entropies, plain(hidden, weight, tokens.clamp(max=6), bias)[1])
    (gradient,) = torch.autograd.grad(logprobs.nansum(), hidden)
    assert (gradient[1] == 0).all() and (gradient[0] != 0).any()


def test_nothing_looks_at_the_data():
    # Tensors on the meta device have no data: a look would raise.
    inputs = [x.detach().to("meta") for x in arguments()]
    leaves = [inputs[i].requires_grad_() for i in (0, 1, 3)]
    found = hidden_logprobs(*inputs, ignore_index=-100)
    gradients = torch.autograd.grad(sum(x.sum() for x in found), leaves)
    assert [x.shape for x in found] == [(2, 3), (2, 3)]
    assert [x.shape for x in gradients] == [x.shape for x in leaves]


# --- errors


HIDDEN, WEIGHT, TOKENS = torch.zeros(2, 3, 4), torch.zeros(5, 4), torch.zeros(2, 3, dtype=torch.int64)
BIAS = torch.zeros(5)
SHAPE = "nothing is broadcast: expand or index one of them first"
ROWS = "a row of the width of hidden for each token of the vocabulary, got"


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (
            {"hidden": [0.0]},
            TypeError,
            "hidden must be a torch.Tensor, got list; write torch.tensor(hidden)",
        ),
        (
            {"hidden": HIDDEN.long()},
            TypeError,
            "hidden must be a floating-point tensor, got torch.int64; write hidden.float()",
        ),
        (
            {"weight": WEIGHT.long()},
            TypeError,
            "weight must be a floating-point tensor, got torch.int64; write weight.float()",
        ),
        (
            {"bias": BIAS.int()},
            TypeError,
            "bias must be a floating-point tensor, got torch.int32; write bias.float()",
        ),
        (
            {"tokens": TOKENS.int()},
            TypeError,
            "tokens must be an int64 tensor, got torch.int32; write tokens.long()",
        ),
        (
            {"mask": TOKENS},
            TypeError,
            "mask must be a bool tensor (True: the token counts), got torch.int64; write mask.bool()",
        ),
        (
            {"hidden": torch.tensor(0.0)},
            ValueError,
            "hidden must have at least one dimension, the width, got []",
        ),
        (
            {"hidden": HIDDEN[..., :3]},
            ValueError,
            f"weight must have the shape [V, 3], {ROWS} [5, 4]",
        ),
        ({"weight": WEIGHT.T}, ValueError, f"weight must have the shape [V, 4], {ROWS} [4, 5]"),
        ({"weight": WEIGHT[0]}, ValueError, f"weight must have the shape [V, 4], {ROWS} [4]"),
        ({"weight": WEIGHT[:0]}, ValueError, f"weight must have the shape [V, 4], {ROWS} [0, 4]"),
        ({"weight": WEIGHT[None]}, ValueError, f"weight must have the shape [V, 4], {ROWS} [1, 5, 4]"),
        (
            {"bias": BIAS[:1]},
            ValueError,
            "bias must have the shape [V] where weight has [V, D], got [1] and [5, 4]",
        ),
        (
            {"bias": BIAS[None]},
            ValueError,
            "bias must have the shape [V] where weight has [V, D], got [1, 5] and [5, 4]",
        ),
        (
            {"tokens": TOKENS[:, :1]},
            ValueError,
            f"tokens must have the shape of hidden without its last dimension, the width, got [2, 1] and [2, 3, 4]; {SHAPE}",
        ),
        (
            {"mask": TOKENS.bool()[0]},
            ValueError,
            f"mask must have the shape of hidden without its last dimension, the width, got [3] and [2, 3, 4]; {SHAPE}",
        ),
        (
            {"tokens": TOKENS + 5},
            ValueError,
            "tokens must lie between 0 and 4, got 5 at index [0, 0]; leave padding out with mask or ignore_index",
        ),
        ({"temperature": 0}, ValueError, "temperature must be finite and above 0, got 0"),
        ({"ignore_index": 0.5}, ValueError, "ignore_index must be an int, got 0.5"),
    ],
)
def test_errors(change, kind, text):
    with pytest.raises(kind) as raised:
        hidden_logprobs(**{"hidden": HIDDEN, "weight": WEIGHT, "tokens": TOKENS, "bias": BIAS, **change})
    assert str(raised.value) == text


def test_the_last_token_of_the_vocabulary_is_in_it(device):
    hidden, weight, tokens, bias = arguments((3,), device)
    close(
        hidden_logprobs(hidden, weight, torch.full_like(tokens, 6), bias).logprobs,
        plain(hidden, weight, torch.full_like(tokens, 6), bias)[0],
    )
