"""Sample calls of the rewards per token."""

from .core import Sample

RANGES = {"scores": (-2, 2)}
SAMPLES = [
    Sample(
        "shaped_rewards",
        ("scores", "logprobs", "ref_logprobs", "mask"),
        (),
        {"beta": 0.1},
        by_token=True,
        per_answer=("scores",),
    ),
]
