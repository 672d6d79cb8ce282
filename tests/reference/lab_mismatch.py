"""The laboratory: a sampler that is not quite the policy."""

import math

from reference.logits import softmax


def precision_ratio(logits):
    exact, rounded = softmax(logits), softmax([_bfloat16(z) for z in logits])
    return [p / q for p, q in zip(exact, rounded, strict=True)]


def temperature_ratio(logits, *, temperature):
    sampler = softmax([z / temperature for z in logits])
    return [p / q for p, q in zip(softmax(logits), sampler, strict=True)]


def _bfloat16(x):
    """Round to 8 binary digits, to even from the middle."""
    mantissa, exponent = math.frexp(x)
    return round(mantissa * 256) / 256 * 2.0**exponent
