"""Advantages and returns."""

import math

from reference.lists import each, flat, under_mask


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
    counted = [element for element, counts in zip(flat(x), flat(mask), strict=True) if counts]
    if len(counted) < 2:
        return each(lambda element: 0.0, x)
    mean = math.fsum(counted) / len(counted)
    std = math.sqrt(math.fsum((element - mean) ** 2 for element in counted) / (len(counted) - ddof))
    return under_mask(lambda element: (element - mean) / (std + eps), mask, x)
