"""The operations: what goes in, what gets a gradient, and who computes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

import ppo_core
from benchmarks.losses import inputs, sides
from benchmarks.losses.inputs import Size, Source, Tensors
from benchmarks.losses.sides import POLICY, Side
from benchmarks.parity import peers


@dataclass(frozen=True)
class Operation:
    """What is measured: the inputs, those of them that get a gradient, and who computes it.

    A side is a function that imports what it needs and returns the function that is timed. That one takes the
    inputs by name and returns its results by name. `small` is a size for the first, untimed call.
    """

    title: str
    make: Callable[[Size, Source], Tensors]
    slopes: tuple[str, ...]
    small: Size
    sides: Mapping[str, Callable[[], Side]]


def run(side: Side, x: Tensors, slopes: tuple[str, ...]) -> tuple[Tensors, Tensors]:
    """Forward and backward: the results, and the gradients by the name of their input."""
    answer = side(x)
    pulled = [name for name, result in answer.items() if result.requires_grad]
    if not pulled:
        return answer, {}
    found = torch.autograd.grad(
        [answer[name] for name in pulled],
        [x[name] for name in slopes],
        [x.get(f"into_{name}") for name in pulled],
    )
    return answer, dict(zip(slopes, found, strict=True))


OPERATIONS = {
    "gae": Operation(
        "GAE, ragged ends",
        inputs.gae_ragged,
        (),
        (2, 16),
        {
            "ours": sides.ours_gae,
            "verl": sides.verl_gae,
            "torchrl": sides.torchrl_gae,
            "floor": sides.GAE_FLOOR,
        },
    ),
    "gae_holes": Operation(
        "GAE, holes in the mask",
        inputs.gae_holes,
        (),
        (2, 16),
        {"ours": sides.ours_gae, "verl": sides.verl_gae, "floor": sides.GAE_FLOOR},
    ),
    "gae_packed": Operation(
        "GAE, packed rows",
        inputs.gae_packed,
        (),
        (2, 16),
        {"ours": sides.ours_gae, "verl": sides.verl_packed_gae, "floor": sides.GAE_FLOOR},
    ),
    "policy": Operation(
        "clipped policy loss, token mean",
        inputs.policy,
        ("logprobs",),
        (2, 16),
        {
            "ours": sides.eager(lambda: sides.policy_loss, *POLICY),
            "ours compiled": sides.compiled(lambda: sides.policy_loss, *POLICY),
            "verl": sides.eager(sides.verl_policy, *POLICY),
            "verl compiled": sides.compiled(sides.verl_policy, *POLICY),
            "floor": sides.floor(read=POLICY[1:], write=POLICY[:1]),
        },
    ),
    "objective": Operation(
        "the whole objective with diagnostics",
        inputs.objective,
        ("logprobs", "values", "entropies"),
        (2, 16),
        {
            "ours": sides.ours_objective,
            "verl": sides.verl_objective,
            "floor": sides.floor(
                read=("old_logprobs", "ref_logprobs", "advantages", "returns", "mask"),
                write=("logprobs", "values", "entropies"),
            ),
        },
    ),
    "logprobs": Operation(
        "log-probability from logits",
        inputs.logits,
        ("logits",),
        (2, 4, 16),
        {
            "ours": sides.logprobs_of(lambda: ppo_core.token_logprobs),
            "plain": sides.logprobs_of(lambda: sides.plain_logprobs),
            "TRL": sides.logprobs_of(lambda: peers.trl()["utils"].selective_log_softmax),
            "verl": sides.logprobs_of(lambda: peers.verl()["verl_F"].logprobs_from_logits_v2),
            "floor": sides.LOGITS_FLOOR,
        },
    ),
    "logprobs_entropies": Operation(
        "log-probability and entropy from logits",
        inputs.logits,
        ("logits",),
        (2, 4, 16),
        {
            "ours": sides.ours_logprobs_and_entropies,
            "verl": sides.verl_logprobs_and_entropies,
            "floor": sides.LOGITS_FLOOR,
        },
    ),
    "hidden": Operation(
        "hidden states to policy loss",
        inputs.hidden,
        ("hidden", "weight"),
        (8, 4, 16),
        {
            "ours": sides.ours_hidden,
            "plain": sides.hidden_by(lambda: sides.plain_hidden),
            "Liger": sides.hidden_by(sides.liger_hidden),
            "floor": lambda: sides.products,
        },
    ),
}
