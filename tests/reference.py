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


def _each_place(function, mask, logits, *tokens):
    """Apply a function to the logits of each place, which are innermost, and to what else stands there."""
    if logits and not isinstance(logits[0], list | tuple):
        return 0.0 if mask is False else function(logits, *tokens)
    masks = [None] * len(logits) if mask is None else mask
    return [_each_place(function, *place) for place in zip(masks, logits, *tokens, strict=True)]


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


def gae(rewards, values, mask, *, gamma, lam, bootstrap=None):
    if rewards and isinstance(rewards[0], list | tuple):
        after = [None] * len(rewards) if bootstrap is None else bootstrap
        answers = zip(rewards, values, mask, after, strict=True)
        return [gae(r, v, m, gamma=gamma, lam=lam, bootstrap=b) for r, v, m, b in answers]
    steps = [t for t, counts in enumerate(mask) if counts]
    if any(r != 0 and math.isfinite(r) for t, r in enumerate(rewards) if t not in steps):
        raise ValueError("a reward on an uncounted token")
    r = [rewards[t] for t in steps]
    v = [values[t] for t in steps] + [0.0 if bootstrap is None else bootstrap]
    deltas = [r[k] + gamma * v[k + 1] - v[k] for k in range(len(steps))]
    advantages = [0.0] * len(mask)
    for k, t in enumerate(steps):
        # The sum as the definition has it, with every power written out.
        advantages[t] = math.fsum((gamma * lam) ** i * delta for i, delta in enumerate(deltas[k:]))
    return advantages


def discounted_returns(rewards, mask, *, gamma):
    if rewards and isinstance(rewards[0], list | tuple):
        return [discounted_returns(r, m, gamma=gamma) for r, m in zip(rewards, mask, strict=True)]
    steps = [t for t, counts in enumerate(mask) if counts]
    returns = [0.0] * len(mask)
    for k, t in enumerate(steps):
        returns[t] = math.fsum(gamma**i * rewards[later] for i, later in enumerate(steps[k:]))
    return returns


def group_relative(scores, *, eps):
    if not scores or isinstance(scores[0], list | tuple):
        return [group_relative(group, eps=eps) for group in scores]
    mean = math.fsum(scores) / len(scores)
    std = math.sqrt(math.fsum((r - mean) ** 2 for r in scores) / (len(scores) - 1))
    return [(r - mean) / (std + eps) for r in scores]


def leave_one_out(scores):
    if not scores or isinstance(scores[0], list | tuple):
        return [leave_one_out(group) for group in scores]
    return [
        r - math.fsum(scores[j] for j in range(len(scores)) if j != i) / (len(scores) - 1)
        for i, r in enumerate(scores)
    ]


def whiten(x, mask, *, ddof, eps):
    counted = [element for element, counts in zip(_flat(x), _flat(mask), strict=True) if counts]
    if len(counted) < 2:
        return _each(lambda element: 0.0, x)
    mean = math.fsum(counted) / len(counted)
    std = math.sqrt(math.fsum((element - mean) ** 2 for element in counted) / (len(counted) - ddof))
    return _under_mask(lambda element: (element - mean) / (std + eps), mask, x)


def value_loss(values, returns, *, mask=None):
    return _under_mask(lambda V, R: (V - R) ** 2 / 2, mask, values, returns)


def clipped_value_loss(values, old_values, returns, *, epsilon, mask=None):
    def loss(V, old, R):
        return max((V - R) ** 2, (min(max(V, old - epsilon), old + epsilon) - R) ** 2) / 2

    return _under_mask(loss, mask, values, old_values, returns)


def token_logprobs(logits, tokens, *, mask=None):
    return _each_place(lambda z, token: math.log(_softmax(z)[token]), mask, logits, tokens)


def entropy(logits, *, mask=None):
    def of(z):
        return -math.fsum(p * math.log(p) for p in _softmax(z) if p > 0)

    return _each_place(of, mask, logits)


def ppo_objective(
    logprobs, old_logprobs, ref_logprobs, advantages, values, returns, entropies, mask,
    *, epsilon, value_coef, entropy_coef, beta, mode, denominator=None,
):  # fmt: skip
    def reduced(losses):
        return aggregate(losses, mask, mode=mode, denominator=denominator)

    policy = reduced(policy_loss(logprobs, old_logprobs, advantages, epsilon=epsilon))
    value = reduced(_each(lambda V, R: 0.5 * (V - R) ** 2, values, returns))
    entropy = reduced(entropies)
    kl = reduced(_each(lambda new, ref: 0.5 * (new - ref) ** 2, logprobs, ref_logprobs))
    return [policy + value_coef * value - entropy_coef * entropy + beta * kl, policy, value, entropy, kl]


def preference_probability(chosen, rejected):
    return _each(lambda better, worse: 1 / (1 + _exp(worse - better)), chosen, rejected)


def reward_model_loss(chosen, rejected):
    return _each(lambda better, worse: math.log1p(_exp(worse - better)), chosen, rejected)


def implicit_reward(logprobs, ref_logprobs, *, beta):
    return _each(lambda new, ref: beta * (new - ref), logprobs, ref_logprobs)


def dpo_loss(chosen, rejected, ref_chosen, ref_rejected, *, beta):
    def loss(better, worse, ref_better, ref_worse):
        return math.log1p(_exp(-beta * ((better - worse) - (ref_better - ref_worse))))

    return _each(loss, chosen, rejected, ref_chosen, ref_rejected)


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


def kl_divergence(probs, ref_probs):
    return math.fsum(p * math.log(p / q) for p, q in zip(probs, ref_probs, strict=True))


