"""Sample calls of what is read off the logits."""

from .core import Sample

RANGES = {"logits": (-3, 3)}
SAMPLES = [
    Sample("token_logprobs", ("logits", "tokens"), ("logits",)),
    Sample("token_logprobs", ("logits", "tokens", "mask"), ("logits",)),
    Sample("entropy", ("logits",), ("logits",)),
    Sample("entropy", ("logits", "mask"), ("logits",)),
]
