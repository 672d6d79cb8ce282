"""Preferences between two answers."""

import math

from reference.lists import each, exp


def preference_probability(chosen, rejected):
    return each(lambda better, worse: 1 / (1 + exp(worse - better)), chosen, rejected)


def reward_model_loss(chosen, rejected):
    return each(lambda better, worse: math.log1p(exp(worse - better)), chosen, rejected)


def implicit_reward(logprobs, ref_logprobs, *, beta):
    return each(lambda new, ref: beta * (new - ref), logprobs, ref_logprobs)


def dpo_loss(chosen, rejected, ref_chosen, ref_rejected, *, beta):
    def loss(better, worse, ref_better, ref_worse):
        return math.log1p(exp(-beta * ((better - worse) - (ref_better - ref_worse))))

    return each(loss, chosen, rejected, ref_chosen, ref_rejected)
