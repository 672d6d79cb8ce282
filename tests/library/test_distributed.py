"""Sums over ranks, the factor for averaged gradients, and whitening over ranks."""

import math

import pytest
import torch
import torch.distributed as dist

import reference
from ppo_core import (
    aggregate,
    batch_count,
    global_sum,
    policy_loss,
    reinforce_plus_plus,
    sharded_logprobs,
    undo_mean_over_ranks,
    whiten,
)

from .ranks import on_ranks, sizes

RANKS = pytest.mark.parametrize("ranks", [1, 2, 3, 4])
MODES = ["token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant"]
GROUP = (
    "group must be a torch.distributed.ProcessGroup or None, got {}; of a device mesh take mesh.get_group(), and "
    "call on no rank that is outside the group"
)


# --- global_sum


@RANKS
@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        (torch.int64, torch.int64),
        (torch.int32, torch.int64),
        (torch.uint8, torch.int64),
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
    ids=str,
)
def test_sums_by_hand(ranks, dtype, result, device):
    # Rank 0 adds 1 and 100, rank 1 adds 2 and 100, and so on. Three hundred is too much for a uint8.
    held = [torch.tensor([[rank + 1], [100]], dtype=dtype, device=device) for rank in range(ranks)]
    for found in on_ranks(ranks, lambda rank, group: global_sum(held[rank], group)):
        assert found.dtype == result
        assert found.tolist() == [[ranks * (ranks + 1) // 2], [100 * ranks]]
    assert [x.tolist() for x in held] == [[[rank + 1], [100]] for rank in range(ranks)]


@RANKS
def test_sums_agree_with_the_plain_float_twin(ranks, device):
    generator = torch.Generator().manual_seed(ranks)
    held = torch.randn(ranks, 2, 3, generator=generator, dtype=torch.float64).to(device)
    expected = torch.tensor(reference.global_sum(held[0].tolist(), held.tolist()), dtype=torch.float64)
    for found in on_ranks(ranks, lambda rank, group: global_sum(held[rank], group)):
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-15, atol=1e-15)


def test_every_rank_gets_the_same_bits(device):
    held = torch.rand(4, 100, generator=torch.Generator().manual_seed(0)).to(device)
    first, *others = on_ranks(4, lambda rank, group: global_sum(held[rank], group))
    assert all(torch.equal(first, other) for other in others)


def test_a_sum_does_not_depend_on_how_the_tensors_lie_in_memory(device):
    x = torch.arange(6.0, device=device).reshape(2, 3)
    held = [x, x.mT.contiguous().mT, x[:1].expand(2, 3)]
    for found in on_ranks(3, lambda rank, group: global_sum(held[rank], group)):
        assert found.tolist() == [[0, 3, 6], [6, 9, 12]]


@pytest.mark.parametrize("shape", [(), (0,), (0, 3)], ids=str)
def test_sums_of_a_single_number_and_of_none(shape, device):
    for found in on_ranks(2, lambda rank, group: global_sum(torch.ones(shape, device=device), group)):
        assert found.tolist() == torch.full(shape, 2.0).tolist()
        assert found.shape == shape


def test_a_sum_is_data(device):
    held = torch.ones(2, device=device, requires_grad=True)
    assert not any(x.requires_grad for x in on_ranks(2, lambda rank, group: global_sum(held, group)))


def test_counts_of_the_pieces_are_the_count_of_the_whole(device):
    mask = torch.tensor([[True, True], [True, False], [False, False]], device=device)
    for mode, expected in (("token_mean", 3), ("sequence_mean_token_mean", 2)):

        def call(rank, group, mode=mode):
            return global_sum(batch_count(mask[rank : rank + 1], mode=mode), group).item()

        assert on_ranks(3, call) == [expected] * 3


# --- undo_mean_over_ranks


@RANKS
def test_the_factor_is_the_number_of_ranks(ranks, device):
    loss = torch.tensor([0.5, -1.0], dtype=torch.float64, device=device)

    def call(rank, group):
        leaf = loss.clone().requires_grad_()
        result = undo_mean_over_ranks(leaf, group)
        (gradient,) = torch.autograd.grad(result.sum(), leaf)
        return result.tolist(), gradient.tolist()

    twin = reference.undo_mean_over_ranks(loss.tolist(), [None] * ranks)
    assert twin == [0.5 * ranks, -ranks]
    assert on_ranks(ranks, call) == [(twin, [ranks, ranks])] * ranks


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16], ids=str)
def test_a_loss_in_half_precision_becomes_float32(half, device):
    # 40000 times 2 is too much for a float16.
    loss = torch.tensor(40000.0, device=device).to(half).requires_grad_()
    for found in on_ranks(2, lambda rank, group: undo_mean_over_ranks(loss, group)):
        assert found.dtype == torch.float32
        assert found.item() == 2 * loss.float().item()


