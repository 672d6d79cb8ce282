"""PPO, from top to bottom: sample, shape the rewards, estimate advantages, take a few clipped steps; again.

Every term comes from `ppo_core`; what is left here is the order in which they are called.
"""

import copy
from collections.abc import Iterator
from typing import NamedTuple

import torch

from lab.tiny_lm.model import TinyLM, at_answers
from lab.tiny_lm.rollout import Rollout, roll_out
from lab.tiny_lm.task import prompts
from ppo_core import (
    aggregate,
    clipped_value_loss,
    entropy,
    gae,
    policy_loss,
    shaped_rewards,
    token_logprobs,
    whiten,
)


class Settings(NamedTuple):
    """The hyper-parameters of PPO."""

    iterations: int = 40
    batch: int = 128  # answers for each iteration
    epochs: int = 4  # how often each answer is used
    minibatch: int = 64  # answers for each step
    lr: float = 1e-3
    beta: float = 0.5  # strength of the leash, reward per nat
    gamma: float = 1.0  # an answer is short: a later reward is worth as much
    lam: float = 0.95
    epsilon: float = 0.2  # half-width of the clip band of ratios
    value_epsilon: float = 0.5  # how far a value may move in one iteration, in units of reward
    value_coef: float = 0.1
    entropy_coef: float = 0.0  # the leash keeps the policy open: a bonus beside it would pull elsewhere
    max_norm: float = 1.0


class Progress(NamedTuple):
    """What one iteration saw. The first three are of its samples, so from before its steps."""

    score: float  # mean reward of an answer, without the leash
    kl: float  # KL to the reference, nats for one answer
    length: float  # tokens of an answer
    entropy: float  # of the policy, nats for one token, mean over the steps


class Batch(NamedTuple):
    """What the steps of one iteration learn from: a rollout, and what follows from it. No gradient anywhere."""

    rollout: Rollout
    advantages: torch.Tensor
    returns: torch.Tensor


def train(policy: TinyLM, *, seed: int, settings: Settings) -> Iterator[Progress]:
    """Improve the policy in place; yield what each iteration saw, so that the caller can show it.

    `seed` is that of the prompts. Samples and minibatches are drawn from the random state of torch.
    """
    # The policy starts as the reference. From here on only the policy moves.
    reference = copy.deepcopy(policy).requires_grad_(False)
    optimizer = torch.optim.Adam(policy.parameters(), lr=settings.lr)
    for questions in prompts(settings.iterations * settings.batch, seed=seed).split(settings.batch):
        rollout = roll_out(policy, reference, questions)
        batch = with_advantages(rollout, settings)
        entropies = []
        for _ in range(settings.epochs):
            for rows in torch.randperm(settings.batch).split(settings.minibatch):
                entropies.append(step(policy, optimizer, batch, rows, settings))
        yield Progress(
            score=rollout.scores.mean().item(),
            kl=rollout.kl(),
            length=rollout.mask.sum(-1).float().mean().item(),
            entropy=sum(entropies) / len(entropies),
        )


def with_advantages(rollout: Rollout, settings: Settings) -> Batch:
    """Say how much better than expected each token was, and what the critic should have expected."""
    mask = rollout.mask
    # The score is paid at the last token; the leash is paid at every token.
    rewards = shaped_rewards(rollout.scores, rollout.logprobs, rollout.ref_logprobs, mask, beta=settings.beta)
    # No bootstrap: an answer that is cut off has had its score too, and nothing comes after it.
    advantages = gae(rewards, rollout.values, mask, gamma=settings.gamma, lam=settings.lam)
    # The critic learns in units of reward, so its targets are taken before the advantages are whitened.
    returns = torch.where(mask, advantages + rollout.values, 0.0)
    # Over the whole batch, not each minibatch: the same token has the same advantage in every step.
    return Batch(rollout, whiten(advantages, mask, ddof=1, eps=1e-8), returns)


def step(
    policy: TinyLM, optimizer: torch.optim.Optimizer, batch: Batch, rows: torch.Tensor, settings: Settings
) -> float:
    """Take one step on some rows of the batch; return the policy's entropy there."""
    rollout = Rollout(*(each[rows] for each in batch.rollout))
    mask = rollout.mask
    logits, values = at_answers(policy, rollout.prompts, rollout.answers)
    logprobs = token_logprobs(logits, rollout.answers, mask=mask)
    policy_term = policy_loss(
        logprobs, rollout.logprobs, batch.advantages[rows], epsilon=settings.epsilon, mask=mask
    )
    value_term = clipped_value_loss(
        values, rollout.values, batch.returns[rows], epsilon=settings.value_epsilon, factor=0.5, mask=mask
    )
    entropy_term = entropy(logits, mask=mask)
    # Three terms per token, reduced in the same way: each counted token of the minibatch weighs the same.
    policy_mean, value_mean, entropy_mean = (
        aggregate(term, mask, mode="token_mean") for term in (policy_term, value_term, entropy_term)
    )
    loss = policy_mean + settings.value_coef * value_mean - settings.entropy_coef * entropy_mean
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), settings.max_norm)
    optimizer.step()
    return entropy_mean.item()
