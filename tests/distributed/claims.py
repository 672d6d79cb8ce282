"""What must hold on every rank of a real process group, each as a function of a world; see test_processes.py.

A claim computes the whole in this process alone, then its part together with the other ranks, and compares. The
ranks run the claims in the order of the file.
"""

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close

from ppo_core import (
    aggregate,
    batch_count,
    entropy,
    global_sum,
    policy_loss,
    reinforce_plus_plus,
    sharded_logprobs,
    token_logprobs,
    undo_mean_over_ranks,
    whiten,
)

MODES = ("token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant")
ANSWERS, LENGTH, VOCABULARY, WIDTH = 6, 5, 7, 4
# How many answers lie on each rank: the second of two has two, the second of four none.
SHARES = {2: (4, 2), 4: (3, 0, 1, 2)}
# How many tokens of the vocabulary: 7 is divided by neither.
RANGES = {2: (4, 3), 4: (2, 0, 4, 1)}
TOLERANCE = {"rtol": 1e-12, "atol": 1e-14}


@dataclass(frozen=True)
class World:
    """This rank, and how many there are."""

    rank: int
    size: int

    def mine(self, x: torch.Tensor) -> torch.Tensor:
        """Return the answers that lie on this rank."""
        return x.split(SHARES[self.size])[self.rank]


def batch() -> dict[str, torch.Tensor]:
    """Draw answers with holes in their masks, the same on every rank; one has no counted token."""
    generator = torch.Generator().manual_seed(0)
    shape = ANSWERS, LENGTH

    def normal() -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    mask = torch.rand(shape, generator=generator) < 0.7
    mask[:, 0] = True
    mask[1] = False
    return {
        "inputs": torch.randint(VOCABULARY, shape, generator=generator),
        "tokens": torch.randint(VOCABULARY, shape, generator=generator),
        "old_logprobs": -1.5 + normal() / 3,
        "advantages": normal(),
        "mask": mask,
    }


def model() -> nn.Module:
    """Make a model of four parameters, the same on every rank: logits of the next token from each one alone."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        layers = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        return nn.Sequential(layers[0], layers[1], nn.Tanh(), layers[2]).double()


def loss_of(policy: nn.Module, rows: dict[str, torch.Tensor], mode: str, denominator) -> torch.Tensor:
    # In one dimension: of more a linear layer returns a view, and FSDP warns of those.
    logits = policy(rows["inputs"].flatten()).reshape(*rows["inputs"].shape, VOCABULARY)
    logprobs = token_logprobs(logits, rows["tokens"], mask=rows["mask"])
    losses = policy_loss(logprobs, rows["old_logprobs"], rows["advantages"], epsilon=0.2, mask=rows["mask"])
    return aggregate(losses, rows["mask"], mode=mode, denominator=denominator)


def whole(mode: str) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return loss and gradients of all answers in one process."""
    policy = model()
    loss = loss_of(policy, batch(), mode, ANSWERS * LENGTH if mode == "constant" else None)
    loss.backward()
    return loss.detach(), gradients(policy)


def gradients(policy: nn.Module) -> list[torch.Tensor]:
    found = [parameter.grad for parameter in policy.parameters()]
    # FSDP divides the gradients too.
    return [grad.full_tensor() if hasattr(grad, "full_tensor") else grad for grad in found]