# --- a loss in parts


def batch(device):
    """Draw six answers of up to four tokens, one of which has no counted token."""
    generator = torch.Generator().manual_seed(3)
    tensors = [torch.randn(6, 4, generator=generator, dtype=torch.float64) / 3 for _ in range(3)]
    mask = torch.rand(6, 4, generator=generator) < 0.7
    mask[2] = False
    return *(x.to(device) for x in tensors), mask.to(device)


def averaged_gradient(shares, mode, factor, device, micro_batches=1):
    """Return the loss and the gradient of a scale of all log-probabilities, averaged over ranks.

    Each rank has its share of the rows. A rank's gradient is the sum over its micro-batches, as in a trainer; the
    average is that of `DistributedDataParallel`.
    """
    tensors = batch(device)
    ends = [sum(shares[: rank + 1]) for rank in range(len(shares))]

    def call(rank, group):
        scale = torch.ones((), dtype=torch.float64, device=device, requires_grad=True)
        rows = [x[end - share : end] for x in tensors for share, end in [(shares[rank], ends[rank])]]
        count = 24 if mode == "constant" else global_sum(batch_count(rows[-1], mode=mode), group)
        total = 0.0
        for pieces in zip(*(x.tensor_split(micro_batches) for x in rows), strict=True):
            logprobs, old_logprobs, advantages, mask = pieces
            losses = policy_loss(scale * logprobs, old_logprobs, advantages, epsilon=0.2, mask=mask)
            loss = aggregate(losses, mask, mode=mode, denominator=count)
            factor(loss, group).backward()
            total = total + loss
        return global_sum(total, group), global_sum(scale.grad, group) / len(shares)

    return on_ranks(len(shares), call)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shares", [[3, 3], [6, 0], [1, 5], [2, 1, 0, 3], [0, 0, 3, 3]], ids=str)
@pytest.mark.parametrize("micro_batches", [1, 2, 4])
def test_loss_and_gradient_of_the_parts_are_those_of_the_whole(mode, shares, micro_batches, device):
    *tensors, mask = batch(device)
    scale = torch.ones((), dtype=torch.float64, device=device, requires_grad=True)
    losses = policy_loss(scale * tensors[0], *tensors[1:], epsilon=0.2, mask=mask)
    # 24 places, of which all rows and some tokens count.
    whole = aggregate(losses, mask, mode=mode, denominator=24 if mode == "constant" else None)
    whole.backward()

    for found in averaged_gradient(shares, mode, undo_mean_over_ranks, device, micro_batches):
        torch.testing.assert_close(found, (whole.detach(), scale.grad), rtol=1e-13, atol=0)


