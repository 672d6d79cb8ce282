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
_NO_GRADIENT = "the function beneath gives the reference no gradient"
_DROPPED = "autograd drops a gradient that nobody asked for"
_THREE_READ = "only the first three are read"
_TWO_DIMENSIONS = "there are two dimensions, so the second is the last"
_ONE_SHAPE = "all places of a block have one shape"
_FINITE_ROW = "the slope is 0 where nothing counts, so the logits there must only be finite"
_ONE_GRADIENT = "the gradient of one tensor was asked for"
_NO_HISTORY = "around the call no history is recorded"
_EITHER_ORDER = "the wider of two types is the same in either order"
_EMPTY_PART = "a second part of no tokens adds nothing"
_BOTH_FORMS = "around there both forms are right"
_NOT_READ = "the log-ratio is replaced, or has no weight, where not both logits are finite"
_MORE_FILLER = "one more element that does not count changes no extreme and no order"
_PLACE = "where nothing counts the place is the last of the list, or one before it, and the result is NaN"
_ANY_ORDER = "the answer is the same in either order"
_BELOW_FLOAT32 = "the next terms are below the last bit of float32"
_STILL_ZERO = "the exponential of this number is 0 in every type too"
_SAME_ROWS = "the rows are the same; to take them as a view is only faster"
_ONE_TYPE = "all tensors have one type there"
_ONE_SHAPE_IN_ALL = "all tensors have one shape and one device there"
_NO_HISTORY_EITHER_WAY = "where no gradient is wanted autograd records none"
_SIGN_OF_NAN = "NaN has no sign that matters"
_ROUNDING = "by then the steps are rounding errors"

