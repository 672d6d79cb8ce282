"""Sample calls of the advantages of the answers of a group."""

from .core import Sample

RANGES = {"scores": (-2, 2)}
SAMPLES = [
    Sample("group_relative", ("scores",), (), {"eps": 0.01}, by_group=True),
    Sample("group_centred", ("scores",), (), by_group=True),
    Sample("leave_one_out", ("scores",), (), by_group=True),
]
