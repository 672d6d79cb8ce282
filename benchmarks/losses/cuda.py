"""The same operations on a GPU: python -m benchmarks.losses.cuda

One process, which stops by itself before four minutes are over. It writes results/cuda.json; `python -m
benchmarks.losses` makes the page from it. A side whose library is not installed, or whose answer differs from ours,
gets a row that says so.
"""

import datetime
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

import ppo_core
from benchmarks.losses import inputs, page
from benchmarks.losses.check import TOLERANCE, compare
from benchmarks.losses.goals import BATCH, MANY_STATES, SHORT
from benchmarks.losses.inputs import Size, Source, Tensors
from benchmarks.losses.measure import LEAST, WARM_UP
from benchmarks.losses.operations import OPERATIONS, Operation, run
from benchmarks.losses.sides import (
    EPSILON,
    LOGITS_FLOOR,
    Side,
    logprobs_of,
    plain_logprobs,
    plain_policy_loss,
    policy_loss,
)

LOGITS = (8, 2048, 151936)
LIMIT, SECONDS, MOST = 200, 1.0, 50
FLOAT, HALF = torch.float32, torch.bfloat16
# Of the largest number of a result: half precision has eight bits.
TOLERANCES = {FLOAT: TOLERANCE, HALF: 2e-2}
# Who writes the gradient over the logits: it gets fresh ones for each call.
IN_PLACE = "Liger, cross entropy"


def logits_loss(size: Size, source: Source) -> Tensors:
    """Logits to policy loss. Liger's kernel takes one place more than it has tokens, so the last one does not count."""
    answers, steps, vocabulary = size
    logits, tokens = source.normal(*size), source.whole(0, vocabulary, answers, steps)
    found = inputs.near(logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1), vocabulary, source)
    per_answer = found["advantages"][:, 0].contiguous()
    mask = torch.arange(steps, device=source.device).expand(answers, steps) < steps - 1
    return {
        "logits": logits.requires_grad_(),
        "tokens": tokens,
        "old_logprobs": found["old_logprobs"],
        "advantages": per_answer.unsqueeze(-1).expand(answers, steps).contiguous(),
        "mask": mask,
        "answer_advantages": per_answer,
        "first_tokens": tokens[:, :-1].contiguous(),
        "first_old_logprobs": found["old_logprobs"][:, :-1].contiguous(),
        "first_mask": mask[:, :-1].contiguous(),
    }


def _loss_by(logprobs: Callable[[Tensor, Tensor], Tensor], loss: Callable[..., Tensor]) -> Side:
    return lambda x: {
        "loss": loss(
            logprobs(x["logits"], x["tokens"]).float(), x["old_logprobs"], x["advantages"], x["mask"]
        )
    }


def _liger_loss() -> Side:
    from liger_kernel.transformers.grpo_loss import triton_grpo_loss

    return lambda x: {
        "loss": triton_grpo_loss(
            x["logits"],
            x["first_old_logprobs"],
            None,
            x["first_tokens"],
            x["answer_advantages"],
            completion_mask=x["first_mask"],
            temperature=1.0,
            beta=0.0,
            eps_low=EPSILON,
            eps_high=EPSILON,
            inplace=False,
            loss_type="dapo",
            reduce=True,
        )[0]
    }


def _liger_logprobs() -> Callable[[Tensor, Tensor], Tensor]:
    from liger_kernel.transformers.functional import liger_cross_entropy

    def logprobs(logits: Tensor, tokens: Tensor) -> Tensor:
        losses = liger_cross_entropy(logits.flatten(0, -2), tokens.flatten(), reduction="none")
        return -losses.reshape(tokens.shape)

    return logprobs


LOGITS_LOSS = Operation(
    page.ON_GPU_ONLY["logits_loss"],
    logits_loss,
    ("logits",),
    (2, 4, 16),
    {
        "ours": lambda: _loss_by(ppo_core.token_logprobs, policy_loss),
        "plain": lambda: _loss_by(plain_logprobs, plain_policy_loss),
        "Liger, GRPO kernel": _liger_loss,
        "floor": LOGITS_FLOOR,
    },
)
ALL = OPERATIONS | {"logits_loss": LOGITS_LOSS}
# What is measured in which types: the log-probabilities are float32 in any trainer.
CASES = (
    ("logprobs", LOGITS, (HALF, FLOAT), {IN_PLACE: logprobs_of(_liger_logprobs)}),
    ("logprobs_entropies", LOGITS, (HALF, FLOAT), {}),
    ("logits_loss", LOGITS, (HALF, FLOAT), {}),
    ("hidden", MANY_STATES, (HALF, FLOAT), {}),
    ("policy", BATCH, (FLOAT,), {}),
    ("objective", BATCH, (FLOAT,), {}),
    ("gae", SHORT, (FLOAT,), {}),
    ("gae_holes", SHORT, (FLOAT,), {}),
    ("gae_packed", SHORT, (FLOAT,), {}),
)