@pytest.mark.parametrize("ranks", [2, 3])
def test_without_the_factor_the_gradient_is_too_small_by_it(ranks, device):
    shares = [2] * (ranks - 1) + [8 - 2 * ranks]
    with_it = averaged_gradient(shares, "token_mean", undo_mean_over_ranks, device)[0]
    without = averaged_gradient(shares, "token_mean", lambda loss, group: loss, device)[0]
    assert with_it[0] == without[0] != 0
    assert with_it[1].item() == pytest.approx(ranks * without[1].item(), rel=1e-15)
    assert abs(without[1].item()) > 1e-3


# --- whiten


def whitened(shares, x, mask, call=whiten, **options):
    """Whiten what lies on ranks, the first elements on the first; join the results."""
    xs, masks = x.split(shares), mask.split(shares)
    return torch.cat(
        on_ranks(len(shares), lambda rank, group: call(xs[rank], masks[rank], group=group, **options))
    )


@RANKS
@pytest.mark.parametrize("ddof", [0, 1])
def test_whitening_over_ranks_agrees_with_the_plain_float_twin(ranks, ddof, device):
    generator = torch.Generator().manual_seed(ranks)
    x = torch.randn(9, 2, generator=generator, dtype=torch.float64).to(device)
    mask = (torch.rand(9, 2, generator=generator) < 0.7).to(device)
    for shares in sizes(9, ranks):
        found = whitened(shares, x, mask, ddof=ddof, eps=0.01)
        group = [(a.tolist(), b.tolist()) for a, b in zip(x.split(shares), mask.split(shares), strict=True)]
        expected = sum((reference.whiten(*rank, ddof=ddof, eps=0.01, group=group) for rank in group), [])
        torch.testing.assert_close(found.tolist(), expected, rtol=1e-13, atol=1e-14)
        torch.testing.assert_close(found, whiten(x, mask, ddof=ddof, eps=0.01), rtol=1e-13, atol=1e-14)


def test_whitening_over_ranks_by_hand(device):
    # Mean 2, squares 1 + 0 + 1; 99 does not count. Alone, the first rank would have the mean 1.
    x, mask = torch.tensor([1.0, 99.0, 2.0, 3.0], device=device), torch.ones(4, dtype=torch.bool)
    mask = mask.to(device)
    mask[1] = False
    for shares in ([2, 2], [1, 1, 2], [1, 1, 1, 1], [0, 4]):
        assert whitened(shares, x, mask, ddof=1, eps=1e-8).tolist() == pytest.approx([-1, 0, 0, 1], abs=1e-6)


@pytest.mark.parametrize("ddof", [0, 1])
def test_one_element_on_all_ranks_gives_zero_and_so_does_none(ddof, device):
    x = torch.tensor([7.0, 99.0, math.nan], device=device)
    for mask in ([True, False, False], [False, False, False]):
        mask = torch.tensor(mask, device=device)
        for shares in sizes(3, 2):
            assert whitened(shares, x, mask, ddof=ddof, eps=1e-8).tolist() == [0, 0, 0]


def test_one_element_on_a_rank_is_not_alone(device):
    # Two elements, 3 and 5, on two ranks: mean 4, deviation 1 with ddof 0.
    x, mask = torch.tensor([3.0, 5.0], device=device), torch.tensor([True, True], device=device)
    assert whitened([1, 1], x, mask, ddof=0, eps=1.0).tolist() == [-0.5, 0.5]


def test_a_spread_far_below_the_mean_keeps_its_digits_over_ranks(device):
    # In float32, whose steps at 1e4 are 1e-3, with a deviation of 1e-2; see test_whitening.py.
    generator = torch.Generator().manual_seed(0)
    x = (1e4 + 1e-2 * torch.randn(100, generator=generator, dtype=torch.float64)).float().to(device)
    mask = torch.arange(100, device=device) % 5 != 3
    expected = torch.tensor(reference.whiten(x.tolist(), mask.tolist(), ddof=1, eps=1e-30))
    for shares in ([40, 60], [1, 0, 9, 90]):
        found = whitened(shares, x, mask, ddof=1, eps=1e-30)
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-6, atol=1e-6)


