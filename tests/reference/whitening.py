"""One scale for a whole batch."""

import math

from reference.lists import each, flat, under_mask
from reference.returns import discounted_returns


def whiten(x, mask, *, ddof, eps):
    counted = [element for element, counts in zip(flat(x), flat(mask), strict=True) if counts]
    if len(counted) < 2:
        return each(lambda element: 0.0, x)
    mean = math.fsum(counted) / len(counted)
    std = math.sqrt(math.fsum((element - mean) ** 2 for element in counted) / (len(counted) - ddof))
    return under_mask(lambda element: (element - mean) / (std + eps), mask, x)


def reinforce_plus_plus(rewards, mask, *, gamma, ddof, eps, sequence_ids=None):
    returns = discounted_returns(rewards, mask, gamma=gamma, sequence_ids=sequence_ids)
    return whiten(returns, mask, ddof=ddof, eps=eps)
