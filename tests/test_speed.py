"""A quick part of `make bench`: ours beside the plain arithmetic of the peers, with wide margins.

A goal of the benchmark is asked for at a third of what it is there: a large regression is found, and a busy machine
is not. Nothing of a peer is installed here; what each of them does is written out below.
"""

import statistics
import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.losses.check import compare
from benchmarks.losses.goals import GOALS
from benchmarks.losses.inputs import Source, Tensors
from benchmarks.losses.measure import peak
from benchmarks.losses.operations import OPERATIONS, run
from benchmarks.losses.sides import EPSILON, GAMMA, LAM, Side, plain_logprobs

MARGIN = 3
REPEATS = 7


def loop(x: Tensors) -> Tensors:
    """Advantages step by step from the end; an uncounted step changes nothing."""
    rewards, values, mask = x["rewards"], x["values"], x["mask"].float()
    following, advantage, found = 0.0, 0.0, []
    for t in reversed(range(rewards.shape[1])):
        counted, left_out = mask[:, t], 1 - mask[:, t]
        delta = rewards[:, t] + GAMMA * following - values[:, t]
        advantage = (delta + GAMMA * LAM * advantage) * counted + left_out * advantage
        following = values[:, t] * counted + left_out * following
        found.append(advantage)
    return {"advantages": torch.stack(found[::-1], 1)}


def mean(x: Tensor, mask: Tensor) -> Tensor:
    return (x * mask).sum() / (mask.sum() + 1e-8)


def policy(x: Tensors) -> Tensors:
    """The clipped loss in a pass for each step, with the clip fraction and the KL that come with it."""
    advantages, mask = x["advantages"], x["mask"]
    log_ratio = (x["logprobs"] - x["old_logprobs"]).clamp(-20, 20)
    ratio = log_ratio.exp()
    mean(-log_ratio, mask)
    losses = -advantages * ratio
    clipped = -advantages * ratio.clamp(1 - EPSILON, 1 + EPSILON)
    worse = torch.maximum(losses, clipped)
    fraction = mean((clipped > losses).float(), mask)
    capped = -advantages * 1e9
    lower = torch.min(capped, worse)
    mean((worse > capped) * (advantages < 0).float(), mask)
    return {"loss": mean(torch.where(advantages < 0, lower, worse), mask), "clip fraction": fraction.detach()}


def objective(x: Tensors) -> Tensors:
    mask, found = x["mask"], policy(x)
    values, old_values = x["values"], x["old_values"]
    clipped = torch.max(torch.min(values, old_values + 1e9), old_values - 1e9)
    losses, clipped_losses = (values - x["returns"]) ** 2, (clipped - x["returns"]) ** 2
    mean((clipped_losses > losses).float(), mask)
    value = 0.5 * mean(torch.max(losses, clipped_losses), mask)
    kl = mean(0.5 * (x["logprobs"] - x["ref_logprobs"]).square(), mask)
    entropy = mean(x["entropies"], mask)
    return found | {"loss": found["loss"] + 0.5 * value - 0.01 * entropy + 0.05 * kl}


def logprobs(x: Tensors) -> Tensors:
    return {"logprobs": plain_logprobs(x["logits"], x["tokens"])}


def logprobs_entropies(x: Tensors) -> Tensors:
    logits = x["logits"]
    chosen = logits.gather(-1, x["tokens"].unsqueeze(-1)).squeeze(-1)
    mean_logit = (logits.softmax(-1) * logits).sum(-1)
    return {
        "logprobs": chosen - torch.stack([row.logsumexp(-1) for row in logits]),
        "entropies": logits.logsumexp(-1) - mean_logit,
    }


def hidden(x: Tensors) -> Tensors:
    found = plain_logprobs(functional.linear(x["hidden"], x["weight"]), x["tokens"])
    ratio, advantages, mask = (found - x["old_logprobs"]).exp(), x["advantages"], x["mask"]
    surrogate = torch.min(ratio * advantages, ratio.clamp(1 - EPSILON, 1 + EPSILON) * advantages)
    return {"loss": -mean(surrogate, mask)}