def test_a_count_above_the_whole_numbers_of_float32_is_exact(monkeypatch, device):
    # 2^24 + 1 elements that count is more than float32 can tell from 2^24: the counts travel as integers.
    exchanged = []
    monkeypatch.setattr(
        dist, "all_reduce", lambda x, **_: exchanged.append((x.dtype, x.shape, x.device.type))
    )
    x, mask = torch.randn(3, device=device), torch.ones(3, dtype=torch.bool, device=device)
    on_ranks(1, lambda rank, group: whiten(x, mask, ddof=1, eps=1e-8, group=group))
    assert exchanged == [(torch.int64, (), device), *[(torch.float32, (), device)] * 3]


def test_a_nan_on_a_counted_element_reaches_every_rank(device):
    x = torch.tensor([1.0, 2.0, math.nan, 4.0], device=device)
    mask = torch.tensor([True, False, True, True], device=device)
    assert whitened([2, 2], x, mask, ddof=1, eps=1e-8).isnan().tolist() == [True, False, True, True]
    mask[2] = False
    assert not whitened([2, 2], x, mask, ddof=1, eps=1e-8).isnan().any()


def test_half_precision_over_ranks_is_float32(device):
    x = torch.tensor([1.0, 2.0, 3.0], device=device)
    mask = torch.ones(3, dtype=torch.bool, device=device)
    found = whitened([1, 2], x.half(), mask, ddof=1, eps=1e-8)
    assert torch.equal(found, whitened([1, 2], x, mask, ddof=1, eps=1e-8))


def test_without_a_group_a_process_whitens_what_it_has(device):
    # Even where a default group stands.
    x, mask = torch.tensor([1.0, 3.0], device=device), torch.ones(2, dtype=torch.bool, device=device)
    expected = whiten(x, mask, ddof=0, eps=1.0).tolist()
    assert expected == [-0.5, 0.5]
    assert on_ranks(2, lambda rank, group: whiten(x + rank, mask, ddof=0, eps=1.0).tolist()) == [expected] * 2


# --- REINFORCE++


@RANKS
@pytest.mark.parametrize("packed", [False, True], ids=["rows", "packed"])
def test_reinforce_plus_plus_over_ranks_agrees_with_the_plain_float_twin(ranks, packed, device):
    generator = torch.Generator().manual_seed(ranks)
    mask = (torch.rand(5, 6, generator=generator) < 0.7).to(device)
    rewards = torch.randn(5, 6, generator=generator, dtype=torch.float64).to(device) * mask
    ids = torch.tensor([0, 0, 1, 1, 1, 2], device=device).expand(5, 6)
    numbers = {"gamma": 0.9, "ddof": 1, "eps": 0.01}
    for shares in sizes(5, ranks):
        held = [rewards.split(shares), mask.split(shares), *([ids.split(shares)] if packed else [])]

        def call(rank, group, held=held):
            options = {"sequence_ids": held[2][rank]} if packed else {}
            return reinforce_plus_plus(held[0][rank], held[1][rank], group=group, **options, **numbers)

        found = torch.cat(on_ranks(ranks, call)).tolist()
        group = [[x.tolist() for x in rank] for rank in zip(*held, strict=True)]
        expected = [
            reference.reinforce_plus_plus(
                *rank[:2], sequence_ids=rank[2] if packed else None, group=group, **numbers
            )
            for rank in group
        ]
        torch.testing.assert_close(found, sum(expected, []), rtol=1e-13, atol=1e-14)


# --- what is refused


@pytest.mark.parametrize("group", [-100, "nccl", [0, 1]], ids=["a rank outside", "a word", "a list"])
def test_what_is_no_group(group):
    # torch.distributed.new_group returns -100 on ranks that are not in the group; there all_reduce does nothing
    # but warn.
    x, mask = torch.ones(2), torch.ones(2, dtype=torch.bool)
    text = GROUP.format(type(group).__name__)
    for call in (
        lambda: global_sum(x, group),
        lambda: undo_mean_over_ranks(x, group),
        lambda: whiten(x, mask, ddof=1, eps=1e-8, group=group),
        lambda: reinforce_plus_plus(x, mask, gamma=1.0, ddof=1, eps=1e-8, group=group),
    ):
        with pytest.raises(TypeError) as raised:
            call()
        assert str(raised.value) == text


