"""Advantages with a critic, and returns."""

import math

from reference.lists import runs


def gae(rewards, values, mask, *, gamma, lam, bootstrap=None, terminated=None, sequence_ids=None):
    if rewards and isinstance(rewards[0], list | tuple):
        nothing = [None] * len(rewards)
        extra = (bootstrap or nothing, terminated or nothing, sequence_ids or nothing)
        return [
            gae(r, v, m, gamma=gamma, lam=lam, bootstrap=b, terminated=e, sequence_ids=s)
            for r, v, m, b, e, s in zip(rewards, values, mask, *extra, strict=True)
        ]
    _no_reward_is_lost(rewards, mask)
    advantages = [0.0] * len(mask)
    for steps, after in _sequences(mask, bootstrap, terminated, sequence_ids):
        r = [rewards[t] for t in steps]
        v = [values[t] for t in steps] + [after]
        deltas = [r[k] + gamma * v[k + 1] - v[k] for k in range(len(steps))]
        for k, t in enumerate(steps):
            # The sum as the definition has it, with every power written out.
            advantages[t] = math.fsum((gamma * lam) ** i * delta for i, delta in enumerate(deltas[k:]))
    return advantages


def discounted_returns(rewards, mask, *, gamma, bootstrap=None, terminated=None, sequence_ids=None):
    if rewards and isinstance(rewards[0], list | tuple):
        nothing = [None] * len(rewards)
        extra = (bootstrap or nothing, terminated or nothing, sequence_ids or nothing)
        return [
            discounted_returns(r, m, gamma=gamma, bootstrap=b, terminated=e, sequence_ids=s)
            for r, m, b, e, s in zip(rewards, mask, *extra, strict=True)
        ]
    _no_reward_is_lost(rewards, mask)
    returns = [0.0] * len(mask)
    for steps, after in _sequences(mask, bootstrap, terminated, sequence_ids):
        for k, t in enumerate(steps):
            to_come = [rewards[later] for later in steps[k:]] + [after]
            returns[t] = math.fsum(gamma**i * reward for i, reward in enumerate(to_come))
    return returns


def _sequences(mask, bootstrap, terminated, sequence_ids):
    """List the counted places of each sequence of a row, with the value that comes after the last."""
    found = []
    for places in [range(len(mask))] if sequence_ids is None else runs(sequence_ids):
        steps = [t for t in places if mask[t]]
        if not steps:
            continue
        # One number for the row, or a number at each place of which one is meant.
        after, ended = [
            x[steps[-1]] if sequence_ids is not None and x is not None else x for x in (bootstrap, terminated)
        ]
        found.append((steps, 0.0 if after is None or ended else after))
    return found


def _no_reward_is_lost(rewards, mask):
    if any(r != 0 and math.isfinite(r) for r, counts in zip(rewards, mask, strict=True) if not counts):
        raise ValueError("a reward on an uncounted token")
