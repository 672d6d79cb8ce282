"""Sample calls of what sets the strength of the leash."""

from .core import Sample

RANGES = {"kl": (-0.5, 1.5)}
SAMPLES = [
    Sample(
        "adapt_beta",
        ("kl", "mask", *ids),
        (),
        {"beta": 0.1, "target": target, "horizon": 50, "unit": unit},
        by_token=True,
        result=(),
    )
    for ids in ((), ("sequence_ids",))
    for unit, target in (("token", 0.5), ("sequence", 0.9))
]
