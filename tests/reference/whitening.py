"""One scale for a whole batch."""

import math

from reference.lists import each, flat, under_mask
from reference.returns import discounted_returns

# In a twin a group is the list of what its ranks hold, each as one call has it.


def whiten(x, mask, *, ddof, eps, group=None):
    ranks = [(x, mask)] if group is None else group
    counted = [
        element
        for elements, masks in ranks
        for element, counts in zip(flat(elements), flat(masks), strict=True)
        if counts
    ]
    if len(counted) < 2:
        return each(lambda element: 0.0, x)
    mean = math.fsum(counted) / len(counted)
    std = math.sqrt(math.fsum((element - mean) ** 2 for element in counted) / (len(counted) - ddof))
    return under_mask(lambda element: (element - mean) / (std + eps), mask, x)


def reinforce_plus_plus(rewards, mask, *, gamma, ddof, eps, sequence_ids=None, group=None):
    def whole(rewards, mask, sequence_ids=None):
        return discounted_returns(rewards, mask, gamma=gamma, sequence_ids=sequence_ids)

    ranks = None if group is None else [(whole(*rank), rank[1]) for rank in group]
    return whiten(whole(rewards, mask, sequence_ids), mask, ddof=ddof, eps=eps, group=ranks)
