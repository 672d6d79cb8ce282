"""What every public function asks of its arguments before it computes.

Wrong types, shapes and hyper-parameters always raise. Faults in the data are looked for only where looking
is free (see `may_look`).
"""

import torch
from torch import Tensor
from torch.distributed import ProcessGroup

HALF = (torch.float16, torch.bfloat16)


def floats(tensors: dict[str, Tensor]) -> list[Tensor]:
    """Check that the named tensors are floating point and of one shape; return them in float32 or wider."""
    for name, x in tensors.items():
        floating(name, x)
    same_shape(tensors)
    # Log-probabilities in half precision keep two or three digits: a difference of two of them, and the
    # exponential of that, must not lose more. The cast is differentiable: gradients return in the input's
    # type.
    return [wide(x) for x in tensors.values()]


def wide(x: Tensor) -> Tensor:
    """Return `x` in float32 or wider."""
    return x.float() if x.dtype in HALF else x


def tensor(name: str, x: Tensor) -> None:
    """Check that `x` is a tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(x).__name__}; write torch.tensor({name})")


def floating(name: str, x: Tensor) -> None:
    """Check that `x` is a floating-point tensor."""
    tensor(name, x)
    if not x.is_floating_point():
        raise TypeError(f"{name} must be a floating-point tensor, got {x.dtype}; write {name}.float()")


def same_shape(tensors: dict[str, Tensor]) -> None:
    """Check that all tensors have the shape of the first: nothing is ever broadcast."""
    first, *others = tensors
    for other in others:
        if tensors[other].shape != tensors[first].shape:
            raise ValueError(
                f"{first} and {other} must have the same shape, got {list(tensors[first].shape)} and "
                f"{list(tensors[other].shape)}; nothing is broadcast: expand or index one of them first"
            )


def token_mask(mask: Tensor, name: str, x: Tensor) -> None:
    """Check that `mask` is a bool tensor of the shape of `x`, which the caller knows as `name`."""
    bool_mask(mask)
    same_shape({name: x, "mask": mask})


def bool_mask(mask: Tensor) -> None:
    """Check that `mask` is a bool tensor."""
    flags("mask", mask, true="the token counts")


def flags(name: str, x: Tensor, *, true: str) -> None:
    """Check that `x` is a bool tensor, where True means `true`."""
    tensor(name, x)
    if x.dtype != torch.bool:
        raise TypeError(f"{name} must be a bool tensor (True: {true}), got {x.dtype}; write {name}.bool()")


def tokens_last(name: str, x: Tensor) -> None:
    """Check that `x` has a last dimension for the tokens."""
    if x.ndim == 0:
        raise ValueError(
            f"{name} must have at least one dimension, the tokens, got []; write {name}.reshape(1)"
        )


def per_answer(name: str, x: Tensor, tokens_name: str, tokens: Tensor, *, each: str) -> None:
    """Check that `x` holds one number for each answer of `tokens`, whose last dimension holds the tokens."""
    if tokens.ndim == 0 or x.shape != tokens.shape[:-1]:
        raise ValueError(
            f"{name} must have the shape of {tokens_name} without its last dimension, the tokens, got "
            f"{list(x.shape)} and {list(tokens.shape)}; give one {each} for each answer"
        )


def per_sequence(
    name: str, x: Tensor, tokens_name: str, tokens: Tensor, sequence_ids: Tensor | None, *, each: str
) -> None:
    """Check that `x` holds one number for each answer, or with `sequence_ids` a place for each token."""
    if sequence_ids is None:
        per_answer(name, x, tokens_name, tokens, each=each)
    else:
        same_shape({tokens_name: tokens, name: x})


def group(name: str, x: Tensor) -> None:
    """Check that the last dimension of `x` holds at least two answers, so that one can be compared."""
    if x.ndim == 0 or x.shape[-1] < 2:
        raise ValueError(
            f"{name} must have a last dimension of at least 2, the answers of a group, got {list(x.shape)}; "
            "one answer alone has nothing to be compared with"
        )


def logits_and_mask(logits: Tensor, mask: Tensor | None, *, least: int = 1) -> None:
    """Check that logits have a vocabulary, and that `mask` has their shape without it."""
    floating("logits", logits)
    if logits.ndim == 0 or logits.shape[-1] < least:
        raise ValueError(
            f"logits must have a last dimension of at least {least}, the vocabulary, got {list(logits.shape)}"
        )
    if mask is not None:
        bool_mask(mask)
        without_vocabulary("mask", mask, logits)


def without_vocabulary(name: str, x: Tensor, logits: Tensor) -> None:
    """Check that `x` has the shape of the logits without their vocabulary."""
    without_last(name, x, "logits", logits, last="the vocabulary")


def without_last(name: str, x: Tensor, whole_name: str, whole: Tensor, *, last: str) -> None:
    """Check that `x` has the shape of another tensor without its last dimension, which is called `last`."""
    if x.shape != whole.shape[:-1]:
        raise ValueError(
            f"{name} must have the shape of {whole_name} without its last dimension, {last}, got "
            f"{list(x.shape)} and {list(whole.shape)}; nothing is broadcast: expand or index one of them first"
        )


def hidden_and_weight(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Check that hidden states fit an unembedding matrix, and that both fit its bias where there is one."""
    floating("hidden", hidden)
    floating("weight", weight)
    if hidden.ndim == 0:
        raise ValueError("hidden must have at least one dimension, the width, got []")
    if weight.ndim != 2 or weight.shape[0] == 0 or weight.shape[1] != hidden.shape[-1]:
        raise ValueError(
            f"weight must have the shape [V, {hidden.shape[-1]}], a row of the width of hidden for each token of "
            f"the vocabulary, got {list(weight.shape)}"
        )
    if bias is not None:
        floating("bias", bias)
        if bias.shape != weight.shape[:1]:
            raise ValueError(
                "bias must have the shape [V] where weight has [V, D], got "
                f"{list(bias.shape)} and {list(weight.shape)}"
            )


