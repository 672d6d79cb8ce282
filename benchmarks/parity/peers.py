"""How each peer is imported, on a CPU and without what only its trainers need."""

import contextlib
import importlib.util
import sys
import types
from collections.abc import Callable
from types import SimpleNamespace


def names_of(peer: str) -> dict[str, object]:
    """What the code of that peer's rows may call. Import one peer in a process: OpenRLHF gets a stand-in for
    DeepSpeed, which transformers must not see."""
    import torch

    return {"torch": torch} | LOADERS[peer]()


def verl() -> dict[str, object]:
    import numpy
    from verl.trainer.config import AlgoConfig
    from verl.trainer.ppo import core_algos, rollout_corr_helper
    from verl.utils import torch_functional
    from verl.workers.config import ActorConfig

    def config(**settings) -> ActorConfig:
        return ActorConfig(strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1, **settings)

    def loss_of(name: str, *tensors, **settings):
        mode = settings.pop("loss_agg_mode", "token-mean")
        return core_algos.get_policy_loss_fn(name)(*tensors, loss_agg_mode=mode, config=config(**settings))[0]

    return {
        "core_algos": core_algos,
        "verl_F": torch_functional,
        "rollout_corr_helper": rollout_corr_helper,
        "AlgoConfig": AlgoConfig,
        "ActorConfig": ActorConfig,
        "policy_loss_fn": loss_of,
        "unwhitened": lambda: _replaced(torch_functional, "masked_whiten", lambda x, mask: x),
        "np": numpy,
    }


def openrlhf() -> dict[str, object]:
    sys.modules.setdefault("deepspeed", types.ModuleType("deepspeed"))
    folder = importlib.util.find_spec("openrlhf").submodule_search_locations[0]
    package = types.ModuleType("openrlhf_models")
    package.__path__ = [f"{folder}/models"]
    sys.modules["openrlhf_models"] = package
    # What makes experience runs on Ray and vLLM; its methods on tensors need neither.
    for name in OF_THE_EXPERIENCE_MAKER:
        sys.modules[name] = _StandIn(name)
    maker = _from_file("openrlhf_experience_maker", f"{folder}/trainer/ppo_utils/experience_maker.py")
    for name in OF_THE_EXPERIENCE_MAKER:
        del sys.modules[name]
    controller = _from_file("openrlhf_kl_controller", f"{folder}/trainer/ppo_utils/kl_controller.py")
    return {
        "maker": maker.RemoteExperienceMaker.__new__(maker.RemoteExperienceMaker),
        "loss": importlib.import_module("openrlhf_models.loss"),
        "utils": importlib.import_module("openrlhf_models.utils"),
        "kl_controller": controller,
    }


def trl() -> dict[str, object]:
    import torch
    import trl.trainer.utils as utils
    from trl.experimental.ppo import ppo_trainer
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    def grpo_loss(
        logprobs,
        old_logprobs,
        advantages,
        mask,
        *,
        ref_logprobs=None,
        loss_type="dapo",
        epsilon=0.2,
        epsilon_high=None,
        delta=None,
        beta=0.0,
        importance_sampling_level="token",
        max_completion_length=None,
    ):
        """GRPOTrainer's own loss for log-probabilities that are given, in one process and one micro-batch."""
        trainer = _Anything(
            loss_type=loss_type,
            epsilon_low=epsilon,
            epsilon_high=epsilon if epsilon_high is None else epsilon_high,
            beta=beta,
            importance_sampling_level=importance_sampling_level,
            max_completion_length=max_completion_length,
            top_entropy_quantile=1.0,
            off_policy_mask_threshold=None,
            aux_loss_enabled=False,
            use_vllm=False,
            current_gradient_accumulation_steps=1,
            _entropy_bonus_enabled=False,
            args=SimpleNamespace(delta=delta, use_bias_correction_kl=False, steps_per_generation=1),
            model=SimpleNamespace(training=True),
            accelerator=SimpleNamespace(
                num_processes=1, gather=lambda x: x, reduce=lambda x, reduction: x, sync_gradients=True
            ),
            _get_per_token_logps_and_entropies=lambda *a, **k: (logprobs, torch.zeros_like(mask * 1.0), None),
        )
        ids = mask.long()
        inputs = {
            "prompt_ids": ids,
            "prompt_mask": ids,
            "completion_ids": ids,
            "completion_mask": ids,
            "advantages": advantages,
            "old_per_token_logps": old_logprobs,
            "ref_per_token_logps": ref_logprobs,
            "num_items_in_batch": mask.sum(),
        }
        return GRPOTrainer._compute_loss(trainer, None, inputs)

    return {
        "utils": utils,
        "ppo_trainer": ppo_trainer,
        "GRPOConfig": GRPOConfig,
        "grpo_loss": grpo_loss,
        "chunked_logprobs": utils._ChunkedLogProbFunction.apply,
    }


