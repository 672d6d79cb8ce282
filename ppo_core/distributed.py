"""Many processes: counts over all ranks, and the factor that an average of gradients needs.

A batch over many ranks is a batch in pieces: each rank divides its losses by the count of the whole, and the
parts are added. That takes two things, one before the loss and one after it.

All ranks of a group must make the same calls in the same order, a rank without a single token too. An error
before a call leaves the other ranks waiting for the group's timeout, unless the launcher ends them. The
collectives are plain ones of torch.distributed; under torch.compile they become part of the graph.
"""

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup

from ppo_core import checks


def global_sum(x: Tensor, group: ProcessGroup | None) -> Tensor:
    r"""Add up a tensor over the ranks of a process group.

    $$\sum_{k = 1}^{R} x^{(k)}$$

    For counts and metrics: the denominator of a batch that lies on R ranks is the sum of their `batch_count`.
    All ranks call it, each with a tensor of the same shape and type, and all get the same result.

    Args:
        x: Whole or floating-point numbers, shape [...]: what this rank adds, $x^{(k)}$.
        group: The ranks; None for the default group, all ranks.

    Returns:
        The sum, same shape, int64 for whole numbers and float32 or wider for others; `x` stays as it is.

    Raises:
        TypeError: `x` does not hold numbers, or `group` is not a process group.
        ValueError: `group` is None and there is no default group.

    Gradient:
        None: counts and metrics are data.

    Source:
        Definition.

    Examples:
        A group of one; a launcher such as torchrun starts more:

        >>> import torch
        >>> import torch.distributed as dist
        >>> from ppo_core import global_sum
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> global_sum(torch.tensor([2, 3]), None)
        tensor([2, 3])
        >>> dist.destroy_process_group()
    """
    checks.numbers("x", x)
    checks.process_group(group)
    x = x.detach()
    return over_ranks(checks.wide(x) if x.is_floating_point() else x.long(), group)


def undo_mean_over_ranks(loss: Tensor, group: ProcessGroup | None) -> Tensor:
    r"""Multiply a loss by the number of ranks, so that the average of their gradients is the sum.

    $$R\, L, \qquad \frac{1}{R} \sum_{k = 1}^{R} \nabla \bigl(R\, L^{(k)}\bigr) = \nabla \sum_{k = 1}^{R} L^{(k)}$$

    `DistributedDataParallel` and FSDP divide the sum of all gradients by the number of ranks, R. That is right
    for a loss that each rank averages over its own tokens, and only if all have equally many. With a denominator
    of the whole batch the loss of a rank is a part, $L^{(k)}$, and parts are added: without this factor the
    gradient would be R times too small.

    Use it once, on what `backward` is called on, for every micro-batch. Leave it out where gradients are added
    anyway, as after FSDP2's `set_gradient_divide_factor(1.0)`.

    Args:
        loss: This rank's part of the loss, $L^{(k)}$, shape [...], [] as a rule.
        group: The ranks over which gradients are averaged, the data-parallel ones; None for the default group,
            all ranks.

    Returns:
        The loss for the backward pass, same shape, float32 or wider. The loss to report is `global_sum` of the
        loss without the factor.

    Raises:
        TypeError: `loss` is not floating point, or `group` is not a process group.
        ValueError: `group` is None and there is no default group.

    Gradient:
        Into `loss`: the number of ranks.

    Source:
        Definition; the average: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel
        Training", 2020.

    Examples:
        A group of one; a launcher such as torchrun starts more:

        >>> import torch
        >>> import torch.distributed as dist
        >>> from ppo_core import undo_mean_over_ranks
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> undo_mean_over_ranks(torch.tensor(0.5), None)
        tensor(0.5000)
        >>> dist.destroy_process_group()
    """
    (loss,) = checks.floats({"loss": loss})
    checks.process_group(group)
    return loss * dist.get_world_size(group)


def over_ranks(x: Tensor, group: ProcessGroup | None, *, largest: bool = False) -> Tensor:
    """Return the sum over the ranks, or the largest of them, leaving `x` as it is."""
    # In one order of the elements on all ranks, however they lie in memory on each.
    x = x.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(x, op=dist.ReduceOp.MAX if largest else dist.ReduceOp.SUM, group=group)
    return x
