"""Changes to the library and the laboratory that change no result, each with the reason why no test could notice.

The long run of the mutants fails if one of these is noticed after all, or if one that is not here survives.
"""

_CONSTANT_SHIFT = "logits that differ by one number for all actions are the same policy"
_ONE_DIMENSION = "the argument has one dimension, which is the first and the last"
_NOT_CHOSEN = "torch.where never chooses the filler, it must only be finite"
_TIMES_ZERO = "what has no probability is multiplied by 0, so the filler must only be finite"
_SQUARE = "the square has no sign"
_NO_BASELINE = "no baseline changes the mean"

_NO_WAY_BACK = "autograd.grad asks for the gradient of the logits alone, so nothing flows further"
_ROUNDING = "by then the steps are rounding errors"

# Changes that change no result, each with the reason.
EQUIVALENT = {
    "ppo_core.values.value_loss: return factor * (counted(values, mask) - counted(returns.detach(), mask)) ** 2 -> return factor * (counted(returns.detach(), mask) - counted(values, mask)) ** 2": _SQUARE,
    "ppo_core.entropies.entropy: finite = torch.where(logprobs == -torch.inf, 0.0, logprobs) -> finite = torch.where(logprobs == -torch.inf, 1.0, logprobs)": _TIMES_ZERO,
    "ppo_core.entropies.entropy: finite = torch.where(logprobs == -torch.inf, 0.0, logprobs) -> finite = torch.where(logprobs == -torch.inf, -1.0, logprobs)": _TIMES_ZERO,
    "ppo_core.entropies.counted_logits: return logits if temperature == 1 else logits / temperature -> return logits if temperature == 0 else logits / temperature": (
        "division by 1 changes no bit"
    ),
    "lab.bandit.exact_policy_gradient: logits = probs.detach().log().requires_grad_() -> logits = probs.log().requires_grad_()": (
        "autograd.grad asks for the gradient of `logits` alone, so nothing flows further"
    ),
    "lab.bandit.exact_policy_gradient: value = (torch.softmax(logits, -1) * rewards).sum() -> value = (torch.softmax(logits, -0) * rewards).sum()": _ONE_DIMENSION,
    "lab.bandit.policy_gradient_mean: def policy_gradient_mean(probs: Tensor, rewards: Tensor, *, baseline: float=0.0) -> Tensor: -> def policy_gradient_mean(probs: Tensor, rewards: Tensor, *, baseline: float=1.0) -> Tensor:": _NO_BASELINE,
    "lab.bandit.policy_gradient_mean: def policy_gradient_mean(probs: Tensor, rewards: Tensor, *, baseline: float=0.0) -> Tensor: -> def policy_gradient_mean(probs: Tensor, rewards: Tensor, *, baseline: float=-1.0) -> Tensor:": _NO_BASELINE,
    "lab.bandit.policy_gradient_variance: return (probs * (estimates - mean) ** 2).sum() -> return (probs * (mean - estimates) ** 2).sum()": (
        "the square has no sign"
    ),
    "lab.kl_gradients.kl_gradient: logprobs = torch.log_softmax(z, -1) -> logprobs = torch.log_softmax(z, -0)": _ONE_DIMENSION,
    "lab.kl_gradients.kl_gradient: divergence = (logprobs.exp() * (logprobs - torch.log_softmax(ref_logits, -1))).sum() -> divergence = (logprobs.exp() * (logprobs - ref_logits)).sum()": _CONSTANT_SHIFT,
    "lab.kl_gradients.kl_gradient: divergence = (logprobs.exp() * (logprobs - torch.log_softmax(ref_logits, -1))).sum() -> divergence = (logprobs.exp() * (logprobs - torch.log_softmax(ref_logits, -0))).sum()": _ONE_DIMENSION,
    "lab.kl_gradients.sampled_kl_gradient: logprobs = torch.log_softmax(z, -1) -> logprobs = torch.log_softmax(z, -0)": _ONE_DIMENSION,
    "lab.kl_gradients.sampled_kl_gradient: per_action = ESTIMATORS[estimator](logprobs, torch.log_softmax(ref_logits, -1)) -> per_action = ESTIMATORS[estimator](logprobs, torch.log_softmax(ref_logits, -0))": _ONE_DIMENSION,
    "ppo_core.kl.SERIES_DEGREE: SERIES_DEGREE = 10 -> SERIES_DEGREE = 11": "d^11 / 11! is below the last bit of the sum",
    "ppo_core.kl.SERIES_DEGREE: SERIES_DEGREE = 10 -> SERIES_DEGREE = 20": "so are all later terms",
    "ppo_core.kl.exp_remainder: small = d.abs() < SERIES_RADIUS -> small = d.abs() <= SERIES_RADIUS": (
        "at the radius both forms are right"
    ),
    "ppo_core.kl.exp_remainder: x = torch.where(small, d, 0.0) -> x = torch.where(small, d, 1.0)": _NOT_CHOSEN,
    "ppo_core.kl.exp_remainder: x = torch.where(small, d, 0.0) -> x = torch.where(small, d, -1.0)": _NOT_CHOSEN,
    "lab.entropy_gradients.entropy_gradient: z = logits.detach().clone().requires_grad_() -> z = logits.clone().requires_grad_()": _NO_WAY_BACK,
    "lab.overoptimisation.proxy_and_true: log_ratio = torch.log_softmax(ref_probs.log() + proxy_scores / beta, -1) - ref_probs.log() -> log_ratio = torch.log_softmax(ref_probs.log() + proxy_scores / beta, -0) - ref_probs.log()": _ONE_DIMENSION,
    "lab.chains.answer_gradient: logits = first_probs.detach().log().requires_grad_() -> logits = first_probs.log().requires_grad_()": _NO_WAY_BACK,
    "lab.chains.answer_gradient: value = (torch.softmax(logits, -1) * (second_probs * scores).detach().sum(1)).sum() -> value = (torch.softmax(logits, -0) * (second_probs * scores).detach().sum(1)).sum()": _ONE_DIMENSION,
    "lab.chains.answer_gradient: value = (torch.softmax(logits, -1) * (second_probs * scores).detach().sum(1)).sum() -> value = (torch.softmax(logits, -1) * (second_probs * scores).sum(1)).sum()": _NO_WAY_BACK,
    "lab.chains.gae_gradient: def gae_gradient(first_probs: Tensor, second_probs: Tensor, scores: Tensor, values: Tensor, *, lam: float, start_value: float=0.0) -> Tensor: -> def gae_gradient(first_probs: Tensor, second_probs: Tensor, scores: Tensor, values: Tensor, *, lam: float, start_value: float=1.0) -> Tensor:": _NO_BASELINE,
    "lab.chains.gae_gradient: def gae_gradient(first_probs: Tensor, second_probs: Tensor, scores: Tensor, values: Tensor, *, lam: float, start_value: float=0.0) -> Tensor: -> def gae_gradient(first_probs: Tensor, second_probs: Tensor, scores: Tensor, values: Tensor, *, lam: float, start_value: float=-1.0) -> Tensor:": _NO_BASELINE,
    "lab.drift.ratio_after_steps: return after / torch.softmax(logits.detach(), -1) -> return after / torch.softmax(logits.detach(), -0)": _ONE_DIMENSION,
    "lab.drift.repeated_steps: z = logits.detach() -> z = logits": _NO_WAY_BACK,
    "lab.drift.repeated_steps: old_logprobs = torch.log_softmax(z, -1) -> old_logprobs = torch.log_softmax(z, -0)": _ONE_DIMENSION,
    "lab.drift.repeated_steps: losses = policy_loss(torch.log_softmax(z, -1), old_logprobs, advantages, epsilon=epsilon) -> losses = policy_loss(torch.log_softmax(z, -0), old_logprobs, advantages, epsilon=epsilon)": _ONE_DIMENSION,
    "lab.drift.repeated_steps: return torch.softmax(z, -1) -> return torch.softmax(z, -0)": _ONE_DIMENSION,
    "lab.mismatch.precision_ratio: return ratio(torch.log_softmax(logits, -1), torch.log_softmax(rounded, -1)) -> return ratio(torch.log_softmax(logits, -0), torch.log_softmax(rounded, -1))": _ONE_DIMENSION,
    "lab.mismatch.precision_ratio: return ratio(torch.log_softmax(logits, -1), torch.log_softmax(rounded, -1)) -> return ratio(torch.log_softmax(logits, -1), torch.log_softmax(rounded, -0))": _ONE_DIMENSION,
    "lab.mismatch.temperature_ratio: return ratio(torch.log_softmax(logits, -1), torch.log_softmax(logits / temperature, -1)) -> return ratio(torch.log_softmax(logits, -0), torch.log_softmax(logits / temperature, -1))": _ONE_DIMENSION,
    "lab.mismatch.temperature_ratio: return ratio(torch.log_softmax(logits, -1), torch.log_softmax(logits / temperature, -1)) -> return ratio(torch.log_softmax(logits, -1), torch.log_softmax(logits / temperature, -0))": _ONE_DIMENSION,
    "lab.optimum.NEWTON_STEPS: NEWTON_STEPS = 40 -> NEWTON_STEPS = 41": _ROUNDING,
    "lab.optimum.NEWTON_STEPS: NEWTON_STEPS = 40 -> NEWTON_STEPS = 39": _ROUNDING,
    "lab.optimum.NEWTON_STEPS: NEWTON_STEPS = 40 -> NEWTON_STEPS = 80": _ROUNDING,
    "lab.optimum.dpo_minimiser: losses = dpo_loss(*_pairs(torch.log_softmax(logits, -1)), *_pairs(ref_logprobs), beta=beta) -> losses = dpo_loss(*_pairs(logits), *_pairs(ref_logprobs), beta=beta)": _CONSTANT_SHIFT,
    "lab.optimum.dpo_minimiser: losses = dpo_loss(*_pairs(torch.log_softmax(logits, -1)), *_pairs(ref_logprobs), beta=beta) -> losses = dpo_loss(*_pairs(torch.log_softmax(logits, -0)), *_pairs(ref_logprobs), beta=beta)": _ONE_DIMENSION,
    "lab.optimum.dpo_minimiser: step = torch.linalg.solve(curvature + 1, slope) -> step = torch.linalg.solve(curvature - 1, slope)": "any number but 0 fixes the direction in which the slope has no part",
    "lab.optimum.dpo_minimiser: step = torch.linalg.solve(curvature + 1, slope) -> step = torch.linalg.solve(curvature + 2, slope)": "any number but 0 fixes the direction in which the slope has no part",
    "lab.optimum.dpo_minimiser: return torch.softmax(logits, -1) -> return torch.softmax(logits, -0)": _ONE_DIMENSION,
    "lab.optimum.kl_regularised_optimum: return torch.softmax(ref_probs.log() + rewards / beta, -1) -> return torch.softmax(ref_probs.log() + rewards / beta, -0)": _ONE_DIMENSION,
    "lab.worlds._probabilities: if not (probs.sum() - 1).abs() <= 1e-06: -> if not (probs.sum() - 1).abs() < 1e-06:": "no two floats near 1 differ by exactly 1e-6, in float32 or float64",
    "lab.worlds._probabilities: if not (probs.sum() - 1).abs() <= 1e-06: -> if not (1 - probs.sum()).abs() <= 1e-06:": "the absolute value has no sign",
    "lab.worlds.distributions: if probs.ndim != 2 or probs.shape[0] != first.shape[0] or probs.shape[1] < 2: -> if probs.ndim != 2 or probs.shape[0] != first.shape[-1] or probs.shape[1] < 2:": _ONE_DIMENSION,
    "lab.optimum.FINEST_STEP: FINEST_STEP = 1e-14 -> FINEST_STEP = -0.99999999999999": _ROUNDING,
    "lab.optimum.FINEST_STEP: FINEST_STEP = 1e-14 -> FINEST_STEP = 0.0": _ROUNDING,
    "lab.optimum.FINEST_STEP: FINEST_STEP = 1e-14 -> FINEST_STEP = 2e-14": _ROUNDING,
    "lab.optimum.dpo_minimiser: if step.abs().max() <= FINEST_STEP: -> if step.abs().max() < FINEST_STEP:": _ROUNDING,
    "lab.chains.gae_variance: return (weights.unsqueeze(-1) * (estimates - mean) ** 2).sum() -> return (weights.unsqueeze(-1) * (mean - estimates) ** 2).sum()": _SQUARE,
    "lab.optimum.dpo_minimiser: if step.abs().max() <= FINEST_STEP: -> if step.max() <= FINEST_STEP:": (
        "the steps of the logits sum to 0, so that the largest is near 0 only where all are"
    ),
    "ppo_core.values.clipped_value_loss: plain, clipped = ((values - returns) ** 2, (near - returns) ** 2) -> plain, clipped = ((returns - values) ** 2, (near - returns) ** 2)": _SQUARE,
    "ppo_core.values.clipped_value_loss: plain, clipped = ((values - returns) ** 2, (near - returns) ** 2) -> plain, clipped = ((values - returns) ** 2, (returns - near) ** 2)": _SQUARE,
}
