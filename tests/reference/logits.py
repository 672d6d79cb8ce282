"""What is read off the logits."""

import math

from reference.lists import each_place


def token_logprobs(logits, tokens, *, mask=None):
    return each_place(lambda z, token: math.log(softmax(z)[token]), mask, logits, tokens)


def entropy(logits, *, mask=None):
    def of(z):
        return -math.fsum(p * math.log(p) for p in softmax(z) if p > 0)

    return each_place(of, mask, logits)


def softmax(logits):
    weights = [math.exp(z - max(logits)) for z in logits]
    return [weight / math.fsum(weights) for weight in weights]
