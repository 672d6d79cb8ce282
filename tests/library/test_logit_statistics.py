"""Log-probabilities and entropies of logits in one pass: the same as one after the other."""

import math

import pytest
import torch

import reference
from ppo_core import entropy, hidden_logprobs, logit_statistics, token_logprobs

INF = math.inf


def tensor(x, device, dtype=torch.float64):
    return torch.tensor(x, dtype=dtype, device=device, requires_grad=dtype.is_floating_point)


def arguments(shape=(2, 3), device="cpu", dtype=torch.float64, vocabulary=7, seed=0):
    """Draw logits, which want a gradient, and tokens."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(*shape, vocabulary, generator=generator, dtype=torch.float64)
    tokens = torch.randint(vocabulary, shape, generator=generator)
    return logits.to(device, dtype).requires_grad_(), tokens.to(device)


def plain(logits, tokens, *, temperature=1.0, ignore_index=None, mask=None):
    """The definition in torch's own words."""
    counts = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
    counts = counts & (tokens != ignore_index) if ignore_index is not None else counts
    logprobs = torch.log_softmax(logits / temperature, -1)
    picked = logprobs.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    undecided = -(logprobs.exp() * logprobs).sum(-1)
    return torch.where(counts, picked, 0.0), torch.where(counts, undecided, 0.0)


def values_and_gradient(call, logits, tokens, **options):
    """Return both results, and the gradient of a sum in which every element of both has a weight of its own."""
    results = torch.stack(list(call(logits, tokens, **options)))
    weights = torch.linspace(-1, 2, results.numel(), dtype=results.dtype, device=results.device)
    (gradient,) = torch.autograd.grad((results * weights.reshape(results.shape)).sum(), logits)
    return [results.detach(), gradient]


def close(found, expected, tolerance=1e-13):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def test_by_hand(device):
    # Probabilities 1/2, 1/4, 1/4.
    logits = tensor([math.log(2), 0.0, 0.0], device)
    logprobs, entropies = logit_statistics(logits, tensor(1, device, torch.int64))
    assert logprobs.item() == pytest.approx(-math.log(4), rel=1e-15)
    assert entropies.item() == pytest.approx(1.5 * math.log(2), rel=1e-15)
    # One at the token less the probabilities; -p (log p + H): -(log 2) / 4, (log 2) / 8, (log 2) / 8.
    (of_logprob,) = torch.autograd.grad(logprobs, logits, retain_graph=True)
    assert of_logprob.tolist() == pytest.approx([-1 / 2, 3 / 4, -1 / 4], rel=1e-15)
    (of_entropy,) = torch.autograd.grad(entropies, logits, retain_graph=True)
    slopes = [-math.log(2) / 4, math.log(2) / 8, math.log(2) / 8]
    assert of_entropy.tolist() == pytest.approx(slopes, rel=1e-14)
    # Three of the first less two of the second.
    (of_both,) = torch.autograd.grad(3 * logprobs - 2 * entropies, logits)
    expected = [3 * a - 2 * b for a, b in zip([-1 / 2, 3 / 4, -1 / 4], slopes, strict=True)]
    assert of_both.tolist() == pytest.approx(expected, rel=1e-14)


def test_the_temperature_by_hand(device):
    # Half of log 4 is log 2: probabilities 2/3 and 1/3.
    logits = tensor([math.log(4), 0.0], device)
    logprobs, entropies = logit_statistics(logits, tensor(0, device, torch.int64), temperature=2)
    assert logprobs.item() == pytest.approx(math.log(2 / 3), rel=1e-15)
    assert entropies.item() == pytest.approx(math.log(3) - 2 / 3 * math.log(2), rel=1e-15)
    (gradient,) = torch.autograd.grad(logprobs + entropies, logits)
    # (1 - 2/3) / 2 and -2/3 log 2 / 3 / 2; the second logit has the opposite.
    slope = 1 / 6 - math.log(2) / 9
    assert gradient.tolist() == pytest.approx([slope, -slope], rel=1e-13)


def test_the_results_have_names_and_are_those_of_hidden_states(device):
    logits, tokens = arguments(device=device)
    found = logit_statistics(logits, tokens)
    assert found._fields == ("logprobs", "entropies")
    same = hidden_logprobs(logits, torch.eye(7, dtype=logits.dtype, device=device), tokens)
    assert type(found) is type(same)
    close(list(found), list(same))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3)], ids=str)
def test_agrees_with_the_plain_float_twin(shape, device):
    logits, tokens = arguments(shape, device)
    found = logit_statistics(logits, tokens, temperature=0.6, ignore_index=3)
    expected = reference.logit_statistics(logits.tolist(), tokens.tolist(), temperature=0.6, ignore_index=3)
    for ours, twin in zip(found, expected, strict=True):
        close(ours.detach(), torch.tensor(twin, dtype=torch.float64, device=device))


