"""Log-probabilities and entropies of logits that are divided over ranks by vocabulary."""

import math

import pytest
import torch
import torch.distributed as dist

import reference
from ppo_core import entropy, sharded_logprobs, token_logprobs

from .ranks import on_ranks, sizes

INF = math.inf
VOCABULARY = 7
RANKS = pytest.mark.parametrize("ranks", [1, 2, 4])


def arguments(shape=(2, 3), device="cpu", dtype=torch.float64, seed=0):
    """Draw the logits of the whole vocabulary, and tokens."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(*shape, VOCABULARY, generator=generator, dtype=torch.float64).to(device, dtype) * 2
    return logits, torch.randint(VOCABULARY, shape, generator=generator).to(device)


def shards(shares, x, tokens, *, weights=None, starts=None, **options):
    """Compute on ranks with their shares of the vocabulary.

    Returns the results of the first rank, after a look that all ranks have the same, and the gradient of all
    logits of a sum in which every element has a weight of its own.
    """
    parts = x.split(shares, -1)
    starts = starts or [sum(shares[:rank]) for rank in range(len(shares))]

    def call(rank, group):
        leaf = parts[rank].detach().clone().requires_grad_()
        found = sharded_logprobs(leaf, tokens, start=starts[rank], group=group, **options)
        (gradient,) = torch.autograd.grad(weighted(found), leaf)
        return torch.stack([x.detach() for x in found]), gradient

    results, gradients = zip(*on_ranks(len(shares), call), strict=True)
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=0, atol=0, equal_nan=True)
    return results[0], torch.cat(gradients, -1)


def weighted(found):
    results = torch.stack(list(found))
    weights = torch.linspace(-1, 2, results.numel(), dtype=results.dtype, device=results.device)
    return (results * weights.reshape(results.shape)).sum()


def plain(x, tokens, *, temperature=1.0, ignore_index=None, mask=None):
    """The definition in torch's own words, with all logits in one place."""
    leaf = x.detach().clone().requires_grad_()
    counts = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
    counts = counts & (tokens != ignore_index) if ignore_index is not None else counts
    logprobs = torch.log_softmax(torch.where(counts.unsqueeze(-1), leaf, 0.0) / temperature, -1)
    picked = logprobs.gather(-1, tokens.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    undecided = -(logprobs.exp() * logprobs).sum(-1)
    found = [torch.where(counts, x, 0.0) for x in (picked, undecided)]
    (gradient,) = torch.autograd.grad(weighted(found), leaf)
    return torch.stack(found).detach(), gradient


def close(found, expected, tolerance=1e-12):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


# --- by hand


def test_by_hand(device):
    # Probabilities 1/2, 1/4 on the first rank and 1/4 on the second; the token is the last.
    logits = torch.tensor([[math.log(2), 0.0, 0.0]], dtype=torch.float64, device=device)
    parts, tokens = logits.split([2, 1], -1), torch.tensor([2], device=device)

    def call(rank, group):
        leaf = parts[rank].clone().requires_grad_()
        found = sharded_logprobs(leaf, tokens, start=2 * rank, group=group)
        assert found._fields == ("logprobs", "entropies")
        (of_logprob,) = torch.autograd.grad(found.logprobs, leaf, retain_graph=True)
        (of_entropy,) = torch.autograd.grad(found.entropies, leaf)
        return found.logprobs.item(), found.entropies.item(), of_logprob.tolist(), of_entropy.tolist()

    first, second = on_ranks(2, call)
    assert first[0] == second[0] == pytest.approx(-math.log(4), rel=1e-15)
    assert first[1] == second[1] == pytest.approx(1.5 * math.log(2), rel=1e-15)
    # One at the token less the probabilities.
    assert first[2][0] == pytest.approx([-1 / 2, -1 / 4], rel=1e-15)
    assert second[2][0] == pytest.approx([3 / 4], rel=1e-15)
    # -p (log p + H): -(log 2) / 4, (log 2) / 8, (log 2) / 8.
    assert first[3][0] == pytest.approx([-math.log(2) / 4, math.log(2) / 8], rel=1e-14)
    assert second[3][0] == pytest.approx([math.log(2) / 8], rel=1e-14)


@RANKS
def test_agrees_with_the_plain_float_twin(ranks, device):
    x, tokens = arguments(device=device)
    mask = torch.tensor([[True, False, True], [True, True, True]], device=device)
    options = {"temperature": 0.6, "ignore_index": int(tokens[0, 2])}
    for shares in sizes(VOCABULARY, ranks):
        found, _ = shards(shares, x, tokens, mask=mask, **options)
        group = [part.tolist() for part in x.split(shares, -1)]
        expected = reference.sharded_logprobs(
            group[0], tokens.tolist(), start=0, group=group, mask=mask.tolist(), **options
        )
        close(found.tolist(), list(expected), 1e-13)


# --- the plain way, in value and gradient


@RANKS
@pytest.mark.parametrize("shape", [(), (2, 3), (2, 2, 3)], ids=str)
def test_equal_to_log_softmax_of_all_logits(ranks, shape, device):
    x, tokens = arguments(shape, device)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(1)).to(device) < 0.6
    for shares in sizes(VOCABULARY, ranks):
        for options in (
            {},
            {"temperature": 0.7},
            {"mask": mask},
            {"ignore_index": 2},
            {"temperature": 3, "ignore_index": 0, "mask": mask},
        ):
            close(shards(shares, x, tokens, **options), plain(x, tokens, **options))


