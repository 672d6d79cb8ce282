"""The experiment: what is asked of the run and what would count as yes, stated before it runs.

Question: does PPO with the terms of `ppo_core` teach a small language model to earn a programmed reward?

Each seed has its own text, model, prompts and samples. Before PPO and after it, the policy answers the same
512 prompts, which training does not see. The gain of a seed is the mean score after less the mean score before.
The spread is the sample standard deviation of the gains over the seeds.

Expected: the gain is above 0. It counts as learning if the mean of the gains exceeds twice the spread. The KL
to the reference must stay finite throughout. The grammar is reported, and nothing is asked of it: the reward
does not see it, only the leash keeps it.

The hyper-parameters were chosen by trying a few values on seed 0 alone.
"""

import contextlib
import copy
import math
import platform
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import torch

from lab.tiny_lm.model import TinyLM
from lab.tiny_lm.pretrain import pretrained
from lab.tiny_lm.rollout import roll_out
from lab.tiny_lm.task import as_text, grammatical, prompts
from lab.tiny_lm.train import Settings, train

SEEDS = (0, 1, 2)
# Spreads that the mean gain must exceed.
MARGIN = 2.0
# Text, prompts of training and prompts of evaluation must not repeat each other: each has seeds of its own.
TEXT, TRAINING, EVALUATION = 1_000, 2_000, 3_000
QUESTIONS = 512


class Claim(NamedTuple):
    """The mean of the gains, their spread, and whether the run counts as learning."""

    gain: float
    spread: float
    holds: bool


def claim(before: Sequence[float], after: Sequence[float]) -> Claim:
    """Decide from the mean scores of the seeds, at least two, as stated at the top of this file."""
    gains = [late - early for early, late in zip(before, after, strict=True)]
    gain, spread = statistics.fmean(gains), statistics.stdev(gains)
    return Claim(gain, spread, gain > MARGIN * spread)


@contextlib.contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Draw from this seed and compute on one thread; then leave both as they were.

    With several threads, sums are added in another order, and after some steps the samples are others.
    """
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def silent(steps: Iterable, *, total: int, name: str) -> Iterable:
    """Go through the steps and show nothing."""
    return steps


def run(seed: int, settings: Settings, *, text_steps: int = 300, bar: Callable = silent) -> dict:
    """Learn the language, then PPO; return what was seen, ready for JSON. `bar` may show how far it has come."""
    with reproducible(seed):
        policy = pretrained(
            seed=TEXT + seed,
            steps=text_steps,
            bar=lambda steps: bar(steps, total=text_steps, name=f"seed {seed}, text"),
        )
        reference = copy.deepcopy(policy)
        before = evaluate(policy, reference, seed=seed)
        steps = train(policy, seed=TRAINING + seed, settings=settings)
        seen = list(bar(steps, total=settings.iterations, name=f"seed {seed}, PPO"))
        after = evaluate(policy, reference, seed=seed)
    curves = {name: [round(each, 4) for each in curve] for name, curve in _by_name(seen).items()}
    return {"seed": seed, "before": before, "after": after, "iterations": curves}


def _by_name(seen: list) -> dict[str, tuple[float, ...]]:
    return dict(zip(seen[0]._fields, zip(*seen, strict=True), strict=True))


def evaluate(policy: TinyLM, reference: TinyLM, *, seed: int) -> dict:
    """Return what the policy earns on fresh prompts, how far it is from the reference, and how it speaks."""
    rollout = roll_out(policy, reference, prompts(QUESTIONS, seed=EVALUATION + seed))
    return {
        "score": round(rollout.scores.mean().item(), 4),
        "kl": round(rollout.kl(), 4),
        "grammatical": round(grammatical(rollout.answers).float().mean().item(), 4),
        "examples": [
            f"{as_text(prompt)} | {as_text(answer)}"
            for prompt, answer in zip(rollout.prompts[:3], rollout.answers[:3], strict=True)
        ],
    }


def results(seeds: Sequence[int], settings: Settings, *, bar: Callable = silent) -> dict:
    """Run all seeds; return their results with the verdict, the settings and the versions."""
    runs = [run(seed, settings, bar=bar) for seed in seeds]
    found = {"settings": settings._asdict(), "versions": versions(), "runs": runs}
    if len(runs) > 1:
        verdict = claim([each["before"]["score"] for each in runs], [each["after"]["score"] for each in runs])
        finite = all(math.isfinite(kl) for each in runs for kl in each["iterations"]["kl"])
        found["claim"] = {
            "gain": round(verdict.gain, 4),
            "spread": round(verdict.spread, 4),
            "holds": verdict.holds and finite,
        }
    return found


def versions() -> dict[str, str]:
    """Return what the last digits, and with them the samples, depend on."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }
