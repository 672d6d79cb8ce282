"""Plain-float twins of every public function of ppo_core and lab: the second opinion.

Each twin has the name and the argument names of its original, takes plain floats and nested lists of them,
and is written from the formula, with loops and the `math` module alone. Nothing here imports torch or the
library. Speed and overflow are no concern, except where a test needs the value at an overflow.
"""

import math

# --- nested lists
# ---------------------------------------------------------------------------------------------------


def _each(function, *arguments):
    """Apply a function of floats to nested lists of one shape, element by element."""
    if not isinstance(arguments[0], list | tuple):
        return function(*arguments)
    assert len({len(argument) for argument in arguments}) == 1, "the lists must have one shape"
    return [_each(function, *elements) for elements in zip(*arguments, strict=True)]


def _flat(x):
    """List the elements of nested lists, row by row."""
    return [element for row in x for element in _flat(row)] if isinstance(x, list | tuple) else [x]


def _rows(x):
    """List the innermost lists."""
    return [row for part in x for row in _rows(part)] if x and isinstance(x[0], list | tuple) else [x]


def _exp(x):
    """Exponentiate, with infinity where Python would raise."""
    return math.exp(x) if x < 709 else math.inf


def _under_mask(function, mask, *arguments):
    """Apply a function per token, 0 where the mask is False; without a mask everything counts."""
    if mask is None:
        return _each(function, *arguments)
    return _each(lambda counts, *x: function(*x) if counts else 0.0, mask, *arguments)


# --- ppo_core
# -------------------------------------------------------------------------------------------------------


def log_ratio(logprobs, old_logprobs):
    return _each(lambda new, old: new - old, logprobs, old_logprobs)


def ratio(logprobs, old_logprobs):
    return _each(lambda new, old: _exp(new - old), logprobs, old_logprobs)


def surrogate(ratio, advantages):
    return _each(lambda rho, A: rho * A, ratio, advantages)


def clip_ratio(ratio, *, epsilon):
    return _each(lambda rho: min(max(rho, 1 - epsilon), 1 + epsilon), ratio)


def clipped_surrogate(ratio, advantages, *, epsilon):
    return _each(lambda rho, A: min(rho * A, min(max(rho, 1 - epsilon), 1 + epsilon) * A), ratio, advantages)


def policy_loss(logprobs, old_logprobs, advantages, *, epsilon, mask=None):
    def loss(new, old, A):
        rho = _exp(new - old)
        # 0 * inf is NaN to a float; the formula's limit is 0.
        return -min(rho * A, min(max(rho, 1 - epsilon), 1 + epsilon) * A) if A != 0 else 0.0

    return _under_mask(loss, mask, logprobs, old_logprobs, advantages)


def kl_k1(logprobs, ref_logprobs, *, mask=None):
    return _under_mask(lambda new, ref: new - ref, mask, logprobs, ref_logprobs)


def kl_k2(logprobs, ref_logprobs, *, mask=None):
    return _under_mask(lambda new, ref: (ref - new) ** 2 / 2, mask, logprobs, ref_logprobs)


def kl_k3(logprobs, ref_logprobs, *, mask=None):
    def estimate(new, ref):
        d = ref - new
        if abs(d) > 1:
            return _exp(d) - 1 - d
        # The sum of d^n / n! from n = 2: the formula without its cancellation.
        return math.fsum(d**n / math.factorial(n) for n in range(2, 30))

    return _under_mask(estimate, mask, logprobs, ref_logprobs)


def kl_penalty(logprobs, ref_logprobs, *, beta):
    return _each(lambda new, ref: beta * (new - ref), logprobs, ref_logprobs)


def shaped_rewards(scores, logprobs, ref_logprobs, mask, *, beta):
    if isinstance(scores, list | tuple):
        answers = zip(scores, logprobs, ref_logprobs, mask, strict=True)
        return [shaped_rewards(*answer, beta=beta) for answer in answers]
    counted = [t for t, counts in enumerate(mask) if counts]
    if not counted:
        raise ValueError("an answer without a counted token")
    rewards = [0.0] * len(mask)
    for t in counted:
        rewards[t] = -beta * (logprobs[t] - ref_logprobs[t])
    rewards[counted[-1]] += scores
    return rewards


def masked_sum(x, mask):
    return math.fsum(element for element, counts in zip(_flat(x), _flat(mask), strict=True) if counts)


def masked_mean(x, mask):
    counted = [element for element, counts in zip(_flat(x), _flat(mask), strict=True) if counts]
    return math.fsum(counted) / len(counted) if counted else 0.0


def aggregate(losses, mask, *, mode, denominator=None):
    sequences = []
    for row, counts in zip(_rows(losses), _rows(mask), strict=True):
        tokens = [loss for loss, counted in zip(row, counts, strict=True) if counted]
        if tokens:
            sequences.append(tokens)
    if mode == "sequence_mean_token_mean":
        total = math.fsum(math.fsum(tokens) / len(tokens) for tokens in sequences)
    else:
        total = math.fsum(loss for tokens in sequences for loss in tokens)
    if denominator is None:
        if mode == "constant":
            raise ValueError("the constant mode needs a denominator")
        denominator = sum(map(len, sequences)) if mode == "token_mean" else len(sequences)
    return total / denominator if sequences else 0.0


# --- lab
# ------------------------------------------------------------------------------------------------------------


def expected_reward(probs, rewards):
    return math.fsum(p * r for p, r in zip(probs, rewards, strict=True))


def exact_policy_gradient(probs, rewards):
    # The softmax has d pi(a) / d z_1 = pi(a) (1[a = 1] - p_1), so dV / dz_1 = p_1 (r_1 - V).
    return probs[0] * (rewards[0] - expected_reward(probs, rewards))


def policy_gradient_mean(probs, rewards, *, baseline=0.0):
    return math.fsum(
        p * estimate for p, estimate in zip(probs, _estimates(probs, rewards, baseline), strict=True)
    )


def policy_gradient_variance(probs, rewards, *, baseline=0.0):
    estimates = _estimates(probs, rewards, baseline)
    mean = policy_gradient_mean(probs, rewards, baseline=baseline)
    return math.fsum(p * (estimate - mean) ** 2 for p, estimate in zip(probs, estimates, strict=True))


def best_baseline(probs, rewards):
    weights = [p * score**2 for p, score in zip(probs, _scores(probs), strict=True)]
    return math.fsum(w * r for w, r in zip(weights, rewards, strict=True)) / math.fsum(weights)


def kl_gradient(logits, ref_logits):
    pi, ref = _softmax(logits), _softmax(ref_logits)
    logs = [math.log(p / q) for p, q in zip(pi, ref, strict=True)]
    divergence = math.fsum(p * log for p, log in zip(pi, logs, strict=True))
    return [p * (log - divergence) for p, log in zip(pi, logs, strict=True)]


def sampled_kl_gradient(logits, ref_logits, *, estimator):
    pi, ref = _softmax(logits), _softmax(ref_logits)
    slopes = {  # d k_j / d log pi(a), with d = log ref - log pi
        "k1": lambda p, q: 1.0,
        "k2": lambda p, q: -math.log(q / p),
        "k3": lambda p, q: 1 - q / p,
    }
    weights = [p * slopes[estimator](p, q) for p, q in zip(pi, ref, strict=True)]
    # d log pi(a) / d z_i = 1[a = i] - pi(i)
    total = math.fsum(weights)
    return [weight - p * total for weight, p in zip(weights, pi, strict=True)]


def _scores(probs):
    return [(1.0 if action == 0 else 0.0) - probs[0] for action in range(len(probs))]


def _estimates(probs, rewards, baseline):
    return [(r - baseline) * score for r, score in zip(rewards, _scores(probs), strict=True)]


def _softmax(logits):
    weights = [math.exp(z - max(logits)) for z in logits]
    return [weight / math.fsum(weights) for weight in weights]