@RANKS
def test_equal_to_the_two_functions_of_all_logits(ranks, device):
    x, tokens = arguments(device=device)
    mask = torch.tensor([[True, False, True], [True, True, False]], device=device)
    options = {"temperature": 1.5, "mask": mask}
    leaf = x.clone().requires_grad_()
    expected = torch.stack([token_logprobs(leaf, tokens, **options), entropy(leaf, **options)])
    (gradient,) = torch.autograd.grad(weighted(expected), leaf)
    for shares in sizes(VOCABULARY, ranks):
        close(shards(shares, x, tokens, **options), (expected.detach(), gradient))


def test_logits_far_apart_neither_overflow_nor_vanish(device):
    # What is subtracted before the exponential is the largest logit of all ranks, not of one.
    x = torch.tensor([[1000.0, 999.0, -1000.0, 0.0, 1000.0, 500.0, -3.0]], device=device)
    for token in range(VOCABULARY):
        tokens = torch.tensor([token], device=device)
        for shares in ([3, 4], [1, 2, 2, 2]):
            close(shards(shares, x, tokens), plain(x, tokens), 1e-5)


def test_the_distance_of_the_token_is_as_exact_as_in_one_process(device):
    # At logits of about 1e4 the steps of float32 are 1e-3. A log-sum-exp in one number would be off by as much.
    x = torch.tensor([[10000.0, 10001.0, 9999.0, 10000.0]], device=device)
    tokens = torch.tensor([3], device=device)
    exact = torch.log_softmax(x.double(), -1)[:, 3]
    found, _ = shards([2, 2], x, tokens)
    assert found[0].item() == pytest.approx(exact.item(), rel=2e-7)


# --- logits of minus infinity


@pytest.mark.parametrize("shares", [[3, 4], [2, 2, 2, 1]], ids=str)
def test_tokens_that_are_ruled_out(shares, device):
    # All tokens of the first rank are ruled out in the first place, one of them is asked for in the second.
    x, _ = arguments((2,), device)
    x[0, : shares[0]] = -INF
    x[1, 4] = -INF
    tokens = torch.tensor([6, 4], device=device)
    found, gradient = shards(shares, x, tokens)
    assert found[0, 1] == -INF
    for place, token in ((0, 6), (1, None)):
        allowed = x[place] > -INF
        probs = torch.softmax(x[place][allowed], 0)
        assert found[1, place].item() == pytest.approx(-(probs * probs.log()).sum().item(), rel=1e-13)
        if token is not None:
            assert found[0, place].item() == pytest.approx(probs[-1].log().item(), rel=1e-13)
    # What is ruled out gets no gradient, but for the one at the token that was asked for.
    assert not gradient.isnan().any()
    assert (gradient[0, : shares[0]] == 0).all()


def test_a_place_where_all_is_ruled_out_is_no_distribution(device):
    x, tokens = arguments((2,), device)
    x[0] = -INF
    found, _ = shards([3, 4], x, tokens)
    assert found.isnan().tolist() == [[True, False], [True, False]]


@pytest.mark.parametrize("element", [0, 6])
def test_a_nan_on_one_rank_surfaces_on_all(element, device):
    # A maximum may lose a NaN, the sum does not.
    x, tokens = arguments((2,), device)
    x[0, element] = math.nan
    for shares in sizes(VOCABULARY, 3):
        found, _ = shards(shares, x, tokens)
        assert found.isnan().tolist() == [[True, False], [True, False]]


# --- what does not count