def test_there_must_be_a_default_group_where_none_is_named():
    for call in (global_sum, undo_mean_over_ranks):
        with pytest.raises(ValueError, match="^Default process group has not been initialized"):
            call(torch.ones(()), None)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (3, "x must be a torch.Tensor, got int; write torch.tensor(x)"),
        (torch.ones(2).bool(), "x must be a tensor of integers or floats, got torch.bool; count a mask with x.sum()"),
        (torch.ones(2) * 1j, "x must be a tensor of integers or floats, got torch.complex64; count a mask with x.sum()"),
    ],
)  # fmt: skip
def test_what_cannot_be_summed(x, message):
    with pytest.raises(TypeError) as raised:
        global_sum(x, None)
    assert str(raised.value) == message


def test_a_loss_is_a_tensor_of_floats():
    with pytest.raises(
        TypeError, match=r"^loss must be a floating-point tensor, got torch.int64; write loss.float"
    ):
        undo_mean_over_ranks(torch.tensor(1), None)


# --- the default group, and torch.compile


@pytest.fixture
def default_group():
    """A group of this process alone, as a launcher makes it."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_none_is_the_default_group(default_group):
    assert global_sum(torch.tensor([2, 3]), None).tolist() == [2, 3]
    assert undo_mean_over_ranks(torch.tensor(0.5), None).item() == 0.5


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU: NCCL is not tried")
def test_nccl_takes_what_is_exchanged():
    # One GPU is one rank of NCCL; the types and shapes are those of many.
    x = torch.tensor([1.0, 2.0, 3.0], device="cuda", dtype=torch.float64)
    mask, tokens = torch.ones_like(x).bool(), torch.tensor(2, device="cuda")
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    try:
        group = dist.group.WORLD
        assert global_sum(mask.sum(), group).item() == 3
        assert global_sum(x.half(), group).tolist() == [1, 2, 3]
        assert whiten(x, mask, ddof=1, eps=1e-12, group=group).tolist() == pytest.approx([-1, 0, 1])
        for dtype in (torch.float64, torch.bfloat16):
            leaf = x.to(dtype).requires_grad_()
            found = sharded_logprobs(leaf, tokens, start=0, group=group)
            expected = torch.log_softmax(x, -1)
            assert found.logprobs.item() == pytest.approx(expected[2].item(), rel=1e-6)
            (gradient,) = torch.autograd.grad(found.logprobs, leaf)
            assert gradient.sum().item() == pytest.approx(0, abs=1e-2)
    finally:
        dist.destroy_process_group()


# The compiler itself makes an object of each autograd.Function, and torch warns of that.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_compiles_into_one_graph_with_its_collectives(default_group):
    x, mask = torch.randn(2, 3, dtype=torch.float64), torch.tensor([[True, False, True]] * 2)

    def call(x, mask):
        white = whiten(x, mask, ddof=1, eps=1e-8, group=default_group)
        losses = policy_loss(x, x.detach(), white, epsilon=0.2, mask=mask)
        count = global_sum(mask.sum(), default_group)
        loss = aggregate(losses, mask, mode="token_mean", denominator=count)
        return undo_mean_over_ranks(loss, default_group)

    leaf, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    found, expected = torch.compile(call, fullgraph=True, backend="aot_eager")(leaf, mask), call(other, mask)
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=1e-15)
    torch.testing.assert_close(
        torch.autograd.grad(found, leaf), torch.autograd.grad(expected, other), rtol=1e-14, atol=0
    )
