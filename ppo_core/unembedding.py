"""The unembedding, hidden states to logits, for a few tokens at a time.

The types, the temperature and autocast are settled here, so that a chunk of logits is one product.
"""

import torch
from torch import Tensor

from ppo_core.masking import counted


def chunks(hidden: Tensor, weight: Tensor, elements: int) -> list[slice]:
    """Divide the tokens so that each part has at most so many logits, or one token; there is always a part."""
    tokens = max(1, elements // weight.shape[0])
    return [slice(first, first + tokens) for first in range(0, max(1, hidden.shape[0]), tokens)]


def unembedding(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, temperature: float, half: torch.dtype | None
) -> tuple[Tensor, Tensor | None]:
    """Return the weight, and the bias over the temperature, in the type that is computed in."""
    wide = torch.promote_types(torch.promote_types(hidden.dtype, weight.dtype), torch.float32)
    if bias is None:
        return rounded(weight, half).to(wide), None
    wide = torch.promote_types(wide, bias.dtype)
    return rounded(weight, half).to(wide), rounded(bias, half).to(wide) / temperature


def counted_states(
    hidden: Tensor, counts: Tensor, weight: Tensor, temperature: float, half: torch.dtype | None
) -> Tensor:
    """Return hidden states over the temperature in the type of the weight, with 0 where nothing counts."""
    return counted(rounded(hidden, half).to(weight.dtype), counts) / temperature


def rounded(x: Tensor, half: torch.dtype | None) -> Tensor:
    """Round to the type of autocast, where it is on."""
    return x if half is None or x.dtype == torch.float64 else x.to(half)


def autocast_type(x: Tensor) -> torch.dtype | None:
    """Return the type that autocast gives to matrix products, None where it is off."""
    device = x.device.type
    if _has_autocast(device) and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return None


def without_autocast(x: Tensor) -> torch.autocast:
    """Turn autocast off for a while: it would round every product again."""
    device = x.device.type
    # On a device without autocast there is nothing to turn off.
    return torch.autocast(device if _has_autocast(device) else "cpu", enabled=False)


def _has_autocast(device: str) -> bool:
    """Tell whether torch has autocast for the device; the meta device has none."""
    # A graph of torch 2.6 cannot ask.
    return device != "meta" and (torch.compiler.is_compiling() or torch.amp.is_autocast_available(device))
