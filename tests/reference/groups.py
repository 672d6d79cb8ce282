"""Advantages of the answers of a group."""

import math


def group_relative(scores, *, eps):
    if not scores or isinstance(scores[0], list | tuple):
        return [group_relative(group, eps=eps) for group in scores]
    mean = math.fsum(scores) / len(scores)
    std = math.sqrt(math.fsum((r - mean) ** 2 for r in scores) / (len(scores) - 1))
    return [(r - mean) / (std + eps) for r in scores]


def group_centred(scores):
    if not scores or isinstance(scores[0], list | tuple):
        return [group_centred(group) for group in scores]
    return [r - math.fsum(scores) / len(scores) for r in scores]


def leave_one_out(scores):
    if not scores or isinstance(scores[0], list | tuple):
        return [leave_one_out(group) for group in scores]
    return [
        r - math.fsum(scores[j] for j in range(len(scores)) if j != i) / (len(scores) - 1)
        for i, r in enumerate(scores)
    ]
