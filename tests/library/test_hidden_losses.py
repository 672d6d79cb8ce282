"""The policy loss from hidden states: equal to the plain functions one after the other, in value and gradient."""

import math

import pytest
import torch

import ppo_core.hidden_losses
import reference
from ppo_core import hidden_logprobs, hidden_policy_loss

from .hidden_batches import LEAVES, batch, close, plain, values_and_gradients
from .sizes import Sizes

INF = math.inf
MEAN = {"epsilon": 0.2, "mode": "token_mean"}


@pytest.fixture(params=[1, 2, 5, 100])
def chunk(request, monkeypatch):
    """How many tokens are taken at a time, with the vocabulary of `batch`, 7 tokens."""
    monkeypatch.setattr(ppo_core.hidden_losses, "CHUNK_ELEMENTS", 7 * request.param + 6)
    return request.param


# --- by hand


def test_by_hand(device):
    # One width, weights log 2, 0, 0: with h = 1 the probabilities are 1/2, 1/4, 1/4.
    numbers = {"dtype": torch.float64, "device": device}
    hidden = torch.ones(3, 1, **numbers, requires_grad=True)
    weight = torch.tensor([[math.log(2)], [0.0], [0.0]], **numbers, requires_grad=True)
    tokens = torch.tensor([0, 1, 2], device=device)
    # The ratios are 5/4, in the band; 2, above it, on a bad token; and 2 on a good one, where the clip is active.
    old = torch.tensor([0.4, 0.125, 0.125], **numbers).log()
    advantages = torch.tensor([2.0, -1.0, 1.0], **numbers)
    mask = torch.ones(3, dtype=torch.bool, device=device)
    found = hidden_policy_loss(hidden, weight, tokens, old, advantages, mask, epsilon=0.3, mode="token_mean")
    # The losses are -2.5, 2 and -1.3.
    assert found.loss.item() == pytest.approx(-1.8 / 3, rel=1e-14)
    assert found.logprobs.tolist() == pytest.approx([-math.log(2), -math.log(4), -math.log(4)], rel=1e-14)
    # The slopes in the log-probabilities are -2.5, 2 and 0, over 3. In the logits, times one at the token less
    # the probabilities: -1.25, 0.625, 0.625 and -1, 1.5, -0.5, over 3.
    found.loss.backward()
    assert weight.grad[:, 0].tolist() == pytest.approx([-2.25 / 3, 2.125 / 3, 0.125 / 3], rel=1e-14)
    of_hidden = [-1.25 * math.log(2) / 3, -math.log(2) / 3, 0]
    assert hidden.grad[:, 0].tolist() == pytest.approx(of_hidden, rel=1e-14)


def test_the_results_have_names(device):
    found = hidden_policy_loss(**batch(device=device), **MEAN)
    assert found._fields == ("loss", "logprobs")
    assert found.loss is found[0] and found.logprobs is found[1]


@pytest.mark.parametrize("shape", [(3,), (2, 3)], ids=str)
def test_without_a_bias_it_agrees_with_the_plain_float_twin(shape, device):
    inputs = batch(shape, device, bias=False)
    found = hidden_policy_loss(**inputs, **MEAN, temperature=0.6)
    lists = {name: x.tolist() for name, x in inputs.items()}
    loss, logprobs = reference.hidden_policy_loss(**lists, **MEAN, temperature=0.6)
    assert found.loss.item() == pytest.approx(loss, rel=1e-13)
    close(found.logprobs, torch.tensor(logprobs, dtype=torch.float64, device=device), 1e-13)


