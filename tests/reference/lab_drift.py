"""The laboratory: steps of gradient ascent on one batch."""

import math

from reference.logits import softmax


def repeated_steps(logits, advantages, *, epsilon, lr, steps):
    z, old = list(logits), softmax(logits)
    for _ in range(int(steps)):
        pi = softmax(z)
        # What pi(a) times the slope in log pi(a) adds: the advantage, or 0 where the clip is active.
        pushes = []
        for p, q, A in zip(pi, old, advantages, strict=True):
            clipped = (A > 0 and p / q > 1 + epsilon) or (A < 0 and p / q < 1 - epsilon)
            pushes.append(0.0 if clipped else p * A)
        total = math.fsum(pushes)
        z = [each + lr * (push - p * total) for each, push, p in zip(z, pushes, pi, strict=True)]
    return softmax(z)


def ratio_after_steps(logits, advantages, *, epsilon, lr, steps):
    after = repeated_steps(logits, advantages, epsilon=epsilon, lr=lr, steps=steps)
    return [p / q for p, q in zip(after, softmax(logits), strict=True)]
