"""How large the tensors are that a call allocates."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Sizes(TorchDispatchMode):
    """Note the size of every tensor that an operation allocates."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        given = {x.untyped_storage().data_ptr() for x in args if isinstance(x, torch.Tensor)}
        for x in result if isinstance(result, tuple | list) else [result]:
            # A view, and what was changed in place, is no new tensor.
            if isinstance(x, torch.Tensor) and x.untyped_storage().data_ptr() not in given:
                self.found.add(x.numel())
        return result
