"""Sample calls of every public function, as plain data: the general tests run over them."""

from dataclasses import replace

from . import (
    advantages,
    aggregation,
    kl,
    logits,
    objectives,
    policy,
    preferences,
    rewards,
    values,
)
from .core import KINDS, Sample, draw, run, tensors_of, to_tensors

__all__ = ["KINDS", "SAMPLES", "Sample", "draw", "run", "tensors_of", "to_tensors"]

SUBJECTS = [policy, kl, rewards, advantages, values, logits, aggregation, objectives, preferences]
SAMPLES = [replace(sample, ranges=subject.RANGES) for subject in SUBJECTS for sample in subject.SAMPLES]
