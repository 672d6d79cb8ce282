"""Reports of wrong log-probabilities and entropies, each with the smallest input and what is right."""

import math

import pytest
import torch

import ppo_core.hidden
from ppo_core import entropy, hidden_logprobs, masked_mean, ratio, token_logprobs

INF = math.inf


def from_hidden(logits, tokens, **options):
    """Ask for the same through hidden states: the logits are those, times a weight that changes nothing."""
    size = logits.shape[-1]
    weight = torch.eye(size, dtype=logits.dtype, device=logits.device)
    return hidden_logprobs(logits, weight, tokens, **options)


# --- entropy


@pytest.mark.parametrize(
    ("logits", "dtype", "right"),
    [
        # One token has all the probability.
        ([0.0, -INF], torch.float32, 0.0),
        # Two tokens share it: log 2.
        ([0.0, 0.0, -INF], torch.float32, 0.693147),
        # e^-131008 is 0 in every type, and so is 0 times its logarithm.
        ([65504.0, -65504.0], torch.float16, 0.0),
    ],
)
def test_trl_7221_entropy_of_ruled_out_tokens(logits, dtype, right, device):
    logits = torch.tensor(logits, dtype=dtype, device=device, requires_grad=True)
    value = entropy(logits)
    assert value.item() == pytest.approx(right, abs=1e-6)
    value.backward()
    assert logits.grad.tolist() == pytest.approx([0] * len(logits), abs=1e-7)


def test_skyrl_2259_entropy_of_ruled_out_tokens_in_a_batch(device):
    # A sampler that keeps two of four tokens, at one of two places: log 2 and log 4. The mean is 3/2 log 2.
    logits = torch.tensor([[0.0, -INF, 0.0, -INF], [0.0, 0.0, 0.0, 0.0]], device=device, requires_grad=True)
    value = masked_mean(entropy(logits), torch.tensor([True, True], device=device))
    assert value.item() == pytest.approx(1.5 * math.log(2), rel=1e-6)
    value.backward()
    assert logits.grad.isfinite().all()


def test_skyrl_2259_entropy_of_ruled_out_tokens_from_hidden_states(device):
    # Ruled out by the bias: 0, -inf, 0 gives log 2.
    hidden = torch.zeros(1, 2, device=device, requires_grad=True)
    weight = torch.ones(3, 2, device=device, requires_grad=True)
    bias = torch.tensor([0.0, -INF, 0.0], device=device, requires_grad=True)
    token = torch.tensor([2], device=device)
    logprobs, entropies = hidden_logprobs(hidden, weight, token, bias)
    assert logprobs.item() == pytest.approx(-math.log(2), rel=1e-6)
    assert entropies.item() == pytest.approx(math.log(2), rel=1e-6)
    (logprobs + entropies).sum().backward()
    assert all(x.grad.isfinite().all() for x in (hidden, weight, bias))
    # 1 at the token less the probabilities 1/2, 0, 1/2; the entropy is at its largest, its slope 0.
    assert bias.grad.tolist() == pytest.approx([-0.5, 0, 0.5], abs=1e-7)


# --- the size of the vocabulary


@pytest.mark.parametrize("size", [1023, 1024, 1025])
def test_verl_5349_a_vocabulary_that_no_tile_divides(size, device):
    # All logits -50: each token has the probability 1 / size. 1025: -ln 1025 = -6.932448. Padding of the last
    # tile with logits of 0 would add e^50 times as much again.
    logits = torch.full((3, size), -50.0, device=device)
    tokens = torch.tensor([0, 511, size - 1], device=device)
    right = [-math.log(size)] * 3
    assert token_logprobs(logits, tokens).tolist() == pytest.approx(right, abs=1e-6)
    assert entropy(logits).tolist() == pytest.approx([math.log(size)] * 3, abs=1e-5)
    # -50 as hidden times weight, and as a bias.
    hidden, weight = torch.full((3, 1), -5.0, device=device), torch.full((size, 1), 10.0, device=device)
    for found in (
        hidden_logprobs(hidden, weight, tokens),
        hidden_logprobs(hidden, weight / 2, tokens, torch.full((size,), -25.0, device=device)),
    ):
        assert found.logprobs.tolist() == pytest.approx(right, abs=1e-6)
        assert found.entropies.tolist() == pytest.approx([math.log(size)] * 3, abs=1e-5)


@pytest.mark.parametrize("tokens_at_a_time", [1, 2, 3, 4])
def test_verl_5349_a_number_of_tokens_that_no_chunk_divides(tokens_at_a_time, monkeypatch, device):
    monkeypatch.setattr(ppo_core.hidden, "CHUNK_ELEMENTS", 1025 * tokens_at_a_time)
    hidden, weight = torch.full((3, 1), -5.0, device=device), torch.full((1025, 1), 10.0, device=device)
    found = hidden_logprobs(hidden, weight, torch.tensor([0, 511, 1024], device=device))
    assert found.logprobs.tolist() == pytest.approx([-6.932448] * 3, abs=1e-6)


# --- labels