# Changes that change no result, each with the reason.
EQUIVALENT = {
    "ppo_core.values.value_loss: return factor * counted(values - returns.detach(), mask) ** 2 -> return factor * counted(returns.detach() - values, mask) ** 2": _SQUARE,
    "ppo_core.entropies.entropy: if not checks.is_eager(logits, mask): -> if not checks.is_eager(mask, logits):": _ANY_ORDER,
    "ppo_core.kl.SINGLE_DEGREE: SINGLE_DEGREE = 6 -> SINGLE_DEGREE = 7": _BELOW_FLOAT32,
    "ppo_core.kl.SINGLE_DEGREE: SINGLE_DEGREE = 6 -> SINGLE_DEGREE = 12": _BELOW_FLOAT32,
    "ppo_core.logit_rows.LOWEST: LOWEST = -1000.0 -> LOWEST = -1001.0": _STILL_ZERO,
    "ppo_core.logit_rows.LOWEST: LOWEST = -1000.0 -> LOWEST = -2000.0": _STILL_ZERO,
    "ppo_core.logit_rows.LOWEST: LOWEST = -1000.0 -> LOWEST = -999.0": _STILL_ZERO,
    "ppo_core.logit_rows._Rows.forward: logprobs[rows] = torch.log_softmax(z, -1).gather(-1, chosen[rows]) -> logprobs[rows] = torch.log_softmax(z, -1).gather(1, chosen[rows])": _TWO_DIMENSIONS,
    "ppo_core.logit_rows._Rows.forward: logprobs[rows] = torch.log_softmax(z, -1).gather(-1, chosen[rows]) -> logprobs[rows] = torch.log_softmax(z, 1).gather(-1, chosen[rows])": _TWO_DIMENSIONS,
    "ppo_core.logit_rows._Rows.forward: wide = torch.promote_types(logits.dtype, torch.float32) -> wide = torch.promote_types(torch.float32, logits.dtype)": _EITHER_ORDER,
    "ppo_core.logit_rows._pieces: rows = slice(first, min(first + most, number)) -> rows = slice(first, min(number, first + most))": _ANY_ORDER,
    "ppo_core.logit_rows._rows: if logits.ndim <= 2 or logits.is_contiguous(): -> if logits.ndim < 2 or logits.is_contiguous():": _SAME_ROWS,
    "ppo_core.logit_rows._rows: if logits.ndim <= 2 or logits.is_contiguous(): -> if logits.ndim <= 1 or logits.is_contiguous():": _SAME_ROWS,
    "ppo_core.logit_rows.row_slopes: torch.softmax(logits, -1, out=room).mul_(-grad_logprobs) -> torch.softmax(logits, 1, out=room).mul_(-grad_logprobs)": _TWO_DIMENSIONS,
    "ppo_core.logit_rows.row_slopes: return room if grad_logprobs is None else room.scatter_add_(-1, tokens, grad_logprobs) -> return room if grad_logprobs is None else room.scatter_add_(1, tokens, grad_logprobs)": _TWO_DIMENSIONS,
    "ppo_core.logit_rows.row_slopes: slopes_of(torch.log_softmax(logits, -1), entropies, grad_logprobs, grad_entropies, room) -> slopes_of(torch.log_softmax(logits, 1), entropies, grad_logprobs, grad_entropies, room)": _TWO_DIMENSIONS,
    "ppo_core.logit_rows.row_statistics: logprobs = torch.log_softmax(logits, -1) -> logprobs = torch.log_softmax(logits, 1)": _TWO_DIMENSIONS,
    "ppo_core.logit_rows.row_statistics: chosen = logprobs.gather(-1, tokens) -> chosen = logprobs.gather(1, tokens)": _TWO_DIMENSIONS,
    "ppo_core.logit_rows.row_statistics: return (chosen, logprobs.mul_(probs).sum(-1, keepdim=True).neg_()) -> return (chosen, logprobs.mul_(probs).sum(1, keepdim=True).neg_())": _TWO_DIMENSIONS,
    "ppo_core.masking._Counted.forward: return torch.bitwise_and(as_integers(x), bits, out=bits if bits.shape == x.shape else None).view(x.dtype) -> return torch.bitwise_and(bits, as_integers(x), out=bits if bits.shape == x.shape else None).view(x.dtype)": _ANY_ORDER,
    "ppo_core.objective_terms._gradients: to_logprobs = of_policy.mul_(policy).addcmul_(of_kl, kl) -> to_logprobs = of_policy.mul_(policy).addcmul_(kl, of_kl)": _ANY_ORDER,
    "ppo_core.objective_terms._totals_and_slopes: slopes = list(torch.empty(3, *mask.shape, dtype=tensors[0].dtype).unbind()) -> slopes = list(torch.empty(3, *mask.shape, dtype=tensors[-1].dtype).unbind())": _ONE_TYPE,
    "ppo_core.objective_terms._totals_and_slopes: slopes = list(torch.empty(3, *mask.shape, dtype=tensors[0].dtype).unbind()) -> slopes = list(torch.empty(3, *mask.shape, dtype=tensors[1].dtype).unbind())": _ONE_TYPE,
    "ppo_core.pieces.pieces: places = max(1, flat[0].numel()) -> places = max(1, flat[-1].numel())": _ONE_SHAPE_IN_ALL,
    "ppo_core.pieces.pieces: step = PIECE if checks.may_look(flat[0]) else places -> step = PIECE if checks.may_look(flat[-1]) else places": _ONE_SHAPE_IN_ALL,
    "ppo_core.closed_form.with_slopes: if not (torch.is_grad_enabled() and logprobs.requires_grad): -> if not (torch.is_grad_enabled() or logprobs.requires_grad):": _NO_HISTORY_EITHER_WAY,
    "ppo_core.diagnostics._clipped: unknown = (rho.sum() + advantages.sum()).isnan() -> unknown = (rho.sum() - advantages.sum()).isnan()": _SIGN_OF_NAN,
    "ppo_core.entropies._entropies: finite = torch.where(logprobs == -torch.inf, 0.0, logprobs) -> finite = torch.where(logprobs == -torch.inf, 1.0, logprobs)": _TIMES_ZERO,
    "ppo_core.entropies._entropies: finite = torch.where(logprobs == -torch.inf, 0.0, logprobs) -> finite = torch.where(logprobs == -torch.inf, -1.0, logprobs)": _TIMES_ZERO,
    "ppo_core.logit_rows.counted_logits: return logits if temperature == 1 else logits / temperature -> return logits if temperature == 0 else logits / temperature": (
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
    "ppo_core.diagnostics._squared_deviations: return (counted((x - masked_mean(x, mask)) / unit, mask) ** 2).sum() -> return (counted((masked_mean(x, mask) - x) / unit, mask) ** 2).sum()": _SQUARE,
    "ppo_core.diagnostics._filled: return torch.nn.functional.pad(torch.where(mask, x, filler).flatten(), (0, 1), value=filler) -> return torch.nn.functional.pad(torch.where(mask, x, filler).flatten(), (1, 1), value=filler)": _MORE_FILLER,
    "ppo_core.diagnostics._filled: return torch.nn.functional.pad(torch.where(mask, x, filler).flatten(), (0, 1), value=filler) -> return torch.nn.functional.pad(torch.where(mask, x, filler).flatten(), (0, 2), value=filler)": _MORE_FILLER,
    "ppo_core.diagnostics.explained_variance: left = _squared_deviations(returns - values, mask, unit=spread) -> left = _squared_deviations(values - returns, mask, unit=spread)": _SQUARE,
    "ppo_core.diagnostics.ratio_quantiles: place = q * (mask.sum() - 1).clamp(min=0).double() -> place = q * (mask.sum() - 1).double()": _PLACE,
    "ppo_core.diagnostics.explained_variance: spread = _filled(returns, mask, -torch.inf).amax() - _filled(returns, mask, torch.inf).amin() -> spread = _filled(returns, mask, torch.inf).amin() - _filled(returns, mask, -torch.inf).amax()": _SQUARE,
    "ppo_core.diagnostics.ratio_quantiles: place = q * (mask.sum() - 1).clamp(min=0).double() -> place = q * (mask.sum() - 1).clamp(min=-1).double()": _PLACE,
    "ppo_core.distributions._Divergence.forward: terms = torch.where(near, p * exp_remainder(torch.where(near, d, 0.0)), q - p - weight * d) -> terms = torch.where(near, p * exp_remainder(torch.where(near, d, 1.0)), q - p - weight * d)": _NOT_CHOSEN,
    "ppo_core.distributions._compare: near = possible & ref_possible & (d.abs() < 1) -> near = possible & ref_possible & (d.abs() < 2)": _BOTH_FORMS,
    "ppo_core.distributions._Divergence.forward: terms = torch.where(near, p * exp_remainder(torch.where(near, d, 0.0)), q - p - weight * d) -> terms = torch.where(near, p * exp_remainder(torch.where(near, d, -1.0)), q - p - weight * d)": _NOT_CHOSEN,
    "ppo_core.distributions._compare: excess = torch.where(near, p * torch.expm1(torch.where(near, d, 0.0)), q - p).sum(-1, keepdim=True) -> excess = torch.where(near, p * torch.expm1(torch.where(near, d, 1.0)), q - p).sum(-1, keepdim=True)": _NOT_CHOSEN,
    "ppo_core.distributions._compare: near = possible & ref_possible & (d.abs() < 1) -> near = possible & ref_possible & (d.abs() <= 1)": _BOTH_FORMS,
    "ppo_core.distributions._compare: near = possible & ref_possible & (d.abs() < 1) -> near = possible & ref_possible & (d < 1)": _BOTH_FORMS,
    "ppo_core.distributions._log_ratio: logits, ref_logits = (torch.where(finite, x, 0.0) for x in (logits, ref_logits)) -> logits, ref_logits = (torch.where(finite, x, -1.0) for x in (logits, ref_logits))": _NOT_READ,
    "ppo_core.distributions._compare: excess = torch.where(near, p * torch.expm1(torch.where(near, d, 0.0)), q - p).sum(-1, keepdim=True) -> excess = torch.where(near, p * torch.expm1(torch.where(near, d, -1.0)), q - p).sum(-1, keepdim=True)": _NOT_CHOSEN,
    "ppo_core.distributions.full_kl: logits, ref_logits = (counted(logits, places), counted(ref_logits, places).detach()) -> logits, ref_logits = (counted(logits, places), counted(ref_logits, places))": _NO_GRADIENT,
    "ppo_core.distributions._log_ratio: logits, ref_logits = (torch.where(finite, x, 0.0) for x in (logits, ref_logits)) -> logits, ref_logits = (torch.where(finite, x, 1.0) for x in (logits, ref_logits))": _NOT_READ,
    "ppo_core.hidden._Statistics.backward: gradients = _Gradients.apply(ctx.temperature, ctx.half, ctx.needs_input_grad[:3], *ctx.saved_tensors, grad_logprobs, grad_entropies) -> gradients = _Gradients.apply(ctx.temperature, ctx.half, ctx.needs_input_grad[:4], *ctx.saved_tensors, grad_logprobs, grad_entropies)": _THREE_READ,
    "ppo_core.hidden._Statistics.backward: gradients = _Gradients.apply(ctx.temperature, ctx.half, ctx.needs_input_grad[:3], *ctx.saved_tensors, grad_logprobs, grad_entropies) -> gradients = _Gradients.apply(ctx.temperature, ctx.half, ctx.needs_input_grad[:6], *ctx.saved_tensors, grad_logprobs, grad_entropies)": _THREE_READ,
    "ppo_core.unembedding.chunks: return [slice(first, first + tokens) for first in range(0, max(1, hidden.shape[0]), tokens)] -> return [slice(first, first + tokens) for first in range(0, max(2, hidden.shape[0]), tokens)]": _EMPTY_PART,
    "ppo_core.hidden._gradients: to_bias = torch.zeros_like(bias) if bias is not None and needed[2] else None -> to_bias = torch.zeros_like(bias) if bias is not None or needed[2] else None": _DROPPED,
    "ppo_core.unembedding.unembedding: wide = torch.promote_types(torch.promote_types(hidden.dtype, weight.dtype), torch.float32) -> wide = torch.promote_types(torch.promote_types(weight.dtype, hidden.dtype), torch.float32)": _EITHER_ORDER,
    "ppo_core.unembedding.unembedding: wide = torch.promote_types(wide, bias.dtype) -> wide = torch.promote_types(bias.dtype, wide)": _EITHER_ORDER,
    "ppo_core.unembedding.unembedding: wide = torch.promote_types(torch.promote_types(hidden.dtype, weight.dtype), torch.float32) -> wide = torch.promote_types(torch.float32, torch.promote_types(hidden.dtype, weight.dtype))": _EITHER_ORDER,
    "ppo_core.hidden_losses._exponentials: distances = logits.sub_(logits.amax(-1, keepdim=True)) -> distances = logits.sub_(logits.amax(1, keepdim=True))": _TWO_DIMENSIONS,
    "ppo_core.hidden_losses._exponentials: chosen = distances.gather(-1, tokens) -> chosen = distances.gather(1, tokens)": _TWO_DIMENSIONS,
    "ppo_core.hidden_losses._exponentials: totals = distances.exp_().sum(-1, keepdim=True) -> totals = distances.exp_().sum(1, keepdim=True)": _TWO_DIMENSIONS,
    "ppo_core.hidden_losses._logprobs_and_gradients: to_bias = torch.zeros_like(bias) if bias is not None and needed[2] else None -> to_bias = torch.zeros_like(bias) if bias is not None or needed[2] else None": _DROPPED,
    "ppo_core.hidden_losses._logprobs_and_gradients: logits.add_(bias).masked_fill_(~counts[rows], 0.0) -> logits.add_(bias).masked_fill_(~counts[rows], 1.0)": _FINITE_ROW,
    "ppo_core.hidden_losses._logprobs_and_gradients: logits.add_(bias).masked_fill_(~counts[rows], 0.0) -> logits.add_(bias).masked_fill_(~counts[rows], -1.0)": _FINITE_ROW,
    "ppo_core.hidden_losses._logprobs_and_gradients: logits.mul_(-slope / totals).scatter_add_(-1, tokens[rows], slope) -> logits.mul_(-slope / totals).scatter_add_(1, tokens[rows], slope)": _TWO_DIMENSIONS,
    "ppo_core.sharded._sums: distances.masked_fill_(weights == 0, 0.0) -> distances.masked_fill_(weights == 0, 1.0)": _TIMES_ZERO,
    "ppo_core.sharded._sums: distances.masked_fill_(weights == 0, 0.0) -> distances.masked_fill_(weights == 0, -1.0)": _TIMES_ZERO,
    "ppo_core.recurrence.backward_recurrence: behind = torch.zeros_like(x[0]) -> behind = torch.zeros_like(x[1])": _ONE_SHAPE,
    "ppo_core.recurrence.backward_recurrence: behind = torch.zeros_like(x[0]) -> behind = torch.zeros_like(x[-1])": _ONE_SHAPE,
    "ppo_core.recurrence.backward_recurrence: behind = x[k].addcmul_(g[k], counted(behind, j[k])) -> behind = x[k].addcmul_(counted(behind, j[k]), g[k])": "a product has no order",
}
