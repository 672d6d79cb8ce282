"""What is watched during a run."""

import math

from reference.lists import exp, flat


def clip_fractions(
    logprobs, old_logprobs, advantages, mask, *, epsilon, epsilon_high=None, dual_clip=None
):  # fmt: skip
    tokens = _counted(mask, logprobs, old_logprobs, advantages)
    ceiling = 1 + (epsilon if epsilon_high is None else epsilon_high)
    cap = math.inf if dual_clip is None else dual_clip
    ratios = [(exp(new - old), A) for new, old, A in tokens]
    clipped = [
        [A > 0 and rho > ceiling for rho, A in ratios],
        [A < 0 and rho < 1 - epsilon for rho, A in ratios],
        [A < 0 and rho > cap for rho, A in ratios],
    ]
    return [sum(side) / len(tokens) if tokens else 0.0 for side in clipped]


def approximate_kl(logprobs, old_logprobs, mask):
    tokens = _counted(mask, logprobs, old_logprobs)
    found = [exp(new - old) - 1 - (new - old) for new, old in tokens]
    return math.fsum(found) / len(found) if found else 0.0


def explained_variance(values, returns, mask):
    pairs = _counted(mask, values, returns)
    if len({R for _, R in pairs}) < 2:
        return math.nan
    return 1 - _variance([R - V for V, R in pairs]) / _variance([R for _, R in pairs])


def effective_sample_size(log_weights, mask):
    log_weights = [log_weight for (log_weight,) in _counted(mask, log_weights)]
    if not log_weights:
        return 0.0
    weights = [math.exp(log_weight - max(log_weights)) for log_weight in log_weights]
    return math.fsum(weights) ** 2 / math.fsum(w * w for w in weights) / len(weights)


def ratio_quantiles(logprobs, old_logprobs, mask, *, q):
    ratios = sorted(exp(new - old) for new, old in _counted(mask, logprobs, old_logprobs))
    if not ratios:
        return math.nan
    place = q * (len(ratios) - 1)
    below, above = ratios[math.floor(place)], ratios[math.ceil(place)]
    return below + (place - math.floor(place)) * (above - below)


def _counted(mask, *lists):
    """List the elements of each list at the counted places, side by side."""
    places = zip(*map(flat, lists), strict=True)
    return [elements for elements, counts in zip(places, flat(mask), strict=True) if counts]


def _variance(x):
    mean = math.fsum(x) / len(x)
    return math.fsum((element - mean) ** 2 for element in x) / len(x)