@pytest.mark.parametrize("poison", [math.nan, INF, -INF])
def test_what_lies_under_the_mask_touches_neither_value_nor_gradient(poison, device):
    x, tokens = arguments(device=device)
    mask = torch.tensor([[True, False, True], [False, True, True]], device=device)
    expected = shards([3, 4], x, tokens, mask=mask)
    poisoned = torch.where(mask.unsqueeze(-1), x, poison)
    found = shards([3, 4], poisoned, torch.where(mask, tokens, -100), mask=mask)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert (found[0][:, ~mask] == 0).all()
    assert (found[1][~mask] == 0).all()


def test_a_gradient_that_is_nan_where_nothing_counts_goes_no_further(device):
    x, tokens = arguments((2,), device)
    mask = torch.tensor([True, False], device=device)

    def call(rank, group):
        leaf = x.split([3, 4], -1)[rank].clone().requires_grad_()
        found = sharded_logprobs(leaf, tokens, start=3 * rank, group=group, mask=mask)
        poison = torch.tensor([1.0, math.nan], dtype=x.dtype, device=device)
        (gradient,) = torch.autograd.grad(list(found), leaf, [poison, poison])
        return gradient

    for gradient in on_ranks(2, call):
        assert not gradient[0].isnan().any()
        assert (gradient[0] != 0).all()
        assert (gradient[1] == 0).all()


def test_nothing_counts(device):
    x, tokens = arguments(device=device)
    found, gradient = shards([3, 4], x, tokens - 100, ignore_index=None, mask=torch.zeros_like(tokens).bool())
    assert (found == 0).all() and (gradient == 0).all()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)], ids=str)
def test_no_tokens_at_all(shape, device):
    x, tokens = arguments(shape, device)
    for shares in sizes(VOCABULARY, 2):
        found, gradient = shards(shares, x, tokens)
        assert found.shape == (2, *shape)
        assert gradient.shape == x.shape


# --- types and memory


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_computed_in_float32(half, device):
    x, tokens = arguments(device=device, dtype=half)
    found, gradient = shards([3, 4], x, tokens, temperature=0.7)
    expected, wide_gradient = shards([3, 4], x.float(), tokens, temperature=0.7)
    assert found.dtype == torch.float32
    assert gradient.dtype == half
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    torch.testing.assert_close(gradient, wide_gradient.to(half), rtol=0, atol=0)


def test_autocast_changes_nothing(device):
    x, tokens = arguments(device=device, dtype=torch.float32)
    expected = shards([3, 4], x, tokens)
    parts = x.split([3, 4], -1)

    def call(rank, group):
        leaf = parts[rank].clone().requires_grad_()
        with torch.autocast(device, dtype=torch.bfloat16):
            found = sharded_logprobs(leaf, tokens, start=3 * rank, group=group)
        return torch.stack([x.detach() for x in found]), torch.autograd.grad(weighted(found), leaf)[0]

    results, gradients = zip(*on_ranks(2, call), strict=True)
    torch.testing.assert_close((results[0], torch.cat(gradients, -1)), expected, rtol=0, atol=0)


def test_arguments_are_left_as_they_were_and_results_are_the_caller_s(device):
    x, tokens = arguments(device=device)
    before = x.clone(), tokens.clone()
    expected = shards([3, 4], x, tokens)[1]
    parts = x.split([3, 4], -1)

    def call(rank, group):
        leaf = parts[rank].detach().requires_grad_()
        found = sharded_logprobs(leaf, tokens, start=3 * rank, group=group)
        total = weighted(found)
        with torch.no_grad():
            found.logprobs.zero_()
            found.entropies.zero_()
        return torch.autograd.grad(total, leaf)[0]

    close(torch.cat(on_ranks(2, call), -1), expected)
    assert torch.equal(x, before[0]) and torch.equal(tokens, before[1])


def test_strides_do_not_matter(device):
    x, tokens = arguments((4, 3), device)
    strided, turned = x.transpose(0, 2).contiguous().transpose(0, 2), tokens.mT.contiguous().mT
    assert not strided.is_contiguous() and not turned.is_contiguous()
    close(shards([3, 4], strided, turned), shards([3, 4], x, tokens), 1e-15)


def test_the_backward_pass_exchanges_nothing(monkeypatch):
    x, tokens = arguments()
    exchanged = []
    monkeypatch.setattr(dist, "all_reduce", lambda x, **_: exchanged.append(tuple(x.shape)))

    def call(rank, group):
        leaf = x.clone().requires_grad_()
        total = weighted(sharded_logprobs(leaf, tokens, start=0, group=group))
        assert exchanged == [(2, 3), (4, 2, 3)]
        total.backward()

    on_ranks(1, call)
    assert exchanged == [(2, 3), (4, 2, 3)]


