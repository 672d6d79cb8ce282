"""Sample calls of every public function, as plain data: the general tests run over them."""

from dataclasses import replace

from . import (
    aggregation,
    controllers,
    diagnostics,
    groups,
    importance,
    kl,
    logits,
    objectives,
    policy,
    preferences,
    returns,
    rewards,
    values,
    whitening,
)
from .core import KINDS, ONCE, Sample, draw, run, tensors_of, to_tensors

__all__ = ["KINDS", "ONCE", "SAMPLES", "WITHOUT_SAMPLES", "Sample", "draw", "run", "tensors_of", "to_tensors"]

SUBJECTS = [
    policy,
    importance,
    kl,
    controllers,
    rewards,
    returns,
    groups,
    whitening,
    values,
    logits,
    aggregation,
    diagnostics,
    objectives,
    preferences,
]
SAMPLES = [replace(sample, ranges=subject.RANGES) for subject in SUBJECTS for sample in subject.SAMPLES]

# What the general tests cannot call: they draw floating-point tensors of one shape, and expect such a result.
WITHOUT_SAMPLES = {
    "sequence_ids_from_lengths": "from lengths to numbers of sequences; tests/library/test_packing.py has it all",
    "global_sum": "takes a process group, which must stand; tests/library/test_distributed.py has it all",
    "undo_mean_over_ranks": "takes a process group; tests/library/test_distributed.py has it all",
    "sharded_logprobs": "takes a process group; tests/library/test_sharded.py has it all",
    "batch_count": "from a mask alone to a whole number; tests/library/test_aggregation.py has it all",
}