@pytest.mark.parametrize("shape", [(), (11,), (4, 3), (2, 2, 3)], ids=str)
def test_equal_to_the_two_functions_and_to_log_softmax(shape, device):
    logits, tokens = arguments(shape, device)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(3)).to(device) < 0.7

    def two(logits, tokens, *, temperature=1.0, ignore_index=None, mask=None):
        counts = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
        counts = counts if ignore_index is None else counts & (tokens != ignore_index)
        return (
            token_logprobs(logits, tokens, temperature=temperature, ignore_index=ignore_index, mask=mask),
            entropy(logits, temperature=temperature, mask=counts),
        )

    for options in (
        {},
        {"temperature": 0.7},
        {"mask": mask},
        {"ignore_index": 2},
        {"temperature": 3, "ignore_index": 0, "mask": mask},
    ):
        found = values_and_gradient(logit_statistics, logits, tokens, **options)
        close(found, values_and_gradient(plain, logits, tokens, **options))
        close(found, values_and_gradient(two, logits, tokens, **options))


def test_the_gradient_and_its_gradient_are_the_numerical_ones(device):
    logits, tokens = arguments(device=device)
    mask = torch.tensor([[True, False, True], [True, True, True]], device=device)

    def call(logits):
        return tuple(logit_statistics(logits, tokens, temperature=0.8, mask=mask))

    assert torch.autograd.gradcheck(call, logits)
    assert torch.autograd.gradgradcheck(call, logits)


def test_the_results_may_be_changed_in_place(device):
    logits, tokens = arguments(device=device)
    doubled = values_and_gradient(lambda *x: [y.mul_(2) for y in logit_statistics(*x)], logits, tokens)
    close(doubled, [2 * x for x in values_and_gradient(plain, logits, tokens)])


# --- what is ruled out, and what does not count


def test_ruled_out_tokens_add_nothing(device):
    logits = tensor([[0.0, -INF, 0.0, -INF], [-INF, 3.0, -INF, -INF], [-INF, 0.0, 0.0, -INF]], device)
    logprobs, entropies = logit_statistics(logits, tensor([2, 1, 0], device, torch.int64))
    assert logprobs.tolist() == pytest.approx([-math.log(2), 0, -INF], rel=1e-15)
    assert entropies.tolist() == pytest.approx([math.log(2), 0, math.log(2)], abs=1e-15)
    (gradient,) = torch.autograd.grad(logprobs.sum() + 5 * entropies.sum(), logits)
    # One at the token less the probabilities; the entropies are at an end of their range.
    assert gradient.tolist() == [
        pytest.approx(row, abs=1e-15) for row in ([-0.5, 0, 0.5, 0], [0, 0, 0, 0], [1, -0.5, -0.5, 0])
    ]


def test_where_everything_is_ruled_out_there_is_no_distribution(device):
    logprobs, entropies = logit_statistics(tensor([-INF, -INF], device), tensor(0, device, torch.int64))
    assert logprobs.isnan() and entropies.isnan()


def test_the_distance_of_two_logits_may_overflow(device):
    logits = tensor([[3e38, -3e38], [3e38, -3e38]], device, torch.float32)
    logprobs, entropies = logit_statistics(logits, tensor([0, 1], device, torch.int64))
    assert (logprobs.tolist(), entropies.tolist()) == ([0, -INF], [0, 0])
    # 1e30 times a probability of 0 is 0, whatever its logarithm.
    (gradient,) = torch.autograd.grad(logprobs.sum() + 1e30 * entropies.sum(), logits)
    assert gradient.tolist() == [[0, 0], [-1, 1]]


@pytest.mark.parametrize("poison", [math.nan, INF, -INF])
def test_what_does_not_count_may_hold_anything(poison, device):
    logits, tokens = arguments((2, 4), device)
    mask = torch.tensor([[True, False, True, True], [False, True, True, False]], device=device)
    expected = values_and_gradient(plain, logits, tokens, mask=mask)
    poisoned = logits.detach().masked_fill(~mask.unsqueeze(-1), poison).requires_grad_()
    marked = tokens.masked_fill(~mask, -100)
    for options in ({"mask": mask}, {"ignore_index": -100}):
        results, gradient = values_and_gradient(logit_statistics, poisoned, marked, **options)
        close([results, gradient], expected)
        assert (results[:, ~mask] == 0).all() and (gradient[~mask] == 0).all()


