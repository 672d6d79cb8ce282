"""From logits to log-probabilities and entropies."""

from benchmarks.parity.differences import Difference

RULED_OUT = "logits = torch.tensor([[0.0, 0.0, -torch.inf]])\n"
OUTSIDE = "hidden, weight, tokens = torch.tensor([[1.0]]), torch.zeros(2, 1), torch.tensor([2])\n"
TIED = "hidden = torch.tensor([[1.0]], requires_grad=True)\nweight = torch.tensor([[3.0], [1.0]]).log()\n"
P, Q = "3 / 4", "1 / 4"
H = f"-({P} * log({P}) + {Q} * log({Q}))"


def ruled_out(peer: str, what: str, theirs: str) -> Difference:
    return Difference(
        peer,
        "Entropy with a token that is ruled out",
        what,
        "logits [0, 0, −∞]",
        RULED_OUT + theirs,
        RULED_OUT + "entropy(logits)",
        "[-(1 / 2 * log(1 / 2) + 1 / 2 * log(1 / 2))]",
        "two tokens of probability 1/2: log 2 = 0.6931",
        "Probability 0 is multiplied by minus infinity, which is NaN.",
    )


def outside(peer: str, what: str, theirs: str) -> Difference:
    return Difference(
        peer,
        "A token outside the vocabulary",
        what,
        "two tokens in the vocabulary, label 2",
        OUTSIDE + theirs,
        OUTSIDE + "token_logprobs(hidden @ weight.T, tokens)",
        "'an error'",
        "an error: there is no token 2",
        "The logit of the missing token is taken as 0, and the result looks like a log-probability.",
    )


ROWS = (
    ruled_out("verl", "`entropy_from_logits`", "verl_F.entropy_from_logits(logits)"),
    ruled_out("trl", "`entropy_from_logits`", "utils.entropy_from_logits(logits)"),
    ruled_out("openrlhf", "`compute_entropy`", "utils.compute_entropy(logits)"),
    outside("liger", "chunked log-probability", "selective_logprobs(hidden, weight, tokens, None, 1.0, 2)"),
    outside("trl", "chunked log-probability", "chunked_logprobs(hidden, weight, tokens, 1.0, 2)[0]"),
    Difference(
        "rlax",
        "A token outside the vocabulary",
        "`softmax().logprob`",
        "two tokens in the vocabulary, label 2",
        "rlax.softmax().logprob(jnp.array([2]), jnp.zeros((1, 2)))",
        "token_logprobs(torch.zeros(1, 2), torch.tensor([2]))",
        "'an error'",
        "an error: there is no token 2",
        "The missing token gets probability 0, which is an infinite loss.",
    ),
    Difference(
        "trl",
        "An entropy without a gradient",
        "chunked log-probability, its entropy",
        "hidden 1, unembedding [log 3, 0]",
        TIED + "entropies = chunked_logprobs(hidden, weight, torch.tensor([0]), 1.0, 2)[1]\n"
        "torch.autograd.grad(entropies.sum(), hidden)[0]",
        TIED + "torch.autograd.grad(entropy(hidden @ weight.T).sum(), hidden)[0]",
        f"[[log(3) * -({P}) * (log({P}) + {H})]]",
        "p = 3/4, H = 0.5623; slope −p (log p + H) = −0.2060 into the first logit, times log 3: −0.2263",
        "The gradient of the entropy is dropped, and a bonus on it does nothing, without an error.",
    ),
    Difference(
        "openrlhf",
        "The caller's tensor",
        "`log_probs_from_logits`",
        "logits [2, 0], temperature 2, read afterwards",
        "logits = torch.tensor([[2.0, 0.0]])\n"
        "utils.log_probs_from_logits(logits, torch.tensor([0]), temperature=2.0)\n"
        "logits",
        "logits = torch.tensor([[2.0, 0.0]])\ntoken_logprobs(logits, torch.tensor([0]), temperature=2.0)\nlogits",
        "[[2, 0]]",
        "who asks for a log-probability still has the logits: 2 and 0",
        "The logits are divided in place: whoever uses them afterwards has the temperature in them twice.",
    ),
    Difference(
        "trl",
        "bfloat16 in, bfloat16 out",
        "`selective_log_softmax`",
        "logits [2, 0, 1] in bfloat16, token 0",
        "utils.selective_log_softmax(torch.tensor([[[2.0, 0.0, 1.0]]]).bfloat16(), torch.tensor([[0]]))",
        "token_logprobs(torch.tensor([[[2.0, 0.0, 1.0]]]).bfloat16(), torch.tensor([[0]]))",
        "[[2 - log(exp(2) + exp(0) + exp(1))]]",
        "2 − log(e² + 1 + e) = −0.4076; the logits are exact in bfloat16",
        "The result is rounded to 8 bits, an error of 0.14 % in the ratio that is made of it. Ours is float32.",
        fault=False,
    ),
    Difference(
        "torchtune",
        "bfloat16 in, bfloat16 out",
        "`logits_to_logprobs`",
        "logits [2, 0, 1] in bfloat16, token 0",
        "rlhf.logits_to_logprobs(torch.tensor([[[2.0, 0.0, 1.0]]]).bfloat16(), torch.tensor([[0]]))",
        "token_logprobs(torch.tensor([[[2.0, 0.0, 1.0]]]).bfloat16(), torch.tensor([[0]]))",
        "[[2 - log(exp(2) + exp(0) + exp(1))]]",
        "2 − log(e² + 1 + e) = −0.4076; the logits are exact in bfloat16",
        "The result is rounded to 8 bits, an error of 0.14 % in the ratio that is made of it. Ours is float32.",
        fault=False,
    ),
)