def kl_objective(probs, ref_probs, rewards, *, beta):
    return expected_reward(probs, rewards) - beta * kl_divergence(probs, ref_probs)


def kl_regularised_optimum(ref_probs, rewards, *, beta):
    weights = [q * math.exp((r - max(rewards)) / beta) for q, r in zip(ref_probs, rewards, strict=True)]
    return [weight / math.fsum(weights) for weight in weights]


def dpo_minimiser(ref_probs, rewards, *, beta):
    # Each pair's expected loss is a cross-entropy, smallest where sigma(beta (h_a - h_b)) is the probability
    # of that preference, sigma(r_a - r_b). All pairs can have that at once: h = r / beta and a constant.
    return kl_regularised_optimum(ref_probs, rewards, beta=beta)


def proxy_and_true(ref_probs, proxy_scores, true_scores, *, beta):
    best = kl_regularised_optimum(ref_probs, proxy_scores, beta=beta)
    divergence = math.fsum(p * math.log(p / q) for p, q in zip(best, ref_probs, strict=True) if p > 0)
    return [expected_reward(best, proxy_scores), expected_reward(best, true_scores), divergence]


def repeated_steps(logits, advantages, *, epsilon, lr, steps):
    z, old = list(logits), _softmax(logits)
    for _ in range(int(steps)):
        pi = _softmax(z)
        # What pi(a) times the slope in log pi(a) adds: the advantage, or 0 where the clip is active.
        pushes = []
        for p, q, A in zip(pi, old, advantages, strict=True):
            clipped = (A > 0 and p / q > 1 + epsilon) or (A < 0 and p / q < 1 - epsilon)
            pushes.append(0.0 if clipped else p * A)
        total = math.fsum(pushes)
        z = [each + lr * (push - p * total) for each, push, p in zip(z, pushes, pi, strict=True)]
    return _softmax(z)


def ratio_after_steps(logits, advantages, *, epsilon, lr, steps):
    after = repeated_steps(logits, advantages, epsilon=epsilon, lr=lr, steps=steps)
    return [p / q for p, q in zip(after, _softmax(logits), strict=True)]


def answer_value(first_probs, second_probs, scores):
    return expected_reward(first_probs, _score_after_first(second_probs, scores))


def answer_gradient(first_probs, second_probs, scores):
    V = answer_value(first_probs, second_probs, scores)
    return [p * (r - V) for p, r in zip(first_probs, _score_after_first(second_probs, scores), strict=True)]


def gae_gradient(first_probs, second_probs, scores, values, *, lam, start_value=0.0):
    samples = _samples(first_probs, second_probs, scores, values, lam, start_value)
    return [math.fsum(p * estimate[i] for p, estimate in samples) for i in range(len(first_probs))]


def gae_variance(first_probs, second_probs, scores, values, *, lam, start_value=0.0):
    samples = _samples(first_probs, second_probs, scores, values, lam, start_value)
    mean = gae_gradient(first_probs, second_probs, scores, values, lam=lam, start_value=start_value)
    return math.fsum(
        p * (each - center) ** 2
        for p, estimate in samples
        for each, center in zip(estimate, mean, strict=True)
    )


def gae_bias(first_probs, second_probs, scores, values, *, lam):
    # The equation of the docstring.
    errors = [V - r for V, r in zip(values, _score_after_first(second_probs, scores), strict=True)]
    mean = expected_reward(first_probs, errors)
    return [(1 - lam) * p * (error - mean) for p, error in zip(first_probs, errors, strict=True)]


def token_ratio_estimate(first_probs, second_probs, old_first_probs, old_second_probs, scores):
    # The ratio of a token replaces its old probability by the new one.
    return [
        answer_value(first_probs, old_second_probs, scores),
        answer_value(old_first_probs, second_probs, scores),
    ]


def sequence_ratio_estimate(first_probs, second_probs, old_first_probs, old_second_probs, scores):
    return answer_value(first_probs, second_probs, scores)


def precision_ratio(logits):
    exact, rounded = _softmax(logits), _softmax([_bfloat16(z) for z in logits])
    return [p / q for p, q in zip(exact, rounded, strict=True)]


def temperature_ratio(logits, *, temperature):
    sampler = _softmax([z / temperature for z in logits])
    return [p / q for p, q in zip(_softmax(logits), sampler, strict=True)]


def entropy_gradient(logits):
    pi = _softmax(logits)
    H = -math.fsum(p * math.log(p) for p in pi)
    return [-p * (math.log(p) + H) for p in pi]


def _score_after_first(second_probs, scores):
    return [expected_reward(row, r) for row, r in zip(second_probs, scores, strict=True)]


def _samples(first_probs, second_probs, scores, values, lam, start_value):
    """List the probability of each answer and the gradient that it gives, with GAE written out for two tokens."""
    samples = []
    for a, p in enumerate(first_probs):
        for q, r in zip(second_probs[a], scores[a], strict=True):
            A = (values[a] - start_value) + lam * (r - values[a])
            samples.append((p * q, [A * ((a == i) - first_probs[i]) for i in range(len(first_probs))]))
    return samples


def _bfloat16(x):
    """Round to 8 binary digits, to even from the middle."""
    mantissa, exponent = math.frexp(x)
    return round(mantissa * 256) / 256 * 2.0**exponent


def _scores(probs):
    return [(1.0 if action == 0 else 0.0) - probs[0] for action in range(len(probs))]


def _estimates(probs, rewards, baseline):
    return [(r - baseline) * score for r, score in zip(rewards, _scores(probs), strict=True)]


def _softmax(logits):
    weights = [math.exp(z - max(logits)) for z in logits]
    return [weight / math.fsum(weights) for weight in weights]