def together(
    world: World,
    policy: nn.Module,
    mode: str,
    *,
    micro_batches: int = 1,
    without_exchange: Callable = nullcontext,
    factor: Callable = undo_mean_over_ranks,
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return loss and gradients as a trainer on many ranks has them: the code of the guide.

    Gradients are exchanged with the last micro-batch.
    """
    rows = {name: world.mine(x) for name, x in batch().items()}
    if mode == "constant":
        count = ANSWERS * LENGTH
    else:
        count = global_sum(batch_count(rows["mask"], mode=mode), None)
    total = torch.zeros((), dtype=torch.float64)
    for part in range(micro_batches):
        piece = {name: x.tensor_split(micro_batches)[part] for name, x in rows.items()}
        with without_exchange() if part < micro_batches - 1 else nullcontext():
            loss = loss_of(policy, piece, mode, count)
            factor(loss, None).backward()
        total += loss.detach()
    return global_sum(total, None), gradients(policy)


# --- losses and gradients


def distributed_data_parallel(world: World) -> None:
    for mode in MODES:
        expected = whole(mode)
        for micro_batches in (1, 2, 4):
            policy = DistributedDataParallel(model())
            found = together(
                world, policy, mode, micro_batches=micro_batches, without_exchange=policy.no_sync
            )
            assert_close(found, expected, **TOLERANCE)


def the_comparison_notices_a_wrong_factor(world: World) -> None:
    loss, expected = whole("token_mean")
    found_loss, found = together(
        world, DistributedDataParallel(model()), "token_mean", factor=lambda loss, group: loss
    )
    assert_close(found_loss, loss, **TOLERANCE)
    assert_close([world.size * gradient for gradient in found], expected, **TOLERANCE)
    for small, right in zip(found, expected, strict=True):
        assert (small - right).abs().max() > 1e-3


def the_comparison_notices_a_mean_of_means(world: World) -> None:
    """Without a denominator of the whole batch, as many trainers still have it."""
    loss, expected = whole("token_mean")
    policy = DistributedDataParallel(model())
    rows = {name: world.mine(x) for name, x in batch().items()}
    loss_of(policy, rows, "token_mean", None).backward()
    assert max((a - b).abs().max() for a, b in zip(gradients(policy), expected, strict=True)) > 1e-3


def fully_sharded_data_parallel(world: World) -> None:
    mesh = init_device_mesh("cpu", (world.size,))
    for mode in MODES:
        expected = whole(mode)
        for micro_batches in (1, 2):
            policy = model()
            for layer in policy:
                if list(layer.parameters()):
                    fully_shard(layer, mesh=mesh)
            fully_shard(policy, mesh=mesh)
            assert all(
                parameter.to_local().numel() < parameter.numel() or parameter.numel() < world.size
                for parameter in policy.parameters()
                if world.rank == world.size - 1
            )
            found = together(world, policy, mode, micro_batches=micro_batches)
            assert_close(found, expected, **TOLERANCE)


def fully_sharded_data_parallel_that_adds(world: World) -> None:
    """With the divisor 1 the gradients are summed, and the factor is left out."""
    policy = model()
    fully_shard(policy, mesh=init_device_mesh("cpu", (world.size,)))
    policy.set_gradient_divide_factor(1.0)
    found = together(world, policy, "token_mean", factor=lambda loss, group: loss)
    assert_close(found, whole("token_mean"), **TOLERANCE)


# --- whitening


def whitening(world: World) -> None:
    rows = batch()
    for ddof in (0, 1):
        options = {"ddof": ddof, "eps": 1e-8}
        expected = whiten(rows["advantages"], rows["mask"], **options)
        found = whiten(
            world.mine(rows["advantages"]), world.mine(rows["mask"]), group=dist.group.WORLD, **options
        )
        assert_close(found, world.mine(expected), **TOLERANCE)


def whitening_of_pieces_of_a_sequence(world: World) -> None:
    """As with context parallelism: a row is divided over ranks, and the last have nothing of it."""
    rows = batch()
    x, mask = rows["advantages"].reshape(-1)[:9], rows["mask"].reshape(-1)[:9]
    shares = [4, 5, 0, 0][: world.size]
    found = whiten(
        x.split(shares)[world.rank], mask.split(shares)[world.rank], ddof=1, eps=1e-8, group=dist.group.WORLD
    )
    assert_close(found, whiten(x, mask, ddof=1, eps=1e-8).split(shares)[world.rank], **TOLERANCE)


def reinforce_plus_plus_of_all_answers(world: World) -> None:
    rows = batch()
    rewards = torch.where(rows["mask"], rows["advantages"], 0.0)
    options = {"gamma": 0.9, "ddof": 1, "eps": 1e-8}
    expected = reinforce_plus_plus(rewards, rows["mask"], **options)
    found = reinforce_plus_plus(
        world.mine(rewards), world.mine(rows["mask"]), group=dist.group.WORLD, **options
    )
    assert_close(found, world.mine(expected), **TOLERANCE)


def nothing_counts_on_any_rank(world: World) -> None:
    rows = batch()
    x, nothing = world.mine(rows["advantages"]), torch.zeros_like(world.mine(rows["mask"]))
    found = whiten(x, nothing, ddof=1, eps=1e-8, group=dist.group.WORLD)
    assert_close(found, torch.zeros_like(x), rtol=0, atol=0)


# --- a vocabulary over ranks


def sharded_vocabulary(world: World) -> None:
    rows = batch()
    logits = model()(rows["inputs"]).detach() * 3
    shares = RANGES[world.size]
    start = sum(shares[: world.rank])
    for options in ({}, {"temperature": 0.7}, {"mask": rows["mask"], "temperature": 2.0}):
        leaf = logits.clone().requires_grad_()
        expected = token_logprobs(leaf, rows["tokens"], **options), entropy(leaf, **options)
        (gradient,) = torch.autograd.grad(weighted(*expected), leaf)
        part = logits.split(shares, -1)[world.rank].clone().requires_grad_()
        found = sharded_logprobs(part, rows["tokens"], start=start, group=None, **options)
        assert_close(tuple(found), expected, **TOLERANCE)
        (of_part,) = torch.autograd.grad(weighted(*found), part)
        assert_close(of_part, gradient.split(shares, -1)[world.rank], **TOLERANCE)


def weighted(logprobs: torch.Tensor, entropies: torch.Tensor) -> torch.Tensor:
    weights = torch.linspace(-1, 2, logprobs.numel(), dtype=logprobs.dtype).reshape(logprobs.shape)
    return (weights * logprobs + (0.5 - weights) * entropies).sum()


def a_token_of_no_rank(world: World) -> None:
    """All ranks raise, and the next call finds all of them."""
    logits, tokens = torch.zeros(3, 2), torch.tensor([0, 1, 99])
    try:
        sharded_logprobs(logits, tokens, start=2 * world.rank, group=None)
    except ValueError as error:
        assert "got 99 at index [2], in the range of 0" in str(error)
    else:
        raise AssertionError("nothing was raised")
    assert global_sum(torch.tensor(1), None).item() == world.size


# --- groups that are a part of all ranks


def parts_of_the_ranks(world: World) -> None:
    """Pairs of neighbours: a sum runs over the pair, and elsewhere the group is refused."""
    pairs = [dist.new_group([first, first + 1]) for first in range(0, world.size, 2)]
    mine = pairs[world.rank // 2]
    first = world.rank - world.rank % 2
    x = torch.tensor([world.rank])
    assert global_sum(x, mine).item() == 2 * first + 1
    assert undo_mean_over_ranks(torch.tensor(1.5), mine).item() == 3.0
    whitened = whiten(x.float(), torch.tensor([True]), ddof=0, eps=1e-8, group=mine)
    assert_close(whitened, torch.tensor([-1.0 if world.rank == first else 1.0]))
    for pair in pairs:
        if pair is not mine:
            try:
                global_sum(x, pair)
            except TypeError as error:
                assert "call on no rank that is outside the group" in str(error)
            else:
                raise AssertionError("nothing was raised")


def vocabulary_and_data_both_divided(world: World) -> None:
    """Half of the ranks for the data, pairs for the vocabulary; with two ranks the pair has all answers."""
    mesh = init_device_mesh("cpu", (world.size // 2, 2), mesh_dim_names=("data", "vocabulary"))
    data, vocabulary = mesh["data"].get_group(), mesh["vocabulary"].get_group()
    rows = batch()
    hidden = torch.randn(
        ANSWERS, LENGTH, WIDTH, generator=torch.Generator().manual_seed(5), dtype=torch.float64
    )
    weight = model()[-1].weight.detach()

    leaf = weight.clone().requires_grad_()
    logits = hidden @ leaf.T
    losses = policy_loss(
        token_logprobs(logits, rows["tokens"], mask=rows["mask"]),
        rows["old_logprobs"],
        rows["advantages"],
        epsilon=0.2,
        mask=rows["mask"],
    ) - 0.1 * entropy(logits, mask=rows["mask"])
    expected = aggregate(losses, rows["mask"], mode="token_mean")
    (gradient,) = torch.autograd.grad(expected, leaf)

    place = mesh.get_local_rank("vocabulary")
    layer = nn.Linear(WIDTH, 4 if place == 0 else 3, bias=False).double()
    layer.weight.data = weight.split([4, 3])[place].clone()
    policy = DistributedDataParallel(layer, process_group=data)
    half = mesh.get_local_rank("data")
    mine = {
        name: x.split([4, 2] if world.size == 4 else [6])[half]
        for name, x in {**rows, "hidden": hidden}.items()
    }
    found = sharded_logprobs(
        policy(mine["hidden"]), mine["tokens"], start=4 * place, group=vocabulary, mask=mine["mask"]
    )
    losses = policy_loss(
        found.logprobs, mine["old_logprobs"], mine["advantages"], epsilon=0.2, mask=mine["mask"]
    )
    count = global_sum(batch_count(mine["mask"], mode="token_mean"), data)
    loss = aggregate(losses - 0.1 * found.entropies, mine["mask"], mode="token_mean", denominator=count)
    undo_mean_over_ranks(loss, data).backward()
    assert_close(global_sum(loss, data), expected.detach(), **TOLERANCE)
    assert_close(layer.weight.grad, gradient.split([4, 3])[place], **TOLERANCE)


# --- torch.compile


def compiled(world: World) -> None:
    """One graph with the collectives in it; aot_eager, because what a backend does to them is torch's affair."""
    if world.size > 2:
        return
    group = dist.group.WORLD
    rows = {name: world.mine(x) for name, x in batch().items()}
    part = model()(batch()["inputs"]).detach().split(RANGES[world.size], -1)[world.rank]
    start = 4 * world.rank

    def call(logits, tokens, advantages, mask):
        white = whiten(advantages, mask, ddof=1, eps=1e-8, group=group)
        count = global_sum(white.sum() ** 2, group)
        logprobs, entropies = sharded_logprobs(logits, tokens, start=start, group=group)
        return undo_mean_over_ranks((logprobs.sum() - entropies.sum()) * count, group)

    # The compiler itself makes an object of each autograd.Function, and torch warns of that.
    warnings.filterwarnings("ignore", ".*should not be instantiated", DeprecationWarning)
    results = []
    for each in (call, torch.compile(call, fullgraph=True, backend="aot_eager")):
        leaf = part.clone().requires_grad_()
        loss = each(leaf, batch()["tokens"], rows["advantages"], rows["mask"])
        results.append((loss.detach(), *torch.autograd.grad(loss, leaf)))
    assert_close(results[1], results[0], rtol=1e-12, atol=1e-14)


CLAIMS: dict[str, Callable[[World], None]] = {
    claim.__name__: claim
    for claim in (
        distributed_data_parallel,
        the_comparison_notices_a_wrong_factor,
        the_comparison_notices_a_mean_of_means,
        fully_sharded_data_parallel,
        fully_sharded_data_parallel_that_adds,
        whitening,
        whitening_of_pieces_of_a_sequence,
        reinforce_plus_plus_of_all_answers,
        nothing_counts_on_any_rank,
        sharded_vocabulary,
        a_token_of_no_rank,
        parts_of_the_ranks,
        vocabulary_and_data_both_divided,
        compiled,
    )
}
