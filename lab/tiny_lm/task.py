"""The task: a language of 19 words, its sentences, and a reward that a few lines of code give.

A sentence is a subject, which is the prompt, and then one or two clauses, which are the answer:

    the cat | sees a happy dog and likes the bird .

The reward wants happy words and no sad ones. It does not ask for grammar, so a policy that is free to do as it
likes ends in "happy happy happy": that it does not is the work of the leash to the reference.
"""

import random
import re

import torch
from torch import Tensor

# Each word with the letter of its class: what may follow what is a matter of classes.
CLASSES = {
    "<pad>": "_", "<start>": "^", ".": ".", "and": "&", "the": "d", "a": "d",
    "cat": "n", "dog": "n", "bird": "n", "child": "n", "sees": "v", "likes": "v", "follows": "v",
    "happy": "j", "kind": "j", "bright": "j", "sad": "j", "cruel": "j", "dark": "j",
}  # fmt: skip
WORDS = tuple(CLASSES)
PAD, START, STOP = (WORDS.index(word) for word in ("<pad>", "<start>", "."))
HAPPY = tuple(WORDS.index(word) for word in ("happy", "kind", "bright"))
SAD = tuple(WORDS.index(word) for word in ("sad", "cruel", "dark"))

PROMPT = 3  # "<start> the cat"
ANSWER = 14  # two more than the longest sentence needs, so that there is room to go wrong
_GRAMMAR = re.compile(r"vdj{0,2}n(&vdj{0,2}n)?\.")


def _draw(generator: random.Random, letter: str) -> str:
    return generator.choice([word for word, each in CLASSES.items() if each == letter])


def _prompt(generator: random.Random) -> list[str]:
    return ["<start>", _draw(generator, "d"), _draw(generator, "n")]


def _answer(generator: random.Random) -> list[str]:
    words: list[str] = []
    for _ in range(generator.choices((1, 2), (0.6, 0.4))[0]):
        adjectives = generator.choices((0, 1, 2), (0.5, 0.35, 0.15))[0]
        letters = ["v", "d", *"j" * adjectives, "n"]
        words += ["and"] * bool(words) + [_draw(generator, letter) for letter in letters]
    return [*words, "."]


def sentences(count: int, *, seed: int) -> Tensor:
    """Return synthetic text to learn the language from, int64 [count, PROMPT + ANSWER], padded at the end."""
    generator = random.Random(seed)
    rows = [_prompt(generator) + _answer(generator) for _ in range(count)]
    filled = [row + ["<pad>"] * (PROMPT + ANSWER - len(row)) for row in rows]
    return torch.tensor([[WORDS.index(word) for word in row] for row in filled])


def prompts(count: int, *, seed: int) -> Tensor:
    """Return subjects without the rest, int64 [count, PROMPT]."""
    generator = random.Random(seed)
    return torch.tensor([[WORDS.index(word) for word in _prompt(generator)] for _ in range(count)])


def answer_mask(answers: Tensor) -> Tensor:
    """Return which tokens are part of the answer, bool [B, ANSWER]: all up to its full stop, which counts.

    The policy chose the full stop, so it must be able to learn from it; the padding behind it, nobody chose.
    """
    stops = (answers == STOP).long()
    return stops.cumsum(-1) - stops == 0


def score(answers: Tensor) -> Tensor:
    """Return the reward of each answer, float32 [B]: 1 for each happy word, -1 for each sad one.

    An answer that is cut off, because it has no full stop in time, gets 2 less.
    """
    part = answer_mask(answers)
    happy, sad = ((torch.isin(answers, torch.tensor(words)) & part).sum(-1).float() for words in (HAPPY, SAD))
    return happy - sad - 2.0 * (answers != STOP).all(-1)


def grammatical(answers: Tensor) -> Tensor:
    """Return which answers are sentences of the language, bool [B]. The reward does not look at it."""
    letters = ["".join(CLASSES[WORDS[token]] for token in row).rstrip("_") for row in answers.tolist()]
    return torch.tensor([bool(_GRAMMAR.fullmatch(row)) for row in letters])


def as_text(answer: Tensor) -> str:
    """Return an answer, or a prompt, in words."""
    return " ".join(WORDS[token] for token in answer.tolist() if token not in (PAD, START))