def main() -> int:
    if not torch.cuda.is_available():
        print("torch finds no GPU: nothing is measured")
        return 2
    end = time.monotonic() + LIMIT
    rows: list[dict] = []
    made = {
        "date": datetime.date.today().isoformat(),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "copy": copy_bandwidth(),
    }
    for name, size, dtypes, more in CASES:
        for dtype in dtypes:
            print(f"{name}, {dtype} ...", flush=True)
            rows += of_case(name, size, dtype, more, "cuda", Clock(), end)
            # After each case, so that what was measured stays whatever comes.
            page.CUDA.write_text(json.dumps({"made": made, "rows": rows}, indent=1) + "\n", encoding="utf-8")
            torch.cuda.empty_cache()
    return 0


class Clock:
    """Seconds and bytes of calls on the current GPU."""

    def seconds(self, call: Callable[[], object]) -> float:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        result = call()
        stop.record()
        stop.synchronize()
        del result
        return start.elapsed_time(stop) / 1e3

    def peak(self, call: Callable[[], tuple[Tensors, Tensors]]) -> int:
        """The most that a call takes beyond what stood before and beyond its gradients."""
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        _, gradients = call()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before - sum(each.nbytes for each in gradients.values())


def copy_bandwidth() -> float:
    """Bytes that a copy reads and writes in a second."""
    source = torch.empty(2**32, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    clock = Clock()
    times = [clock.seconds(lambda: target.copy_(source)) for _ in range(10)]
    return 2 * source.nbytes / statistics.median(times[3:])


def of_case(
    name: str,
    size: Size,
    dtype: torch.dtype,
    more: Mapping[str, Callable[[], Side]],
    device: str,
    clock: Clock,
    end: float,
) -> list[dict]:
    """Measure all sides of an operation; ours first."""
    operation = ALL[name]
    x = operation.make(size, Source(device, dtype))
    rows = []
    for side, loader in {**operation.sides, **more}.items():
        where = {"operation": name, "size": size, "dtype": str(dtype).removeprefix("torch."), "side": side}
        if time.monotonic() > end:
            rows.append(where | {"error": "no time was left"})
            continue
        try:
            rows.append(where | of_side(operation, side, loader(), x, dtype, clock))
        except ImportError:
            rows.append(where | {"error": "not installed"})
        except torch.OutOfMemoryError:
            rows.append(where | {"error": "out of memory"})
    return with_ratios(rows)


def of_side(
    operation: Operation, side: str, function: Side, x: Tensors, dtype: torch.dtype, clock: Clock
) -> dict:
    mine = x
    if side == IN_PLACE:
        mine = x | {"logits": x["logits"].detach().clone().requires_grad_()}

    def prepare() -> None:
        if mine is not x:
            with torch.no_grad():
                mine["logits"].copy_(x["logits"])

    def call() -> tuple[Tensors, Tensors]:
        return run(function, mine, operation.slopes)

    if side not in ("ours", "floor"):
        ours = run(operation.sides["ours"](), x, operation.slopes)
        faults = list(compare(ours, call(), x.get("mask"), TOLERANCES[dtype]))
        if faults:
            return {"error": f"another answer: {'; '.join(faults)}"}
        del ours
    times: list[float] = []
    for _ in range(WARM_UP):
        prepare()
        call()
    while len(times) < LEAST or (sum(times) < SECONDS and len(times) < MOST):
        prepare()
        times.append(clock.seconds(call))
    prepare()
    return {
        "seconds": statistics.median(times),
        "smallest": min(times),
        "largest": max(times),
        "repeats": len(times),
        "beyond": clock.peak(call),
    }


def with_ratios(rows: Sequence[dict]) -> list[dict]:
    """Beside each time its ratio to ours, and what share the floor's time is of it."""
    times = {row["side"]: row["seconds"] for row in rows if "seconds" in row}
    found = []
    for row in rows:
        more = {}
        if "seconds" in row and "ours" in times:
            more["ratio"] = row["seconds"] / times["ours"]
        # From hidden states the floor is arithmetic, and no share of a bandwidth.
        if "seconds" in row and "floor" in times and row["operation"] != "hidden":
            more["share"] = times["floor"] / row["seconds"]
        found.append({**row, **more})
    return found


if __name__ == "__main__":
    sys.exit(main())
