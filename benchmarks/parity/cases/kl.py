"""The estimators of the KL divergence."""

from benchmarks.parity.differences import Difference

NEAR = "1e-4 ** 2 / 2 + 1e-4 ** 3 / 6 + 1e-4 ** 4 / 24"
OURS_NEAR = "kl_k3(torch.tensor([0.0]), torch.tensor([1e-4]))"


def near(peer: str, what: str, theirs: str, ours: str = OURS_NEAR, right: str = f"[{NEAR}]") -> Difference:
    return Difference(
        peer,
        "k3 close to the reference",
        what,
        "d = 0.0001, float32",
        theirs,
        ours,
        right,
        "d²/2 + d³/6 + … = 5e-9 + 1.7e-13 = 5.0002e-9",
        "The exponential of d is rounded to a multiple of 1.2e-7 before 1 and d are taken off.",
    )


def far(
    peer: str, what: str, given: str, theirs: str, ours: str, right: str, by_hand: str, why: str
) -> Difference:
    return Difference(
        peer, "A bound on the estimate", what, given, theirs, ours, right, by_hand, why, fault=False
    )


X = "x = torch.tensor([0.0], requires_grad=True)\n"
STOPS = "The result is bounded by 10, and past the bound the gradient is 0: far from the reference the leash lets go."

ROWS = (
    near(
        "verl", "`kl_penalty`, k3", 'core_algos.kl_penalty(torch.tensor([0.0]), torch.tensor([1e-4]), "k3")'
    ),
    near(
        "openrlhf",
        "`compute_approx_kl`, k3",
        'utils.compute_approx_kl(torch.tensor([0.0]), torch.tensor([1e-4]), kl_estimator="k3")',
    ),
    near("liger", "`k3_loss_fn`", "grpo_loss.k3_loss_fn(torch.tensor([1e-4]), torch.tensor([0.0]))"),
    near(
        "trl",
        "`GRPOTrainer`, `beta=1`",
        "zero = torch.zeros(1, 1)\n"
        "grpo_loss(zero, zero, torch.tensor([0.0]), torch.ones(1, 1), ref_logprobs=torch.tensor([[1e-4]]), beta=1.0)",
        "kl_k3(torch.tensor(0.0), torch.tensor(1e-4))",
        NEAR,
    ),
    Difference(
        "torchrl",
        "k3 close to the reference",
        "KL to the reference",
        "d = 0.000001, float32",
        "from tensordict import TensorDict\n"
        'data = TensorDict({"_cur_log_prob": torch.tensor([[0.0]]), "ref": torch.tensor([[1e-6]])}, [1])\n'
        'grpo.GRPOLoss()._kl_to_ref(data, key="ref", coeff=1.0)[1]',
        "kl_k3(torch.tensor(0.0), torch.tensor(1e-6))",
        "1e-6 ** 2 / 2 + 1e-6 ** 3 / 6",
        "d²/2 + d³/6 = 5e-13 + 1.7e-19 = 5.0000e-13",
        "`expm1(d) − d` keeps four digits at d = 0.0001; here it is off by a tenth.",
    ),
    far(
        "verl",
        "value of k3",
        "d = 3",
        'core_algos.kl_penalty(torch.tensor([0.0]), torch.tensor([3.0]), "k3")',
        "kl_k3(torch.tensor([0.0]), torch.tensor([3.0]))",
        "[exp(3) - 1 - 3]",
        "e³ − 1 − 3 = 16.0855",
        STOPS,
    ),
    far(
        "verl",
        "gradient of k3",
        "d = 3",
        X + 'torch.autograd.grad(core_algos.kl_penalty(x, torch.tensor([3.0]), "k3").sum(), x)[0]',
        X + "torch.autograd.grad(kl_k3(x, torch.tensor([3.0])).sum(), x)[0]",
        "[1 - exp(3)]",
        "1 − e³ = −19.0855",
        STOPS,
    ),
    far(
        "openrlhf",
        "gradient of k3",
        "d = 3",
        X
        + 'torch.autograd.grad(utils.compute_approx_kl(x, torch.tensor([3.0]), kl_estimator="k3").sum(), x)[0]',
        X + "torch.autograd.grad(kl_k3(x, torch.tensor([3.0])).sum(), x)[0]",
        "[1 - exp(3)]",
        "1 − e³ = −19.0855",
        STOPS,
    ),
    far(
        "openrlhf",
        "value of k1",
        "log-probabilities 0 and −15",
        'utils.compute_approx_kl(torch.tensor([0.0]), torch.tensor([-15.0]), kl_estimator="k1")',
        "kl_k1(torch.tensor([0.0]), torch.tensor([-15.0]))",
        "[0 - (-15)]",
        "0 − (−15) = 15",
        "k1 is bounded by ±10 too, so the penalty in the reward stops growing.",
    ),
)