# --- the plain functions, in value and gradient


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("shape", [(11,), (1, 6), (4, 3), (2, 2, 3)], ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {"mode": "token_mean"},
        {"mode": "token_mean", "denominator": 5.5, "temperature": 0.7},
        {"mode": "sequence_mean_token_mean", "epsilon_high": 0.5},
        {"mode": "sequence_mean_token_sum", "dual_clip": 1.3},
        {"mode": "constant", "denominator": 7, "epsilon_high": 1.5, "dual_clip": 2, "temperature": 3},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_equal_to_the_plain_functions(options, shape, bias, chunk, device):
    inputs = batch(shape, device, bias=bias)
    close(
        values_and_gradients(inputs, epsilon=0.2, **options),
        values_and_gradients(inputs, plain, epsilon=0.2, **options),
    )


@pytest.mark.parametrize("mode", ["token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum"])
def test_packed_rows(mode, chunk, device):
    inputs = batch((2, 6), device)
    ids = torch.tensor([[0, 0, 0, 1, 1, 2], [4, 4, 3, 3, 3, 3]], device=device)
    inputs["mask"] = ids != 1
    options = {"epsilon": 0.2, "mode": mode, "sequence_ids": ids}
    close(values_and_gradients(inputs, **options), values_and_gradients(inputs, plain, **options))
    if mode == "sequence_mean_token_mean":
        rows = values_and_gradients(inputs, epsilon=0.2, mode=mode)
        assert not torch.equal(rows[0], values_and_gradients(inputs, **options)[0])


def test_a_batch_in_pieces_adds_up(device):
    inputs = batch((4, 3), device)
    whole = inputs["mask"].sum()
    expected = values_and_gradients(inputs, **MEAN)
    leaves = [inputs[name] for name in LEAVES]
    pieces = [
        {name: x if name in ("weight", "bias") else x[rows] for name, x in inputs.items()}
        for rows in (slice(0, 1), slice(1, 4))
    ]
    loss = sum(hidden_policy_loss(**piece, **MEAN, denominator=whole).loss for piece in pieces)
    close([loss.detach(), *torch.autograd.grad(-3 * loss, leaves)], [expected[0], *expected[2:]])


def test_the_log_probabilities_are_those_of_hidden_logprobs(chunk, device):
    inputs = batch(device=device)
    found = hidden_policy_loss(**inputs, **MEAN).logprobs
    arguments = [inputs[name] for name in ("hidden", "weight", "tokens", "bias")]
    close(found, hidden_logprobs(*arguments, mask=inputs["mask"]).logprobs.detach(), 1e-14)
    assert not found.requires_grad


def test_the_gradient_is_the_numerical_one(chunk, device):
    inputs = batch(device=device)

    def call(*leaves):
        return hidden_policy_loss(**inputs | dict(zip(LEAVES, leaves, strict=True)), **MEAN).loss

    assert torch.autograd.gradcheck(call, [inputs[name] for name in LEAVES])


@pytest.mark.parametrize("dual_clip", [None, 3.0])
def test_a_ratio_that_overflows(dual_clip, device):
    # exp(2000) has no float. The loss of a good token is flat there; that of a bad one with a dual clip only.
    inputs = batch((1, 4), device)
    inputs["mask"] = torch.ones(1, 4, dtype=torch.bool, device=device)
    inputs["old_logprobs"] = torch.tensor([[-2000.0, -2000.0, -1.0, 2000.0]], dtype=torch.float64).to(device)
    sign = 1.0 if dual_clip is None else -1.0
    inputs["advantages"] = torch.tensor([[2.0, 2 * sign, 1.0, 1.0]], dtype=torch.float64).to(device)
    found = values_and_gradients(inputs, **MEAN, dual_clip=dual_clip)
    assert all(x.isfinite().all() for x in found)
    assert (found[2][0, [0, 1, 3]] == 0).all()
    close(found, values_and_gradients(inputs, plain, **MEAN, dual_clip=dual_clip))


# --- which gradients, and how often


@pytest.mark.parametrize(
    "wanted", [("hidden",), ("weight",), ("bias",), ("hidden", "weight"), ("weight", "bias"), LEAVES], ids=str
)
def test_a_gradient_goes_where_one_is_wanted(wanted, chunk, device):
    inputs = batch(device=device)
    expected = dict(zip(LEAVES, values_and_gradients(inputs, plain, 1.0, **MEAN)[2:], strict=True))
    inputs |= {name: inputs[name].detach().requires_grad_(name in wanted) for name in LEAVES}
    hidden_policy_loss(**inputs, **MEAN).loss.backward()
    for name in LEAVES:
        assert (inputs[name].grad is not None) == (name in wanted)
        if name in wanted:
            close(inputs[name].grad, expected[name])


def test_what_no_gradient_is_wanted_for_is_not_computed(device):
    inputs = batch((1, 3), device, bias=False, vocabulary=50, width=20)

    def sizes(**change):
        with Sizes() as sizes:
            loss = hidden_policy_loss(**inputs | change, **MEAN).loss
            if loss.requires_grad:
                loss.backward()
        return sizes.found

    # The gradients have the sizes 3 * 20 and 50 * 20.
    assert 50 * 20 in sizes()
    assert 50 * 20 not in sizes(weight=inputs["weight"].detach())
    with torch.no_grad():
        assert sizes().isdisjoint({50 * 20})
        assert not hidden_policy_loss(**inputs, **MEAN).loss.requires_grad


def test_without_gradients_the_value_is_the_same(chunk, device):
    inputs = batch(device=device)
    expected = plain(**inputs, **MEAN)
    detached = {name: x.detach() for name, x in inputs.items()}
    with torch.no_grad():
        inside = hidden_policy_loss(**inputs, **MEAN)
    for found in (inside, hidden_policy_loss(**detached, **MEAN)):
        assert not found.loss.requires_grad
        close(list(found), [x.detach() for x in expected])


def test_the_backward_pass_may_run_twice(device):
    inputs = batch(device=device)
    leaves = [inputs[name] for name in LEAVES]
    loss = hidden_policy_loss(**inputs, **MEAN).loss
    first = torch.autograd.grad(2 * loss, leaves, retain_graph=True)
    second = torch.autograd.grad(-4 * loss, leaves)
    close([-2 * x for x in first], list(second), 1e-15)
    close(list(first), values_and_gradients(inputs, plain, 2.0, **MEAN)[2:])


def test_the_loss_may_be_changed_in_place(device):
    inputs = batch(device=device)
    loss = hidden_policy_loss(**inputs, **MEAN).loss.mul_(2)
    gradients = torch.autograd.grad(loss, [inputs[name] for name in LEAVES])
    close(list(gradients), values_and_gradients(inputs, plain, 2.0, **MEAN)[2:])


@pytest.mark.parametrize("leaf", LEAVES)
def test_the_gradient_has_no_gradient(leaf, device):
    inputs = batch(device=device)
    loss = hidden_policy_loss(**inputs, **MEAN).loss
    (gradient,) = torch.autograd.grad(loss, inputs[leaf], create_graph=True)
    # It is right, and may be looked at; a penalty on its size would need the second derivative.
    close(gradient.detach(), torch.autograd.grad(plain(**inputs, **MEAN)[0], inputs[leaf])[0])
    with pytest.raises(RuntimeError) as raised:
        gradient.square().sum().backward()
    assert str(raised.value) == (
        "hidden_policy_loss can be differentiated once only, got a request for the gradient of its gradient; use "
        "token_logprobs of the logits, policy_loss and aggregate for that"
    )


def test_inside_a_checkpoint(device):
    # It sets hooks on saved tensors, which torch.func does not take.
    inputs = batch(device=device)

    def call(**arguments):
        def loss(*_):
            return hidden_policy_loss(**arguments).loss

        found = torch.utils.checkpoint.checkpoint(loss, inputs["hidden"], use_reentrant=False)
        return found, hidden_policy_loss(**arguments).logprobs

    close(values_and_gradients(inputs, call, **MEAN), values_and_gradients(inputs, plain, **MEAN))


# --- what does not count


@pytest.mark.parametrize("poison", [math.nan, INF, -INF])
def test_what_does_not_count_may_hold_anything(poison, chunk, device):
    inputs = batch((2, 4), device)
    mask = torch.tensor([[True, False, True, True], [False, True, True, False]], device=device)
    inputs["mask"] = mask
    expected = values_and_gradients(inputs, **MEAN)
    poisoned = {name: inputs[name].masked_fill(~mask, poison) for name in ("old_logprobs", "advantages")}
    poisoned["hidden"] = inputs["hidden"].detach().masked_fill(~mask.unsqueeze(-1), poison).requires_grad_()
    poisoned["tokens"] = inputs["tokens"].masked_fill(~mask, -100)
    found = values_and_gradients(inputs | poisoned, **MEAN)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert (expected[1][~mask] == 0).all() and (expected[2][~mask] == 0).all()


@pytest.mark.parametrize("name", ["hidden", "weight", "bias", "old_logprobs", "advantages"])
def test_a_nan_that_counts_surfaces(name, device):
    inputs = batch(device=device)
    inputs["mask"] = torch.ones_like(inputs["mask"])
    with torch.no_grad():
        inputs[name].fill_(math.nan)
    assert hidden_policy_loss(**inputs, **MEAN).loss.isnan()


def test_where_nothing_counts_a_bias_that_rules_all_out_does_no_harm(chunk, device):
    inputs = batch(device=device)
    inputs["bias"] = torch.full_like(inputs["bias"], -INF).requires_grad_()
    inputs["mask"] = torch.zeros_like(inputs["mask"])
    for x in values_and_gradients(inputs, **MEAN):
        assert (x == 0).all()


def test_ruled_out_tokens_are_no_nan(chunk, device):
    inputs = batch((4,), device)
    out = torch.tensor([False, False, True, False, True, True, False], device=device)
    inputs["tokens"] = inputs["tokens"].clamp(max=1)
    inputs["bias"] = inputs["bias"].detach().masked_fill(out, -INF).requires_grad_()
    found = values_and_gradients(inputs, **MEAN)
    # The same as if the vocabulary had no such tokens.
    kept = {name: inputs[name].detach()[~out].requires_grad_() for name in ("weight", "bias")}
    expected = values_and_gradients(inputs | kept, plain, **MEAN)
    close(found[:3], expected[:3])
    close([x[~out] for x in found[3:]], expected[3:])
    assert (found[3][out] == 0).all() and (found[4][out] == 0).all()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)], ids=str)
def test_no_tokens(shape, chunk, device):
    inputs = batch(shape, device)
    loss, logprobs, *gradients = values_and_gradients(inputs, **MEAN)
    assert loss == 0 and logprobs.shape == shape
    assert gradients[0].shape == inputs["hidden"].shape
    assert all((x == 0).all() for x in gradients)


def test_a_vocabulary_of_one_token_is_certain(device):
    inputs = batch((3,), device, vocabulary=1)
    _, logprobs, *gradients = values_and_gradients(inputs, **MEAN)
    assert (logprobs == 0).all() and all((x == 0).all() for x in gradients)
