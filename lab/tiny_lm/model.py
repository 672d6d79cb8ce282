"""The model: a causal transformer in plain PyTorch, with two heads on one trunk.

The one head gives the logits of the next token: with it the model is a policy. The other gives one number,
the value of what has been said so far: with it the model is a critic. 48 wide, two layers, 59 thousand
parameters: small enough to be trained on one core in seconds.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from lab.tiny_lm.task import ANSWER, PROMPT, WORDS


class Block(nn.Module):
    """Attention to what came before, then two layers for each token by itself; each adds to what was there."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attended = nn.Linear(width, width)
        self.before_feed = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.query_key_value(self.before_attention(x))
        query, key, value = parts.view(batch, length, 3, self.heads, width // self.heads).permute(
            2, 0, 3, 1, 4
        )
        # Causal: a token sees itself and those before it. Padding stands behind the answer, so none is seen.
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attended(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.before_feed(x))


class TinyLM(nn.Module):
    """From tokens [B, T] to the logits of the next token [B, T, V] and the value of the text so far [B, T]."""

    def __init__(self, *, width: int = 48, heads: int = 4, layers: int = 2):
        super().__init__()
        self.words = nn.Embedding(len(WORDS), width)
        self.places = nn.Embedding(PROMPT + ANSWER, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.next_word = nn.Linear(width, len(WORDS), bias=False)
        self.value = nn.Linear(width, 1)
        # A critic that knows nothing says 0, and not something at random.
        nn.init.zeros_(self.value.weight)
        nn.init.zeros_(self.value.bias)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[-1]))
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.next_word(x), self.value(x).squeeze(-1)


def at_answers(model: TinyLM, prompts: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits and the values that belong to each token of the answers, [B, ANSWER, V] and [B, ANSWER].

    What stands at a place speaks of the next one. So the first token of the answer is chosen at the last place
    of the prompt, and nothing is asked at the last place of all.
    """
    logits, values = model(torch.cat([prompts, answers], -1)[:, :-1])
    return logits[:, PROMPT - 1 :], values[:, PROMPT - 1 :]
