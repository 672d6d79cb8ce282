"""The recurrence behind advantages and returns, solved in blocks: beside the loop over time that defines it."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ppo_core import discounted_returns, gae
from ppo_core.recurrence import backward_recurrence

# Around the edges of a block of 8 places, of a block of 8 blocks, and of one of those 8 times.
LENGTHS = (1, 2, 7, 8, 9, 16, 17, 63, 64, 65, 100, 511, 512, 513, 1000)


def loop(terms, gates, joined):
    found, behind = [], torch.zeros_like(terms[..., 0])
    for x, g, j in zip(*(tensor.unbind(-1)[::-1] for tensor in (terms, gates, joined)), strict=True):
        behind = x + g * torch.where(j, behind, 0.0)
        found.append(behind)
    return torch.stack(found[::-1], -1)


def gae_loop(rewards, values, mask, *, gamma, decay, sequence_ids):
    """GAE step by step, in the precision of what is given; `decay` is gamma lambda, one for each row."""
    advantage = next_value = torch.zeros_like(rewards[:, 0])
    found, following = [], sequence_ids[:, -1]
    for r, v, counts, ids in zip(
        *(x.unbind(-1)[::-1] for x in (rewards, values, mask, sequence_ids)), strict=True
    ):
        advantage, next_value = (torch.where(ids == following, x, 0.0) for x in (advantage, next_value))
        here = r + gamma * next_value - v + decay * advantage
        advantage, next_value = torch.where(counts, here, advantage), torch.where(counts, v, next_value)
        found.append(torch.where(counts, advantage, 0.0))
        following = ids
    return torch.stack(found[::-1], -1)


def draw(length, device, dtype=torch.float64, rows=3):
    """Draw terms, gates with some of exactly 0 and 1, and where one in ten places begins a sequence."""
    torch.manual_seed(length)
    terms, gates = torch.randn(rows, length, dtype=dtype), torch.rand(rows, length, dtype=dtype) * 1.2
    gates = torch.where(gates < 0.1, 0.0, gates.clamp(max=1))
    return terms.to(device), gates.to(device), (torch.rand(rows, length) < 0.9).to(device)


# --- the recurrence


def test_by_hand(device):
    # 4; 2 + 4/2 = 4; 1 + 4 = 5. The last gate has nothing behind it.
    terms = torch.tensor([1.0, 2.0, 4.0], device=device)
    gates = torch.tensor([1.0, 0.5, 0.25], device=device)
    assert backward_recurrence(terms, gates).tolist() == [5, 4, 4]
    # With a border behind the second: 2; 1 + 2 = 3.
    joined = torch.tensor([True, False, True], device=device)
    assert backward_recurrence(terms, gates, joined).tolist() == [3, 2, 4]


@pytest.mark.parametrize("length", LENGTHS)
def test_it_is_the_loop(length, device):
    terms, gates, joined = draw(length, device)
    before = terms.clone(), gates.clone(), joined.clone()
    everywhere = torch.ones_like(joined)
    cases = [
        ((terms, gates), loop(terms, gates, everywhere)),
        ((terms, gates, joined), loop(terms, gates, joined)),
    ]
    for arguments, expected in cases:
        torch.testing.assert_close(backward_recurrence(*arguments), expected, rtol=1e-12, atol=1e-14)
    for argument, copy in zip((terms, gates, joined), before, strict=True):
        assert torch.equal(argument, copy)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 9), (0, 100), (2, 0, 3)], ids=str)
def test_without_a_place_there_is_nothing(shape, device):
    terms, joined = torch.zeros(shape, device=device), torch.ones(shape, dtype=torch.bool, device=device)
    assert backward_recurrence(terms, terms).shape == shape
    assert backward_recurrence(terms, terms, joined).shape == shape


def test_the_order_in_memory_does_not_matter(device):
    tensors = draw(70, device)
    turned = [x.t().contiguous().t() for x in tensors]
    assert torch.equal(backward_recurrence(*turned), backward_recurrence(*tensors))


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", [3, 8, 77, 199])
def test_what_is_not_finite_reaches_the_places_before_it_in_its_sequence_alone(place, poison, device):
    terms, _, _ = draw(200, device)
    gates = torch.full_like(terms, 0.9)
    # Sequences of 13 places, so that borders lie at every place of a block.
    numbers = torch.arange(200, device=device) // 13
    joined = (numbers == torch.cat([numbers[1:], numbers[-1:]])).expand_as(terms)
    clean = backward_recurrence(terms, gates, joined)
    terms[1, place] = poison
    found = backward_recurrence(terms, gates, joined)
    reached = torch.zeros_like(joined)
    reached[1] = (numbers == numbers[place]) & (torch.arange(200, device=device) <= place)
    assert torch.equal(~found.isfinite(), reached)
    assert torch.equal(found[~reached], clean[~reached])


def test_a_gate_of_0_is_no_border(device):
    # 0 times NaN is NaN, as in the loop.
    terms, gates, _ = draw(100, device)
    terms[:, 60] = torch.nan
    found = backward_recurrence(terms, torch.zeros_like(gates))
    assert found[:, :61].isnan().all()
    assert torch.equal(found[:, 61:], terms[:, 61:])


def test_a_sum_that_overflows_stays_in_its_sequence(device):
    # Every number is finite, 3e38 + 3e38 is not.
    terms = torch.full((1, 40), 3e38, device=device)
    joined = torch.ones(1, 40, dtype=torch.bool, device=device)
    joined[:, 9] = joined[:, 19] = False
    terms[:, :10] = terms[:, 20:] = 1.0
    found = backward_recurrence(terms, torch.ones_like(terms), joined)
    assert found[0, :10].tolist() == list(range(10, 0, -1))
    assert found[0, 10:19].isinf().all()
    assert found[0, 19:21].tolist() == [torch.tensor(3e38).item(), 20]


# --- how much is computed


class Work(TorchDispatchMode):
    """Count what each operation of torch makes."""

    def __init__(self):
        super().__init__()
        self.made = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if isinstance(result, torch.Tensor) and name not in ("view", "slice", "select"):
            self.made.append((name, result.numel()))
        return result


def work(call):
    with Work() as found:
        call()
    return found.made


def of_gae(length, packed):
    mask = torch.rand(2, length) < 0.8
    ids = (torch.rand(2, length) < 0.1).cumsum(-1) if packed else None
    values = torch.randn(2, length)
    return lambda: gae(values * mask, values, mask, gamma=0.99, lam=0.95, sequence_ids=ids)


@pytest.mark.parametrize(
    # A level has 7 steps to sum its blocks up and 8 inside them; the topmost, of at most 8 places, the 8 alone.
    ("length", "steps"),
    [(1, 8), (8, 8), (9, 23), (64, 23), (65, 38), (512, 38), (513, 53), (4096, 53)],
)
def test_the_number_of_steps_grows_with_the_logarithm_of_the_length(length, steps):
    terms, gates, joined = draw(length, "cpu")
    for arguments in ((terms, gates), (terms, gates, joined)):
        made = work(lambda arguments=arguments: backward_recurrence(*arguments))
        assert sum(name.startswith("addcmul") for name, _ in made) == steps


@pytest.mark.parametrize("packed", [False, True])
def test_the_work_of_gae_grows_with_the_length(packed):
    short, long = (work(of_gae(length, packed)) for length in (512, 8 * 512))
    assert len(long) < len(short) + 60
    assert sum(size for _, size in long) < 8.1 * sum(size for _, size in short)


@pytest.mark.parametrize("packed", [False, True])
def test_a_long_row_compiles(packed, device):
    torch.manual_seed(0)
    rewards, values = torch.randn(2, 2, 600, dtype=torch.float64, device=device)
    mask = torch.rand(2, 600, device=device) < 0.8
    ids = (torch.rand(2, 600, device=device) < 0.1).cumsum(-1) if packed else None
    arguments = {"gamma": 0.99, "lam": 0.95, "sequence_ids": ids}
    rewards = torch.where(mask, rewards, 0.0)
    compiled = torch.compile(gae, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(
        compiled(rewards, values, mask, **arguments),
        gae(rewards, values, mask, **arguments),
        rtol=1e-13,
        atol=1e-13,
    )


# --- advantages and returns of long answers


def long_batch(length):
    """Draw rows of every kind, each kind twice: numbers of any size, and a critic that is nearly right."""
    torch.manual_seed(length)
    places = torch.arange(length)
    ragged = places < torch.randint(length // 2, length, (2, 1))
    turns = (places // 100) % 3 > 0
    holes = torch.rand(2, length) < 0.7
    mask = torch.cat([ragged, turns.expand(2, -1), holes, holes])
    ids = (torch.rand(2, length) < 0.01).cumsum(-1)
    sequence_ids = torch.cat([torch.zeros(6, length, dtype=torch.int64), ids])
    rough = torch.randn(8, 2, length).unbind(1)
    fine = torch.randn(8, length) / 100, 1 + torch.randn(8, length).cumsum(-1) / 1000
    first = (torch.arange(8) % 2 == 0).unsqueeze(-1)
    rewards, values = (torch.where(first, a, b) for a, b in zip(rough, fine, strict=True))
    return torch.where(mask, rewards, 0.0), values, mask, sequence_ids


@pytest.mark.parametrize("length", [2048, 16384])
def test_the_error_in_float32_is_at_most_twice_that_of_the_loop(length, device):
    rewards, values, mask, ids = (x.to(device) for x in long_batch(length))
    lams = (0.95, 1.0)
    twice = [torch.cat([x, x]) for x in (rewards, values, mask, ids)]
    decay = torch.tensor(lams, dtype=torch.float64, device=device).repeat_interleave(len(mask))
    wide = [x.double() if x.is_floating_point() else x for x in twice]
    exact = gae_loop(*wide[:3], gamma=1.0, decay=decay, sequence_ids=twice[3])
    plain = gae_loop(*twice[:3], gamma=1.0, decay=decay.float(), sequence_ids=twice[3])
    ours = torch.cat(
        [
            gae(*(x[rows] for x in (rewards, values, mask)), gamma=1.0, lam=lam, sequence_ids=numbers)
            for lam in lams
            for rows, numbers in ((slice(0, 6), None), (slice(6, 8), ids[6:]))
        ]
    )
    error, error_of_the_loop = ((x - exact).abs().amax(-1) for x in (ours, plain))
    assert (error_of_the_loop > 0).all()
    assert (error <= 2 * error_of_the_loop).all(), (error / error_of_the_loop).tolist()


@pytest.mark.parametrize("gamma", [0.0, 1e-6, 0.5, 0.99, 1.0])
def test_huge_and_tiny_sequences_side_by_side_keep_their_digits(gamma, device):
    # Rewards above 0, so that every digit of every return counts. The powers of a small gamma underflow.
    torch.manual_seed(0)
    ids = (torch.arange(1000) // 37).expand(2, -1)
    sizes = torch.tensor([1e30, 1e-30, 1.0, 1e-6])[ids % 4]
    rewards, mask = (torch.rand(2, 1000) + 0.5) * sizes, torch.rand(2, 1000) < 0.8
    rewards, mask, ids = (x.to(device) for x in (torch.where(mask, rewards, 0.0), mask, ids))
    found = discounted_returns(rewards, mask, gamma=gamma, sequence_ids=ids)
    values, decay = torch.zeros_like(rewards).double(), torch.full((2,), gamma, device=device)
    exact = gae_loop(rewards.double(), values, mask, gamma=gamma, decay=decay.double(), sequence_ids=ids)
    torch.testing.assert_close(found.double(), exact, rtol=2e-6, atol=0)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
@pytest.mark.parametrize("packed", [False, True])
def test_a_value_that_is_not_finite_reaches_the_tokens_before_it_alone(packed, poison, device):
    rewards, values, mask, ids = (x[4:6].to(device) for x in long_batch(300))
    ids = torch.arange(300, device=device).expand(2, -1) // 90 if packed else torch.zeros_like(ids)
    arguments = {"gamma": 1.0, "lam": 0.95, "sequence_ids": ids if packed else None}
    clean = gae(rewards, values, mask, **arguments)
    place = 200 + mask[0, 200:].nonzero()[0].item()
    values[0, place] = poison
    found = gae(rewards, values, mask, **arguments)
    # The token itself, and all counted ones before it in its sequence.
    reached = torch.zeros_like(mask)
    reached[0] = mask[0] & (ids[0] == ids[0, place]) & (torch.arange(300, device=device) <= place)
    assert reached.sum() > 10
    assert torch.equal(~found.isfinite(), reached)
    assert torch.equal(found[~reached], clean[~reached])


# --- rewards that would be lost


@pytest.mark.parametrize("lost", [[1.0, -1.0], [1e-40, 0.0], [float("nan"), 2.0]], ids=str)
def test_a_lost_reward_is_seen_beside_counted_ones_of_0(lost):
    # 1 and -1 sum up to 0, which is not the same as nothing.
    rewards = torch.tensor([0.0, *lost, 0.0])
    mask = torch.tensor([True, False, False, True])
    with pytest.raises(ValueError, match="which would be lost"):
        discounted_returns(rewards, mask, gamma=1.0)