def test_it_can_be_differentiated_once_only():
    x, tokens = arguments()

    def call(rank, group):
        leaf = x.clone().requires_grad_()
        total = weighted(sharded_logprobs(leaf, tokens, start=0, group=group))
        (gradient,) = torch.autograd.grad(total, leaf, create_graph=True)
        with pytest.raises(RuntimeError) as raised:
            gradient.square().sum().backward()
        return str(raised.value)

    text = "sharded_logprobs can be differentiated once only, got a request for the gradient of its gradient"
    assert on_ranks(1, call) == [text]


# --- what is refused


@pytest.mark.parametrize(
    ("token", "starts", "holders"),
    [(9, None, 0), (-1, None, 0), (1, [0, 0], 2), (1, [2, 5], 0)],
    ids=["beyond", "below", "ranges that overlap", "a gap"],
)
def test_every_rank_raises_for_a_token_that_no_rank_or_several_hold(token, starts, holders):
    # Had one rank raised alone, the others would wait for it at their next call.
    x, tokens = arguments()
    tokens[:] = 3
    tokens[0, 2] = token
    tokens[1, 1] = 99
    text = (
        f"tokens must each lie in the range of one rank, got {token} at index [0, 2], in the range of {holders}; give "
        "each rank its own start, and leave padding out with mask or ignore_index"
    )

    def call(rank, group):
        part = x.split([3, 4], -1)[rank]
        with pytest.raises(ValueError) as raised:
            sharded_logprobs(part, tokens, start=(starts or [0, 3])[rank], group=group)
        return str(raised.value)

    assert on_ranks(2, call) == [text] * 2


def test_where_nothing_may_be_looked_at_such_a_token_is_nan(monkeypatch):
    monkeypatch.setattr("ppo_core.checks.may_look", lambda x: False)
    x, tokens = arguments()
    tokens[1, 2] = 9
    found, _ = shards([3, 4], x, tokens)
    assert found[0].isnan().tolist() == [[False] * 3, [False, False, True]]
    assert not found[1].isnan().any()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"logits": torch.ones(2, 3).long()}, TypeError,
         "logits must be a floating-point tensor, got torch.int64; write logits.float()"),
        ({"logits": torch.tensor(1.0)}, ValueError,
         "logits must have a last dimension of at least 0, the vocabulary, got []"),
        ({"tokens": torch.ones(2)}, TypeError, "tokens must be an int64 tensor, got torch.float32; write tokens.long()"),
        ({"tokens": torch.ones(3).long()}, ValueError,
         "tokens must have the shape of logits without its last dimension, the vocabulary, got [3] and [2, 3]; nothing "
         "is broadcast: expand or index one of them first"),
        ({"mask": torch.ones(2)}, TypeError,
         "mask must be a bool tensor (True: the token counts), got torch.float32; write mask.bool()"),
        ({"mask": torch.ones(3).bool()}, ValueError,
         "mask must have the shape of logits without its last dimension, the vocabulary, got [3] and [2, 3]; nothing is "
         "broadcast: expand or index one of them first"),
        ({"start": 0.0}, ValueError, "start must be an int, got 0.0"),
        ({"start": True}, TypeError, "start must be a plain number, got bool; write a float or an int"),
        ({"start": -1}, ValueError, "start must be finite and at least 0, got -1"),
        ({"temperature": 0}, ValueError, "temperature must be finite and above 0, got 0"),
        ({"ignore_index": 0.5}, ValueError, "ignore_index must be an int, got 0.5"),
        ({"group": "tensor"}, TypeError,
         "group must be a torch.distributed.ProcessGroup or None, got str; of a device mesh take mesh.get_group(), and "
         "call on no rank that is outside the group"),
    ],
)  # fmt: skip
def test_what_does_not_fit(change, error, message):
    options = {
        "logits": torch.ones(2, 3),
        "tokens": torch.ones(2).long(),
        "start": 0,
        "group": None,
        **change,
    }
    with pytest.raises(error) as raised:
        sharded_logprobs(**options)
    assert str(raised.value) == message


# --- the default group, and torch.compile


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_compiles_into_one_graph_with_its_collectives():
    x, tokens = arguments()
    tokens[0, 0] = -100
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:

        def call(logits, tokens):
            return sharded_logprobs(
                logits, tokens, start=0, group=dist.group.WORLD, temperature=0.7, ignore_index=-100
            )

        leaf = x.clone().requires_grad_()
        found = torch.compile(call, fullgraph=True, backend="aot_eager")(leaf, tokens)
        (gradient,) = torch.autograd.grad(weighted(found), leaf)
    finally:
        dist.destroy_process_group()
    expected = plain(x, tokens, temperature=0.7, ignore_index=-100)
    close((torch.stack([x.detach() for x in found]), gradient), expected)
