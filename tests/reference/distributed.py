"""Sums over many ranks: here a group is the list of what its ranks hold."""

import math

from reference.lists import each


def global_sum(x, group):
    assert x in group
    return each(lambda *elements: math.fsum(elements), *group)


def undo_mean_over_ranks(loss, group):
    return each(lambda element: element * len(group), loss)
