"""Sample calls of the rewards per token."""

from .core import Sample

RANGES = {"scores": (-2, 2)}
TENSORS = ("scores", "logprobs", "ref_logprobs", "mask")
SAMPLES = [
    Sample("shaped_rewards", TENSORS, (), {"beta": 0.1}, by_token=True, per_answer=("scores",)),
    Sample(
        "shaped_rewards", (*TENSORS, "slot"), (), {"beta": 0.2}, by_token=True, per_answer=("scores", "slot")
    ),
    Sample("shaped_rewards", (*TENSORS, "sequence_ids"), (), {"beta": 0.3}, by_token=True),
]
