"""A batch in pieces that fit the cache.

A calculation of many steps goes through main memory at each of them if every step is done for the whole batch.
"""

from collections.abc import Iterator

from torch import Tensor

from ppo_core import checks

# Elements of a piece: ten tensors of as many in float32 are 20 MiB. With fewer the cost of a call shows.
PIECE = 2**19


def pieces(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """Cut tensors of one shape into flat pieces on the CPU in eager mode; elsewhere the whole is one piece."""
    flat = [x.reshape(-1) for x in tensors]
    places = max(1, flat[0].numel())
    step = PIECE if checks.may_look(flat[0]) else places
    # There is always a piece, so that a sum over them has a type and a device.
    return (tuple(x[first : first + step] for x in flat) for first in range(0, places, step))