# The operation, the plain arithmetic, the peer of the benchmark that computes it so, and a size for the test.
SPEEDS = [
    ("gae", loop, "verl", (64, 2048)),
    ("gae_holes", loop, "verl", (64, 2048)),
    ("policy", policy, "verl", (128, 2048)),
    ("objective", objective, "verl", (128, 2048)),
    ("logprobs", logprobs, "plain", (4, 32, 32000)),
    ("logprobs_entropies", logprobs_entropies, "verl", (4, 32, 32000)),
    ("hidden", hidden, "plain", (128, 256, 16000)),
]
# The same for the memory beyond inputs and gradients; without arithmetic it is a share of the logits.
MEMORIES = [
    ("logprobs", None, "logits", (4, 128, 32000)),
    ("hidden", hidden, "plain", (1024, 64, 32000)),
]


def rows(cases: list) -> list:
    return [pytest.param(*case, id=case[0]) for case in cases]


def bound(operation: str, kind: str, beside: str) -> float:
    """The least that is asked for at any size."""
    return min(
        goal.bound
        for goal in GOALS
        if (goal.operation, goal.kind, goal.beside, goal.ours) == (operation, kind, beside, "ours")
    )


def made(operation: str, size: tuple[int, ...]) -> Tensors:
    return OPERATIONS[operation].make(size, Source("cpu", torch.float32))


def call(operation: str, side: Side, x: Tensors) -> Callable[[], tuple[Tensors, Tensors]]:
    return lambda: run(side, x, OPERATIONS[operation].slopes)


def speed(ours: Callable[[], object], theirs: Callable[[], object], repeats: int = REPEATS) -> float:
    """How many times as long theirs takes: both in turn, so that a slow moment hits both."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(repeats + 1):
        for each, found in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            each()
            if number:
                found.append(time.perf_counter() - start)
    return statistics.median(times[1]) / statistics.median(times[0])


def too_slow(operation: str, beside: str, ratio: float) -> str | None:
    least = bound(operation, "faster", beside) / MARGIN
    if ratio >= least:
        return None
    return (
        f"{operation}: {ratio:.2f} times as fast as the plain arithmetic, at least {least:.2f} is asked for"
    )


def too_large(operation: str, beside: str, share: float) -> str | None:
    most = bound(operation, "memory", beside) * MARGIN
    if share <= most:
        return None
    return f"{operation}: holds {share:.0%} of {beside}, at most {most:.0%} is asked for"


def beyond(operation: str, side: Side, x: Tensors) -> int:
    call(operation, side, made(operation, OPERATIONS[operation].small))()
    held, gradients = peak(call(operation, side, x))
    return held - gradients


def share(operation: str, ours: Side, plain: Side | None, x: Tensors) -> float:
    whole = x["logits"].nbytes if plain is None else beyond(operation, plain, x)
    return beyond(operation, ours, x) / whole


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other on a busy machine would be measured too."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(("operation", "plain", "beside", "size"), rows(SPEEDS))
def test_ours_gives_the_same_and_is_not_much_slower_than_it_should_be(operation, plain, beside, size):
    x = made(operation, size)
    ours, theirs = call(operation, OPERATIONS[operation].sides["ours"](), x), call(operation, plain, x)

    assert list(compare(ours(), theirs(), x.get("mask"))) == []
    fault = too_slow(operation, beside, speed(ours, theirs))
    assert fault is None, fault


@pytest.mark.parametrize(("operation", "plain", "beside", "size"), rows(MEMORIES))
def test_ours_holds_not_much_more_than_it_should(operation, plain, beside, size):
    found = share(operation, OPERATIONS[operation].sides["ours"](), plain, made(operation, size))

    fault = too_large(operation, beside, found)
    assert fault is None, fault


@pytest.mark.parametrize(("operation", "plain", "beside", "size"), SPEEDS, ids=[each[0] for each in SPEEDS])
def test_a_slow_one_is_found(operation, plain, beside, size):
    x = made(operation, (*size[:-2], size[-2] // 4, size[-1] // 16))
    theirs = call(operation, plain, x)

    ratio = speed(lambda: [theirs() for _ in range(8)], theirs, repeats=3)

    assert too_slow(operation, beside, ratio).startswith(f"{operation}: {ratio:.2f} times as fast")


@pytest.mark.parametrize("operation", ["logprobs", "hidden"])
def test_a_large_one_is_found(operation):
    ((_, plain, beside, size),) = [each for each in MEMORIES if each[0] == operation]

    found = share(
        operation, {"logprobs": logprobs, "hidden": hidden}[operation], plain, made(operation, size)
    )

    assert too_large(operation, beside, found).startswith(f"{operation}: holds ")
