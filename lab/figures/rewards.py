"""The shaped rewards over the tokens of an answer."""

from collections.abc import Sequence

import torch
from matplotlib.figure import Figure

import ppo_core
from lab import drawing
from lab.drawing import number
from lab.figures.lines import grid


@drawing.own_style()
def token_rewards(
    *, score: float, policy: Sequence[float], reference: Sequence[float], beta: float
) -> list[tuple[Figure, str]]:
    """Draw the shaped rewards over the tokens of one answer: the leash at every token, the score at the last.

    Args:
        score: what the reward model gives to the answer.
        policy: the probability of each token under the policy.
        reference: the same under the reference.
        beta: strength of the leash.
    """
    logprobs = torch.tensor(policy, dtype=torch.float64).log()
    ref_logprobs = torch.tensor(reference, dtype=torch.float64).log()
    every = torch.ones_like(logprobs, dtype=torch.bool)
    at = torch.tensor(score, dtype=torch.float64)
    rewards = ppo_core.shaped_rewards(at, logprobs, ref_logprobs, every, beta=beta).tolist()
    leash = (-ppo_core.kl_penalty(logprobs, ref_logprobs, beta=beta)).tolist()
    count = len(rewards)
    lowest, highest = min(0.0, score, *leash, *rewards), max(0.0, score, *leash, *rewards)
    room = 0.16 * (highest - lowest)
    figure, axes = drawing.panel(
        x_label="token of the answer",
        y_label="reward",
        x_ticks={t: str(t) for t in range(1, count + 1)},
        y_ticks={0.0: "0", float(score): number(score)},
        x_limits=(0.4, count + 0.6),
        y_limits=(lowest - room, highest + room),
    )
    drawing.heading(axes, f"score {number(score)}", drawing.INK, side="right")
    drawing.heading(axes, f"leash, β = {number(beta)}", drawing.KL, side="left")
    taken = grid(axes, y=[0])
    for t, (part, whole) in enumerate(zip(leash, rewards, strict=True), 1):
        axes.bar(t, part, 0.5, color=drawing.KL, edgecolor=drawing.KL, linewidth=1, zorder=2)
        ends = [0.0, part]
        if t == count:
            ends.append(score)
            axes.bar(t, score, 0.5, color=drawing.GRID, edgecolor=drawing.INK, linewidth=1, zorder=1)
        side = 1 if whole >= 0 else -1
        point = axes.transData.transform([(t, max(ends) if whole >= 0 else min(ends))])
        where = drawing.spots(point, [(0, side)], (5,))
        words = number(round(whole, 3))
        # The last bar has two parts: its number is what they come to.
        drawing.write(axes, f"both: {words}" if t == count else words, where, taken, drawing.INK)
    said = ", ".join(number(round(value, 3)) for value in rewards)
    total = number(round(sum(rewards), 3))
    return [
        (
            figure,
            f"The rewards of the {count} tokens of one answer are {said}. Every token pays the leash; the score of "
            f"{number(score)} is added at the last. Together they make {total}.",
        )
    ]
