"""The tensors of each operation, by name, the same in every process.

Log-ratios lie on a grid, so that no ratio comes near the edge of the clip band: there a rounding would move a
gradient from one side to the other.
"""

import math

import torch
from torch import Tensor

Size = tuple[int, ...]
Tensors = dict[str, Tensor]
# The sequences of a packed row, as shares of it.
PACKED = (0.5, 0.25, 0.125, 0.125)


class Source:
    """Random tensors of one seed, device and floating-point type."""

    def __init__(self, device: str, dtype: torch.dtype) -> None:
        self.device, self.dtype = device, dtype
        self.generator = torch.Generator(device).manual_seed(17)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, device=self.device, dtype=self.dtype)

    def whole(self, low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=self.generator, device=self.device)

    def grid(self, low: float, high: float, *shape: int) -> Tensor:
        return (self.whole(int(64 * low), int(64 * high), *shape) / 64).to(self.dtype)


def ragged(size: Size, source: Source) -> Tensor:
    """A mask of answers that end anywhere in the last three quarters."""
    lengths = source.whole(size[1] // 4, size[1] + 1, size[0], 1)
    return torch.arange(size[1], device=source.device) < lengths


def gae_ragged(size: Size, source: Source) -> Tensors:
    mask = ragged(size, source)
    last = mask & ~mask.roll(-1, 1).index_fill(1, torch.tensor([size[1] - 1], device=source.device), False)
    values = source.normal(*size)
    return {
        "rewards": torch.where(mask, source.normal(*size), 0.0),
        "values": values,
        "mask": mask,
        # What torchrl asks for beside: the value after each step, and where a trajectory ends.
        "next_values": values.roll(-1, 1),
        "ends": last.index_fill(1, torch.tensor([size[1] - 1], device=source.device), True),
    }


def gae_holes(size: Size, source: Source) -> Tensors:
    mask = source.whole(0, 10, *size) < 8
    return {
        "rewards": torch.where(mask, source.normal(*size), 0.0),
        "values": source.normal(*size),
        "mask": mask,
    }


def gae_packed(size: Size, source: Source) -> Tensors:
    """Rows without padding, and the same sequences one a row, padded, for a peer that knows no packed rows."""
    rows, steps = size
    lengths = [int(share * steps) for share in PACKED]
    starts = [sum(lengths[:index]) for index in range(len(lengths))]
    ids = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths)).to(source.device)
    rewards, values = source.normal(*size), source.normal(*size)
    mask = torch.ones(size, dtype=torch.bool, device=source.device)

    def unpacked(x: Tensor) -> Tensor:
        parts = [x[:, start : start + length] for start, length in zip(starts, lengths, strict=True)]
        return torch.stack(
            [torch.nn.functional.pad(part, (0, lengths[0] - part.shape[1])) for part in parts], 1
        ).reshape(rows * len(lengths), lengths[0])

    return {
        "rewards": rewards,
        "values": values,
        "mask": mask,
        "sequence_ids": ids.expand(size).contiguous(),
        "unpacked_rewards": unpacked(rewards),
        "unpacked_values": unpacked(values),
        "unpacked_mask": unpacked(mask),
    }


def policy(size: Size, source: Source) -> Tensors:
    old = source.grid(-3.5, -1, *size)
    return {
        "logprobs": (old + source.grid(-0.5, 0.5, *size)).requires_grad_(),
        "old_logprobs": old,
        # Off zero, or the loss would be what is left of large numbers that cancel.
        "advantages": source.normal(*size) + 0.5,
        "mask": ragged(size, source),
    }


def objective(size: Size, source: Source) -> Tensors:
    tensors = policy(size, source)
    values = source.normal(*size)
    return tensors | {
        "ref_logprobs": tensors["old_logprobs"] + source.grid(-0.5, 0.5, *size),
        "old_values": values + source.normal(*size),
        "values": values.requires_grad_(),
        "returns": source.normal(*size),
        "entropies": source.normal(*size).abs().requires_grad_(),
    }


def logits(size: Size, source: Source) -> Tensors:
    *places, vocabulary = size
    return {
        "logits": source.normal(*size).requires_grad_(),
        "tokens": source.whole(0, vocabulary, *places),
        # What comes back from the loss behind: the gradient into each result.
        "into_logprobs": source.normal(*places),
        "into_entropies": source.normal(*places),
    }


def hidden(size: Size, source: Source) -> Tensors:
    count, width, vocabulary = size
    states, weight = source.normal(count, width), source.normal(vocabulary, width) / math.sqrt(width)
    tokens = source.whole(0, vocabulary, count)
    return {
        "hidden": states.requires_grad_(),
        "weight": weight.requires_grad_(),
        "tokens": tokens,
        **near((states * weight[tokens]).sum(-1), vocabulary, source),
        "mask": source.whole(0, 10, count) < 8,
    }


def near(chosen: Tensor, vocabulary: int, source: Source) -> Tensors:
    """Old log-probabilities at -0.4, 0 or 0.4 from those that logits give, and advantages, all in float32.

    The logits are nearly standard normal, so their log-sum-exp is known without all of them.
    """
    logprobs = chosen.detach().float() - math.log(vocabulary) - 0.5
    return {
        "old_logprobs": logprobs + 0.4 * source.whole(-1, 2, *chosen.shape),
        "advantages": source.normal(*chosen.shape).float() + 0.5,
    }
