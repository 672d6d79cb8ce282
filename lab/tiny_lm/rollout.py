"""The rollout: answers sampled from the policy, with all that is known about them at that moment."""

from typing import NamedTuple

import torch
from torch import Tensor

from lab.tiny_lm.model import TinyLM, at_answers
from lab.tiny_lm.task import ANSWER, PAD, PROMPT, STOP, answer_mask, score
from ppo_core import token_logprobs


class Rollout(NamedTuple):
    """A batch of answers. Everything is data: nothing here has a gradient."""

    prompts: Tensor  # int64 [B, PROMPT]
    answers: Tensor  # int64 [B, ANSWER]
    mask: Tensor  # bool [B, ANSWER], True: part of the answer
    logprobs: (
        Tensor  # float32 [B, ANSWER], under the policy that sampled them: the old ones, once it has moved
    )
    ref_logprobs: Tensor  # float32 [B, ANSWER], under the reference
    values: Tensor  # float32 [B, ANSWER], of the critic as it was then
    scores: Tensor  # float32 [B]

    def kl(self) -> float:
        """Return the estimate of the KL from the policy to the reference, in nats for one answer.

        The log-ratio of a whole answer, averaged over answers of the policy itself: unbiased, but not always
        positive, because it is an average over a sample.
        """
        log_ratios = torch.where(self.mask, self.logprobs - self.ref_logprobs, 0.0)
        return log_ratios.sum(-1).mean().item()


@torch.no_grad()
def sample(policy: TinyLM, prompts: Tensor) -> Tensor:
    """Return an answer for each prompt, int64 [B, ANSWER], sampled at temperature 1 and padded at the end.

    PPO needs samples of the policy as it is: a top-k or another temperature would be another policy, whose
    log-probabilities the ratio would then have to use.
    """
    tokens = prompts
    done = torch.zeros(len(prompts), dtype=torch.bool)
    for _ in range(ANSWER):
        logits, _ = policy(tokens)
        new = torch.multinomial(logits[:, -1].softmax(-1), 1).squeeze(-1)
        new = torch.where(done, PAD, new)
        done = done | (new == STOP)
        tokens = torch.cat([tokens, new.unsqueeze(-1)], -1)
    return tokens[:, PROMPT:]


@torch.no_grad()
def roll_out(policy: TinyLM, reference: TinyLM, prompts: Tensor) -> Rollout:
    """Return answers of the policy, looked at once by the policy, the reference, the critic and the reward."""
    answers = sample(policy, prompts)
    mask = answer_mask(answers)
    # One pass over the whole answers, the same as in training. Collected while sampling, the log-probabilities
    # would differ in the last digits, and the first ratio would not be exactly 1.
    logits, values = at_answers(policy, prompts, answers)
    ref_logits, _ = at_answers(reference, prompts, answers)
    return Rollout(
        prompts,
        answers,
        mask,
        token_logprobs(logits, answers, mask=mask),
        token_logprobs(ref_logits, answers, mask=mask),
        values,
        score(answers),
    )
