"""Sample calls of the losses of the critic."""

from .core import Sample

_CRITIC = ("values", "old_values", "returns")

RANGES = dict.fromkeys(_CRITIC, (-2, 2))
SAMPLES = [
    *(
        Sample("value_loss", ("values", "returns", *mask), ("values",), {"factor": factor})
        for mask in ((), ("mask",))
        for factor in (0.5, 1)
    ),
    *(
        Sample("clipped_value_loss", (*_CRITIC, *mask), ("values",), {"epsilon": 0.5, "factor": factor})
        for mask in ((), ("mask",))
        for factor in (0.5, 1)
    ),
]
