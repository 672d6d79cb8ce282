"""Ours, the peers' and the floor of each operation: functions of the inputs by name, that return results by name.

Each is loaded in a process of its own, so that no peer's import weighs on another's memory.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

import ppo_core
from benchmarks.losses.inputs import Tensors
from benchmarks.parity import peers

GAMMA, LAM, EPSILON = 1.0, 0.95, 0.2
COEFFICIENTS = {"value_coef": 0.5, "entropy_coef": 0.01, "beta": 0.05}
# verl's dual clip and its clipped value loss cannot be left out; so far away they never act.
NEVER = 1e9

Side = Callable[[Tensors], Tensors]


def compiled(loader: Callable[[], Callable[..., Tensor]], *names: str) -> Callable[[], Side]:
    """A loss of the named tensors, compiled."""

    def load() -> Side:
        function = torch.compile(loader())
        return lambda x: {"loss": function(*(x[name] for name in names))}

    return load


def eager(loader: Callable[[], Callable[..., Tensor]], *names: str) -> Callable[[], Side]:
    def load() -> Side:
        function = loader()
        return lambda x: {"loss": function(*(x[name] for name in names))}

    return load


def floor(*, read: tuple[str, ...] = (), write: tuple[str, ...] = (), again: int = 0) -> Callable[[], Side]:
    """Read each tensor of `read`, and read each of `write` and write as much; read `write` as often `again`."""

    @torch.no_grad()
    def move(x: Tensors) -> Tensors:
        for name in (*read, *write * again):
            _read(x[name])
        return {f"copy of {name}": x[name].clone() for name in write}

    return lambda: move


def _read(x: Tensor) -> None:
    # A mask is read four tokens at a time.
    x.sum() if x.is_floating_point() else x.view(torch.int32).amax()


# GAE.


def ours_gae() -> Side:
    return lambda x: {
        "advantages": ppo_core.gae(
            x["rewards"],
            x["values"],
            x["mask"],
            gamma=GAMMA,
            lam=LAM,
            sequence_ids=x.get("sequence_ids"),
        )
    }


def verl_gae(prefix: str = "") -> Side:
    names = peers.verl()
    estimate, unwhitened = names["core_algos"].compute_gae_advantage_return, names["unwhitened"]

    def side(x: Tensors) -> Tensors:
        tensors = (x[f"{prefix}{name}"] for name in ("rewards", "values", "mask"))
        rewards, values, mask = tensors
        with unwhitened():
            return {"advantages": estimate(rewards, values, mask.float(), GAMMA, LAM)[0]}

    return side


def verl_packed_gae() -> Side:
    side = verl_gae("unpacked_")

    def packed(x: Tensors) -> Tensors:
        return {"advantages": side(x)["advantages"][x["unpacked_mask"]].reshape(x["rewards"].shape)}

    return packed


def torchrl_gae() -> Side:
    estimate = peers.torchrl()["functional"].vec_generalized_advantage_estimate

    def side(x: Tensors) -> Tensors:
        tensors = (x[name].unsqueeze(-1) for name in ("values", "next_values", "rewards", "ends"))
        return {"advantages": estimate(GAMMA, LAM, *tensors)[0].squeeze(-1)}

    return side


GAE_FLOOR = floor(read=("values", "mask"), write=("rewards",))

# The policy loss and the whole objective.


def policy_loss(logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
    losses = ppo_core.policy_loss(logprobs, old_logprobs, advantages, epsilon=EPSILON, mask=mask)
    return ppo_core.aggregate(losses, mask, mode="token_mean")


def plain_policy_loss(logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
    """The same as anyone would write it."""
    ratio = (logprobs - old_logprobs).exp()
    surrogate = torch.min(ratio * advantages, ratio.clamp(1 - EPSILON, 1 + EPSILON) * advantages)
    return -(surrogate * mask).sum() / mask.sum()


def verl_policy() -> Callable[..., Tensor]:
    compute = peers.verl()["core_algos"].compute_policy_loss

    def loss(logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
        return compute(old_logprobs, logprobs, advantages, mask, cliprange=EPSILON, clip_ratio_c=NEVER)[0]

    return loss


POLICY = ("logprobs", "old_logprobs", "advantages", "mask")
TERMS = ("policy", "value", "entropy", "kl")


def ours_objective() -> Side:
    def side(x: Tensors) -> Tensors:
        terms = ppo_core.ppo_objective(
            x["logprobs"],
            x["old_logprobs"],
            x["ref_logprobs"],
            x["advantages"],
            x["values"],
            x["returns"],
            x["entropies"],
            x["mask"],
            epsilon=EPSILON,
            mode="token_mean",
            **COEFFICIENTS,
        )
        policy = (x[name] for name in POLICY)
        fractions = ppo_core.clip_fractions(*policy, epsilon=EPSILON)
        return {
            "loss": terms.loss,
            **{name: getattr(terms, name).detach() for name in TERMS},
            "clip fraction": fractions.upper + fractions.lower,
            "k1": ppo_core.masked_mean(ppo_core.log_ratio(x["old_logprobs"], x["logprobs"]), x["mask"]),
        }

    return side


def verl_objective() -> Side:
    verl = peers.verl()["core_algos"]

    def side(x: Tensors) -> Tensors:
        mask = x["mask"]
        policy, clip_fraction, k1, _ = verl.compute_policy_loss(
            x["old_logprobs"],
            x["logprobs"],
            x["advantages"],
            mask,
            cliprange=EPSILON,
            clip_ratio_c=NEVER,
        )
        value, _ = verl.compute_value_loss(x["values"], x["returns"], x["old_values"], mask, NEVER)
        kl = verl.agg_loss(verl.kl_penalty(x["logprobs"], x["ref_logprobs"], "k2"), mask, "token-mean")
        entropy = verl.agg_loss(x["entropies"], mask, "token-mean")
        loss = (
            policy
            + COEFFICIENTS["value_coef"] * value
            - COEFFICIENTS["entropy_coef"] * entropy
            + COEFFICIENTS["beta"] * kl
        )
        terms = (policy, value, entropy, kl)
        return {
            "loss": loss,
            **{name: term.detach() for name, term in zip(TERMS, terms, strict=True)},
            "clip fraction": clip_fraction,
            "k1": k1.detach(),
        }

    return side


# Log-probabilities from logits.


def plain_logprobs(logits: Tensor, tokens: Tensor) -> Tensor:
    return logits.log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)


def logprobs_of(loader: Callable[[], Callable[[Tensor, Tensor], Tensor]]) -> Callable[[], Side]:
    def load() -> Side:
        function = loader()
        return lambda x: {"logprobs": function(x["logits"], x["tokens"])}

    return load


def ours_logprobs_and_entropies() -> Side:
    return lambda x: ppo_core.logit_statistics(x["logits"], x["tokens"])._asdict()


def verl_logprobs_and_entropies() -> Side:
    verl = peers.verl()["verl_F"]
    return lambda x: {
        "logprobs": verl.logprobs_from_logits_v2(x["logits"], x["tokens"]),
        "entropies": verl.entropy_from_logits(x["logits"]),
    }


LOGITS_FLOOR = floor(write=("logits",), again=1)

# From hidden states to the policy loss.


def ours_hidden() -> Side:
    return lambda x: {
        "loss": ppo_core.hidden_policy_loss(
            x["hidden"],
            x["weight"],
            x["tokens"],
            x["old_logprobs"],
            x["advantages"],
            x["mask"],
            epsilon=EPSILON,
            mode="token_mean",
        ).loss
    }


def hidden_by(loader: Callable[[], Callable[[Tensor, Tensor, Tensor], Tensor]]) -> Callable[[], Side]:
    """The plain loss of the log-probabilities that a function makes from hidden states, weight and tokens."""

    def load() -> Side:
        function = loader()

        def side(x: Tensors) -> Tensors:
            logprobs = function(x["hidden"], x["weight"], x["tokens"])
            return {"loss": plain_policy_loss(logprobs, x["old_logprobs"], x["advantages"], x["mask"])}

        return side

    return load


def plain_hidden(hidden: Tensor, weight: Tensor, tokens: Tensor) -> Tensor:
    return plain_logprobs(functional.linear(hidden, weight), tokens)


def liger_hidden() -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    apply = peers.liger()["selective_logprobs"]
    return lambda hidden, weight, tokens: apply(hidden, weight, tokens, None, 1.0, 4096)


@torch.no_grad()
def products(x: Tensors) -> Tensors:
    """The three matrix products alone: the logits, and from their gradient those of hidden and weight."""
    logits = x["hidden"] @ x["weight"].T
    return {"into hidden": logits @ x["weight"], "into weight": logits.T @ x["hidden"]}
