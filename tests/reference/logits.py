"""What is read off the logits, and off the hidden states that they are made of."""

import math

from reference.lists import each, each_place


def token_logprobs(logits, tokens, *, temperature=1.0, ignore_index=None, mask=None):
    def of(z, token):
        return 0.0 if token == ignore_index else math.log(softmax(z, temperature)[token])

    return each_place(of, mask, logits, tokens)


def entropy(logits, *, temperature=1.0, mask=None):
    return each_place(lambda z: entropy_of(softmax(z, temperature)), mask, logits)


def logit_statistics(logits, tokens, *, temperature=1.0, ignore_index=None, mask=None):
    def undecided(z, token):
        return 0.0 if token == ignore_index else entropy_of(softmax(z, temperature))

    options = {"temperature": temperature, "ignore_index": ignore_index, "mask": mask}
    return token_logprobs(logits, tokens, **options), each_place(undecided, mask, logits, tokens)


def hidden_logprobs(hidden, weight, tokens, bias=None, *, temperature=1.0, ignore_index=None, mask=None):
    bias = bias or [0.0] * len(weight)

    def probs(h):
        z = [
            math.fsum(w * x for w, x in zip(row, h, strict=True)) + b
            for row, b in zip(weight, bias, strict=True)
        ]
        return softmax(z, temperature)

    def logprob(h, token):
        return 0.0 if token == ignore_index else math.log(probs(h)[token])

    def undecided(h, token):
        return 0.0 if token == ignore_index else entropy_of(probs(h))

    return each_place(logprob, mask, hidden, tokens), each_place(undecided, mask, hidden, tokens)


def sharded_logprobs(logits, tokens, *, start, group, temperature=1.0, ignore_index=None, mask=None):
    # The group is the list of the logits of all ranks, in the order of the vocabulary.
    assert logits in group
    whole = _side_by_side(group)
    options = {"temperature": temperature, "mask": mask}
    logprobs = token_logprobs(whole, tokens, ignore_index=ignore_index, **options)
    entropies = each(lambda token, h: 0.0 if token == ignore_index else h, tokens, entropy(whole, **options))
    return logprobs, entropies


def _side_by_side(shards):
    """Join the innermost lists of equally nested lists."""
    if any(shard and isinstance(shard[0], list | tuple) for shard in shards):
        return [_side_by_side(parts) for parts in zip(*shards, strict=True)]
    return [z for shard in shards for z in shard]


def softmax(logits, temperature=1.0):
    weights = [math.exp((z - max(logits)) / temperature) for z in logits]
    return [weight / math.fsum(weights) for weight in weights]


def entropy_of(probs):
    return -math.fsum(p * math.log(p) for p in probs if p > 0)