def test_a_nan_that_counts_surfaces_in_its_own_row(device):
    logits, tokens = arguments((2,), device)
    logits = logits.detach().clone()
    logits[0, 3] = math.nan
    for found in logit_statistics(logits, tokens):
        assert found.isnan().tolist() == [True, False]


def test_a_nan_from_above_does_not_pass_where_nothing_counts(device):
    logits, tokens = arguments((3,), device)
    mask = torch.tensor([True, False, True], device=device)
    results = torch.stack(logit_statistics(logits, tokens, mask=mask))
    upstream = torch.ones_like(results).masked_fill(~mask, math.nan)
    (gradient,) = torch.autograd.grad(results, logits, upstream)
    assert gradient.isfinite().all() and (gradient[1] == 0).all() and (gradient[0] != 0).all()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)], ids=str)
def test_no_tokens(shape, device):
    logits, tokens = arguments(shape, device)
    found = logit_statistics(logits, tokens)
    assert [x.shape for x in found] == [shape, shape]
    (found.logprobs.sum() + found.entropies.sum()).backward()
    assert logits.grad.shape == logits.shape


def test_a_vocabulary_of_one_token_is_certain(device):
    results, gradient = values_and_gradient(logit_statistics, *arguments((3,), device, vocabulary=1))
    assert (results == 0).all() and (gradient == 0).all()


# --- precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_in_half_precision_the_error_is_that_of_float32(dtype, device):
    logits, tokens = arguments((64,), device, dtype, vocabulary=1025)

    def cast(call, dtype):
        return values_and_gradient(call, logits.detach().to(dtype).requires_grad_(), tokens)

    exact, single = cast(plain, torch.float64), cast(plain, torch.float32)
    found = values_and_gradient(logit_statistics, logits, tokens)
    assert [x.dtype for x in found] == [torch.float32, dtype]

    def error(x, right):
        return (x.double() - right).abs().max()

    assert error(found[0], exact[0]) <= 2 * error(single[0], exact[0])
    # The gradient returns in half precision: rounding the exact one to it is the least error there is.
    assert error(found[1], exact[1]) <= 1.01 * error(exact[1].to(dtype), exact[1])


# --- errors and compiled graphs


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_a_token_outside_the_vocabulary_is_nan_in_a_compiled_graph(device):
    logits, tokens = arguments((3,), device)
    tokens[1] = 7
    compiled = torch.compile(logit_statistics, fullgraph=True, backend="aot_eager")
    logprobs, entropies = compiled(logits, tokens)
    assert logprobs.isnan().tolist() == [False, True, False]
    close(entropies, plain(logits, tokens.clamp(max=6))[1])


LOGITS, TOKENS = torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.int64)
SHAPE = "nothing is broadcast: expand or index one of them first"
VOCABULARY = "must have the shape of logits without its last dimension, the vocabulary, got"


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (
            {"logits": LOGITS.long()},
            TypeError,
            "logits must be a floating-point tensor, got torch.int64; write logits.float()",
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
            {"logits": LOGITS[..., :0]},
            ValueError,
            "logits must have a last dimension of at least 1, the vocabulary, got [2, 3, 0]",
        ),
        ({"tokens": TOKENS[:1]}, ValueError, f"tokens {VOCABULARY} [1, 3] and [2, 3, 4]; {SHAPE}"),
        ({"mask": TOKENS[:1].bool()}, ValueError, f"mask {VOCABULARY} [1, 3] and [2, 3, 4]; {SHAPE}"),
        (
            {"tokens": TOKENS + 4},
            ValueError,
            "tokens must lie between 0 and 3, got 4 at index [0, 0]; leave padding out with mask or ignore_index",
        ),
        ({"temperature": 0}, ValueError, "temperature must be finite and above 0, got 0"),
        ({"ignore_index": 0.5}, ValueError, "ignore_index must be an int, got 0.5"),
    ],
)
def test_errors(change, kind, text):
    with pytest.raises(kind) as raised:
        logit_statistics(**{"logits": LOGITS, "tokens": TOKENS, **change})
    assert str(raised.value) == text


def test_the_last_token_of_the_vocabulary_is_in_it(device):
    logits, tokens = arguments((3,), device)
    last = torch.full_like(tokens, 6)
    close(logit_statistics(logits, last).logprobs, plain(logits, last)[0])


def test_what_does_not_count_may_be_any_number(device):
    # Beside a token that counts, in one piece.
    logits, _ = arguments((3,), device)
    tokens = torch.tensor([6, 7, -2], device=device)
    for options in ({"mask": tokens == 6}, {"mask": tokens != -2, "ignore_index": 7}):
        found = logit_statistics(logits, tokens, **options)
        expected = plain(logits, tokens.clamp(0, 6), mask=tokens == 6)
        close(torch.stack(list(found)), torch.stack(expected))
