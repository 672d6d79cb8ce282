"""Batches of hidden states for the tests of `hidden_policy_loss`, and what it must agree with."""

import torch
from torch.nn.functional import linear

from ppo_core import aggregate, hidden_policy_loss, policy_loss, token_logprobs

# By the order of the arguments: those that get a gradient, where there is a bias.
LEAVES = ("hidden", "weight", "bias")


def batch(shape=(2, 3), device="cpu", dtype=torch.float64, bias=True, seed=0, vocabulary=7, width=4):
    """Draw every tensor argument by name; most ratios lie outside the clip band, on both sides."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(*size):
        return torch.randn(size, generator=generator, dtype=torch.float64).to(device, dtype)

    drawn_first = {
        "hidden": drawn(*shape, width),
        "weight": drawn(vocabulary, width),
        "tokens": torch.randint(vocabulary, shape, generator=generator).to(device),
        "advantages": drawn(*shape),
        "mask": (torch.rand(shape, generator=generator) < 0.7).to(device),
    }
    found = drawn_first | ({"bias": drawn(vocabulary)} if bias else {})
    logits = linear(*(found[name].double() for name in ("hidden", "weight")))
    logprobs = token_logprobs(logits + found.get("bias", torch.zeros(1)).double(), found["tokens"])
    found["old_logprobs"] = (logprobs + 0.5 * drawn(*shape).double()).to(dtype)
    return {name: x.requires_grad_(name in LEAVES) for name, x in found.items()}


def plain(
    hidden, weight, tokens, old_logprobs, advantages, mask, bias=None,
    *, mode, denominator=None, sequence_ids=None, temperature=1.0, **clips,
):  # fmt: skip
    """The definition: the logits of all tokens, and one function after the other."""
    logprobs = token_logprobs(linear(hidden, weight, bias), tokens, temperature=temperature, mask=mask)
    losses = policy_loss(logprobs, old_logprobs, advantages, mask=mask, **clips)
    loss = aggregate(losses, mask, mode=mode, denominator=denominator, sequence_ids=sequence_ids)
    return loss, logprobs.detach()


def values_and_gradients(inputs, call=hidden_policy_loss, incoming=-3.0, **options):
    """Return the loss, the log-probabilities, and the gradients for an incoming one that is not 1."""
    leaves = [inputs[name] for name in LEAVES if name in inputs]
    loss, logprobs = call(**inputs, **options)
    return [loss.detach(), logprobs, *torch.autograd.grad(incoming * loss, leaves)]


def close(found, expected, tolerance=1e-12):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