@pytest.mark.parametrize("label", [4, -1, -100])
@pytest.mark.parametrize("call", [token_logprobs, from_hidden])
def test_liger_label_outside_the_vocabulary(call, label, device):
    # Liger 0.8.5 and TRL 1.12.0, in parts: a label equal to the size of the vocabulary has the logit 0, and so a
    # number that looks right. There is no right number: an error, or NaN where looking costs.
    logits, tokens = torch.zeros(2, 4, device=device), torch.tensor([1, label], device=device)
    if device == "cpu":
        with pytest.raises(ValueError, match=f"^tokens must lie between 0 and 3, got {label} at index"):
            call(logits, tokens)
    else:
        found = call(logits, tokens)
        found = found if isinstance(found, torch.Tensor) else found.logprobs
        assert found.isnan().tolist() == [False, True]


def test_verl_782_and_openrlhf_583_all_labels_ignored(device):
    # Nothing counts: the loss is 0 and so is its gradient, and not NaN.
    logits = torch.randn(2, 3, 4, device=device, requires_grad=True)
    tokens = torch.full((2, 3), -100, device=device)
    results = [token_logprobs(logits, tokens, ignore_index=-100)]
    results += from_hidden(logits, tokens, ignore_index=-100)
    for result in results:
        loss = masked_mean(result, tokens != -100)
        (gradient,) = torch.autograd.grad(loss, logits, retain_graph=True)
        assert (loss.item(), gradient.abs().max().item()) == (0, 0)


def test_trl_6121_padding_has_no_log_probability_above_zero(device):
    # TRL fills padding with 1.0, which then enters means. [-log 2, padding]: the mean of what counts is -log 2.
    logits, tokens = torch.zeros(2, 2, device=device), torch.tensor([1, 0], device=device)
    mask = torch.tensor([True, False], device=device)
    found = token_logprobs(logits, tokens, mask=mask)
    assert found.tolist() == pytest.approx([-math.log(2), 0], rel=1e-6)
    assert masked_mean(found, mask).item() == pytest.approx(-math.log(2), rel=1e-6)


# --- temperature


@pytest.mark.parametrize(
    "call",
    [token_logprobs, from_hidden, lambda logits, tokens, **options: entropy(logits, **options)],
    ids=["token_logprobs", "hidden_logprobs", "entropy"],
)
def test_openrlhf_divides_the_callers_logits_by_the_temperature(call, device):
    logits = torch.tensor([[2.0, -4.0, 6.0]], device=device)
    call(logits, torch.tensor([0], device=device), temperature=0.5)
    assert logits.tolist() == [[2.0, -4.0, 6.0]]


def test_trl_ppo_adds_to_the_temperature(device):
    # Logits over tau + 1e-7: with logits 40 and 0 at tau = 0.01 the log-probability of the second would be
    # -4000 / (1 + 1e-5) = -3999.96. Right: -4000.
    logits = torch.tensor([[40.0, 0.0]], dtype=torch.float64, device=device)
    token = torch.tensor([1], device=device)
    assert token_logprobs(logits, token, temperature=0.01).item() == pytest.approx(-4000, rel=1e-12)
    assert from_hidden(logits, token, temperature=0.01).logprobs.item() == pytest.approx(-4000, rel=1e-12)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_trl_454_the_ratio_in_the_first_epoch_is_one(temperature, device):
    generator = torch.Generator().manual_seed(0)
    hidden, weight = torch.randn(5, 8, generator=generator), torch.randn(50, 8, generator=generator)
    tokens = torch.randint(50, (5,), generator=generator).to(device)
    for call in (
        lambda: (
            hidden_logprobs(hidden.to(device), weight.to(device), tokens, temperature=temperature).logprobs
        ),
        lambda: token_logprobs((hidden @ weight.T).to(device), tokens, temperature=temperature),
    ):
        assert ratio(call(), call()).tolist() == [1] * 5


# --- gradients


def test_trl_chunked_entropy_has_a_gradient(device):
    # A bonus for entropy must do something. Logits log 2, 0, 0: -p (log p + H) is -log 2 / 4, log 2 / 8 twice.
    hidden = torch.ones(1, 1, dtype=torch.float64, device=device)
    weight = torch.tensor(
        [[math.log(2)], [0.0], [0.0]], dtype=torch.float64, device=device, requires_grad=True
    )
    entropies = hidden_logprobs(hidden, weight, torch.tensor([0], device=device)).entropies
    (gradient,) = torch.autograd.grad(entropies.sum(), weight)
    right = [-math.log(2) / 4, math.log(2) / 8, math.log(2) / 8]
    assert gradient[:, 0].tolist() == pytest.approx(right, rel=1e-14)


def test_liger_968_tokens_with_weights_of_their_own(device):
    # Unreduced results, each weighed by its own number: 3 (1 - 1/2) for the first token, -5 (1 - 1/2) for the
    # second, at its own logit; the other logit has the opposite.
    logits = torch.zeros(2, 2, dtype=torch.float64, device=device, requires_grad=True)
    tokens = torch.tensor([0, 1], device=device)
    upstream = torch.tensor([3.0, -5.0], dtype=torch.float64, device=device)
    for result in (token_logprobs(logits, tokens), from_hidden(logits, tokens).logprobs):
        (gradient,) = torch.autograd.grad(result, logits, upstream)
        assert gradient.tolist() == [[1.5, -1.5], [2.5, -2.5]]


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_liger_1366_float64_compiles(device):
    logits = torch.zeros(1, 2, dtype=torch.float64, device=device)
    token = torch.tensor([0], device=device)
    compiled = torch.compile(from_hidden, fullgraph=True, backend="aot_eager")
    found = compiled(logits, token)
    assert found.logprobs.dtype == torch.float64
    assert found.logprobs.item() == pytest.approx(-math.log(2), rel=1e-15)