def torchtune() -> dict[str, object]:
    from torchtune import rlhf
    from torchtune.rlhf import loss

    return {
        "rlhf": rlhf,
        "loss": loss,
        "unwhitened": lambda: _replaced(
            importlib.import_module("torchtune.rlhf.rewards"), "whiten", lambda x, mask: x
        ),
    }


def torchrl() -> dict[str, object]:
    from torchrl.data.llm import utils as llm_utils
    from torchrl.objectives.llm import grpo
    from torchrl.objectives.utils import _clip_value_loss, distance_loss
    from torchrl.objectives.value import functional

    return {
        "functional": functional,
        "grpo": grpo,
        "llm_utils": llm_utils,
        "distance_loss": distance_loss,
        "clip_value_loss": _clip_value_loss,
    }


def rlax() -> dict[str, object]:
    import jax
    import jax.numpy
    import rlax

    return {"rlax": rlax, "jax": jax, "jnp": jax.numpy, "array": lambda x: jax.numpy.asarray(x.numpy())}


def liger() -> dict[str, object]:
    from liger_kernel.chunked_loss import fused_linear_ppo, grpo_loss
    from liger_kernel.chunked_loss.dpo_loss import LigerFusedLinearDPOFunction

    return {
        "grpo_loss": grpo_loss,
        "ppo_loss_fn": grpo_loss.LigerFusedLinearGRPOFunction.ppo_loss_fn,
        "preference_loss_fn": LigerFusedLinearDPOFunction.preference_loss_fn,
        "selective_logprobs": fused_linear_ppo._ChunkedSelectiveLogProbFunction.apply,
    }


LOADERS: dict[str, Callable[[], dict[str, object]]] = {
    "trl": trl,
    "verl": verl,
    "openrlhf": openrlhf,
    "torchtune": torchtune,
    "torchrl": torchrl,
    "rlax": rlax,
    "liger": liger,
}


OF_THE_EXPERIENCE_MAKER = (
    "ray",
    "openrlhf",
    "openrlhf.models",
    "openrlhf.models.utils",
    "openrlhf.trainer",
    "openrlhf.trainer.ppo_utils",
    "openrlhf.trainer.ppo_utils.experience",
    "openrlhf.trainer.ppo_utils.length_penalty",
    "openrlhf.trainer.ray",
    "openrlhf.trainer.ray.launcher",
    "openrlhf.utils",
    "openrlhf.utils.logging_utils",
    "openrlhf.utils.seqlen_balancing",
)


class _StandIn(types.ModuleType):
    """A module in which each name is a function that does nothing."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **keywords: None


class _Anything(SimpleNamespace):
    """A trainer that has what it was given; its metrics take anything."""

    @property
    def _metrics(self):
        from collections import defaultdict

        return defaultdict(lambda: defaultdict(list))


@contextlib.contextmanager
def _replaced(module: types.ModuleType, name: str, by: object):
    """Put another object under a name of the module for as long as the block runs."""
    kept = getattr(module, name)
    setattr(module, name, by)
    try:
        yield
    finally:
        setattr(module, name, kept)


def _from_file(name: str, path: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
