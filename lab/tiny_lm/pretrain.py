"""Supervised fine-tuning: the model learns the language, and becomes the policy's start and its reference."""

from collections.abc import Callable

import torch

from lab.tiny_lm.model import TinyLM, at_answers
from lab.tiny_lm.task import PROMPT, answer_mask, sentences
from ppo_core import aggregate, token_logprobs


def pretrained(
    *, seed: int, steps: int = 300, batch: int = 128, lr: float = 3e-3, bar: Callable = iter
) -> TinyLM:
    """Return a model that writes sentences of the language; its critic has learned nothing yet.

    It starts from the random state of torch, which the caller has set; `seed` is that of the text. `bar` goes
    through the batches, and may show how far it has come.
    """
    model = TinyLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    # The step becomes smaller toward the end, so that the probabilities settle.
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=steps)
    # Every sentence is seen once: nothing can be learned by heart.
    for text in bar(sentences(steps * batch, seed=seed).split(batch)):
        prompts, answers = text[:, :PROMPT], text[:, PROMPT:]
        mask = answer_mask(answers)
        logits, _ = at_answers(model, prompts, answers)
        loss = -aggregate(token_logprobs(logits, answers, mask=mask), mask, mode="token_mean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model