def token_ids(name: str, x: Tensor) -> None:
    """Check that `x` is a tensor of whole numbers wide enough for any vocabulary."""
    tensor(name, x)
    if x.dtype != torch.int64:
        raise TypeError(f"{name} must be an int64 tensor, got {x.dtype}; write {name}.long()")


def sequences(sequence_ids: Tensor | None, name: str, x: Tensor) -> None:
    """Check that `sequence_ids`, where given, numbers the tokens of `x`, which the caller knows as `name`."""
    if sequence_ids is None:
        return
    token_ids("sequence_ids", sequence_ids)
    same_shape({name: x, "sequence_ids": sequence_ids})
    tokens_last("sequence_ids", sequence_ids)


def lengths(name: str, x: Tensor) -> None:
    """Check that `x` holds the places where sequences begin and end: whole numbers in one dimension."""
    tensor(name, x)
    if x.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must be an int64 or int32 tensor, got {x.dtype}; write {name}.long()")
    if x.ndim != 1 or x.numel() == 0:
        raise ValueError(f"{name} must have the shape [N + 1] for N sequences, got {list(x.shape)}")


def number(name: str, value: float) -> None:
    """Check that a hyper-parameter is a plain number: a tensor would hide a sync, a bool is a slip."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a plain number, got {type(value).__name__}; write a float or an int")


def clip_width(epsilon: float) -> None:
    """Check the half-width of the clip band: 0 < epsilon < 1."""
    number("epsilon", epsilon)
    # Written so that NaN fails too.
    if not 0 < epsilon < 1:
        raise ValueError(
            f"epsilon must lie strictly between 0 and 1, got {epsilon}; at 1 or more no ratio is below the "
            "floor 1 - epsilon, at 0 or less there is no band; 0.2 is usual"
        )


def clip_band(epsilon: float, epsilon_high: float | None) -> None:
    """Check both widths of the clip band: only the lower one has a limit, because a ratio is never below 0."""
    clip_width(epsilon)
    if epsilon_high is not None:
        positive("epsilon_high", epsilon_high)


def dual_clip(value: float | None) -> None:
    """Check the cap on the ratio of bad tokens: above 1, or there is none."""
    if value is None:
        return
    number("dual_clip", value)
    if not 1 < value < float("inf"):
        raise ValueError(
            f"dual_clip must be finite and above 1, got {value}; it caps the ratio of bad tokens, which begins "
            "at 1; 3 is usual"
        )


def largest_ratio(name: str, value: float) -> None:
    """Check a bound on ratios from above: at least 1, or it would bind where nothing has changed."""
    number(name, value)
    if not 1 <= value < float("inf"):
        raise ValueError(
            f"{name} must be finite and at least 1, got {value}; it is the largest ratio itself, not its distance "
            "from 1"
        )


def window(low_name: str, low: float, high_name: str, high: float) -> None:
    """Check that two hyper-parameters are the ends of a window above 0."""
    not_negative(low_name, low)
    positive(high_name, high)
    if low >= high:
        raise ValueError(f"{high_name} must be above {low_name}, got {high} and {low}")


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Check that a named choice is one that there is."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def finite(name: str, value: float) -> None:
    """Check that a hyper-parameter is finite."""
    number(name, value)
    if not float("-inf") < value < float("inf"):
        raise ValueError(f"{name} must be finite, got {value}")


def not_negative(name: str, value: float) -> None:
    """Check that a hyper-parameter is finite and at least 0."""
    number(name, value)
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name} must be finite and at least 0, got {value}")


def positive(name: str, value: float) -> None:
    """Check that a hyper-parameter is finite and above 0."""
    number(name, value)
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be finite and above 0, got {value}")


def fraction(name: str, value: float) -> None:
    """Check that a hyper-parameter lies between 0 and 1, both allowed."""
    number(name, value)
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}")


def whole(name: str, value: float, *, least: int) -> None:
    """Check that a hyper-parameter is a whole number of at least `least`; 3.0 is one too."""
    number(name, value)
    if not least <= value < float("inf") or value != int(value):
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value}")


def integer(name: str, value: int) -> None:
    """Check that a hyper-parameter is an int, of either sign."""
    number(name, value)
    if not isinstance(value, int):
        raise ValueError(f"{name} must be an int, got {value}")


def freedom(ddof: float) -> None:
    """Check what is subtracted from the count in a variance: 0 or 1."""
    number("ddof", ddof)
    if ddof not in (0, 1):
        raise ValueError(
            f"ddof must be 0 (divide by the count) or 1 (divide by the count less one), got {ddof}"
        )


def square_factor(factor: float) -> None:
    """Check what a squared error is multiplied by: 0.5 or 1."""
    number("factor", factor)
    if factor not in (0.5, 1):
        raise ValueError(f"factor must be 0.5 (half the squared error) or 1 (the whole of it), got {factor}")


def denominator(value: float | Tensor) -> None:
    """Check what a sum of losses is divided by: a number above 0, plain or as a tensor."""
    if not isinstance(value, Tensor):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(
                f"denominator must be a plain number or a tensor of shape [], got {type(value).__name__}; "
                "write a float or an int, or take batch_count"
            )
        positive("denominator", value)
        return
    if value.dtype == torch.bool or value.is_complex():
        raise TypeError(f"denominator must be a tensor of integers or floats, got {value.dtype}")
    if value.ndim != 0:
        raise ValueError(
            f"denominator must be a plain number or a tensor of shape [], got {list(value.shape)}; "
            "one number divides the whole sum"
        )
    if may_look(value):
        positive("denominator", value.item())


def numbers(name: str, x: Tensor) -> None:
    """Check that `x` is a tensor of whole or floating-point numbers."""
    tensor(name, x)
    if x.dtype == torch.bool or x.is_complex():
        raise TypeError(
            f"{name} must be a tensor of integers or floats, got {x.dtype}; count a mask with {name}.sum()"
        )


def process_group(group: ProcessGroup | None) -> None:
    """Check that `group` is a process group that this process belongs to, or None."""
    # To a process outside a new group torch gives a number in its place.
    if group is not None and not isinstance(group, ProcessGroup):
        raise TypeError(
            f"group must be a torch.distributed.ProcessGroup or None, got {type(group).__name__}; of a device mesh "
            "take mesh.get_group(), and call on no rank that is outside the group"
        )


def may_look(x: Tensor) -> bool:
    """Say whether the data of `x` may be inspected: on the CPU, in eager mode.

    Elsewhere a look would wait for the device or break the compiled graph; there a fault in the data turns
    the result concerned into NaN.
    """
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def is_ordinary(*tensors: Tensor | None) -> bool:
    """Say whether a fast path is understood: all that is done with the tensors is to compute, and to go back.

    A subclass, the meta device, a transformation such as `torch.func.vmap` and a forward-mode derivative take
    operations apart in a way of their own, which they know for the plain definitions alone.
    """
    return (
        not torch._C._are_functorch_transforms_active()
        and torch.autograd.forward_ad._current_level < 0
        and all(x is None or _has_plain_data(x) for x in tensors)
    )


def is_eager(*tensors: Tensor | None) -> bool:
    """Say whether the same holds outside a compiled graph, which plans its memory itself."""
    return not torch.compiler.is_compiling() and is_ordinary(*tensors)


def of_one_type(*tensors: Tensor) -> bool:
    """Say whether all tensors hold numbers of one type: in place a result has no wider one."""
    return len({x.dtype for x in tensors}) == 1


def _has_plain_data(x: Tensor) -> bool:
    """Say whether `x` has data of its own, and no transformation has wrapped it."""
    if type(x) not in (Tensor, torch.nn.Parameter) or x.device.type == "meta":
        return False
    # A graph cannot ask; there the first question is enough. The second kind is that of `is_grads_batched`.
    functions = torch._C._functorch
    return torch.compiler.is_compiling() or not (
        functions.is_functorch_wrapped_tensor(x) or functions.is_legacy_batchedtensor(x)
    )
