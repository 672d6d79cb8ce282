"""What the gradients of the KL losses average to, by listing everything that a small policy can do.

The left side is the gradient that autograd gives for each outcome, weighted by the probability of the outcome,
which no gradient flows into: what an endless sample would give. The right side is a central difference of a
divergence in plain floats, which knows nothing of the library.
"""

import itertools
import math

import pytest
import torch

from ppo_core import discounted_returns, kl_loss, ratio, shaped_rewards
from reference.logits import softmax

TOKENS = range(3)
POLICIES = [
    ([0.3, -1.2, 1.0], [0.0, 0.5, -0.5]),
    ([2.0, 0.0, -2.0], [-1.0, 0.0, 1.0]),
    ([0.1, 0.0, -0.1], [0.0, 0.0, 0.0]),
]
EACH_POLICY = pytest.mark.parametrize(("logits", "ref_logits"), POLICIES)
OLD = [-0.5, 0.4, 0.2]  # the logits that sampled, where the samples are older than the policy
# A policy of two tokens: three logits for the first, then three after each choice of the first.
ANSWERS = list(itertools.product(TOKENS, TOKENS))
TWO_STEP = [0.3, -1.2, 1.0, 1.5, 0.0, -0.5, 0.2, 0.1, 0.0, -2.0, 0.4, 1.9]
REF_TWO_STEP = [0.0, 0.5, -0.5, 0.0, 0.0, 0.0, -0.3, 0.6, 0.1, 0.2, 0.2, 0.2]


@pytest.fixture(autouse=True)
def on_the_device(device):
    """Make every tensor of a test on the device."""
    with torch.device(device):
        yield


def kl(p, q):
    return math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True))


def slope(function, x, h=1e-5):
    """The gradient of a function of a list, by central differences: good to about h squared."""
    moved = [[[v + s * h * (i == j) for i, v in enumerate(x)] for s in (1, -1)] for j in range(len(x))]
    return [(function(up) - function(down)) / (2 * h) for up, down in moved]


def tensor(x, **options):
    return torch.tensor(x, dtype=torch.float64, **options)


def averaged(probs, losses, logits):
    """The gradient of each loss, averaged over the outcomes with fixed weights."""
    (gradient,) = torch.autograd.grad((probs.detach() * losses).sum(), logits)
    return gradient.tolist()


def close(x):
    return pytest.approx(x, abs=1e-9)


def distance(x, y):
    return max(abs(a - b) for a, b in zip(x, y, strict=True))


def one_token(logits, ref_logits, sampled_by=None, weight=None, **choice):
    """The averaged gradient over the three tokens of a policy."""
    logits = tensor(logits, requires_grad=True)
    logprobs = logits.log_softmax(-1)
    old_logprobs = logprobs if sampled_by is None else tensor(sampled_by).log_softmax(-1)
    losses = kl_loss(logprobs, tensor(ref_logits).log_softmax(-1), **choice)
    if weight is not None:
        losses = losses * weight(ratio(logprobs, old_logprobs))
    return averaged(old_logprobs.exp(), losses, logits)


def reverse(logits, ref_logits):
    return slope(lambda z: kl(softmax(z), softmax(ref_logits)), logits)


def forward(logits, ref_logits):
    return slope(lambda z: kl(softmax(ref_logits), softmax(z)), logits)


def average_of_k2(logits, ref_logits):
    def average(z):
        return math.fsum(
            p * math.log(p / q) ** 2 / 2 for p, q in zip(softmax(z), softmax(ref_logits), strict=True)
        )

    return slope(average, logits)


def nothing(logits, ref_logits):
    return [0.0] * len(logits)


TABLE = {
    ("k1", "own"): nothing,
    ("k2", "own"): reverse,
    ("k3", "own"): forward,
    ("k1", "straight_through"): reverse,
    ("k2", "straight_through"): reverse,
    ("k3", "straight_through"): reverse,
    ("k1", "score_function"): reverse,
    ("k2", "score_function"): average_of_k2,
    ("k3", "score_function"): reverse,
}
RIGHT = [name for name, right in TABLE.items() if right is reverse]


@EACH_POLICY
@pytest.mark.parametrize(("estimator", "gradient"), TABLE)
def test_the_table_of_the_docstring(estimator, gradient, logits, ref_logits):
    found = one_token(logits, ref_logits, estimator=estimator, gradient=gradient)
    assert found == close(TABLE[estimator, gradient](logits, ref_logits))


def test_the_entries_of_the_table_differ():
    for one, other in itertools.combinations([nothing, reverse, forward, average_of_k2], 2):
        assert distance(one(*POLICIES[0]), other(*POLICIES[0])) > 0.05


def test_the_central_difference_by_hand():
    # (3/4, 1/4) against (1/2, 1/2): the gradient of the divergence is 3/4 (log(3/2) - KL) = 3/16 log 3.
    right = 3 / 16 * math.log(3)
    assert reverse([math.log(3), 0.0], [0.0, 0.0]) == pytest.approx([right, -right], abs=1e-10)


@EACH_POLICY
@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_values_average_to_the_divergence_but_for_k2(estimator, logits, ref_logits):
    new, ref = (tensor(x).log_softmax(-1) for x in (logits, ref_logits))
    found = (new.exp() * kl_loss(new, ref, estimator=estimator, gradient="own")).sum().item()
    right = kl(softmax(logits), softmax(ref_logits))
    assert (found == pytest.approx(right, rel=1e-12)) is (estimator != "k2")


# --- tokens from an older policy


@EACH_POLICY
@pytest.mark.parametrize("estimator", ["k1", "k3"])
def test_times_the_ratio_the_own_gradient_is_right_for_older_samples(estimator, logits, ref_logits):
    found = one_token(logits, ref_logits, OLD, lambda rho: rho, estimator=estimator, gradient="own")
    assert found == close(reverse(logits, ref_logits))


@EACH_POLICY
@pytest.mark.parametrize(("estimator", "gradient"), RIGHT)
def test_times_the_detached_ratio_the_others_are(estimator, gradient, logits, ref_logits):
    found = one_token(logits, ref_logits, OLD, torch.detach, estimator=estimator, gradient=gradient)
    assert found == close(reverse(logits, ref_logits))


@pytest.mark.parametrize(
    ("weight", "estimator", "gradient"),
    [
        (None, "k3", "own"),
        (None, "k3", "straight_through"),
        (torch.detach, "k3", "own"),
        (lambda rho: rho, "k3", "straight_through"),
        (lambda rho: rho, "k3", "score_function"),
        (lambda rho: rho, "k2", "own"),
    ],
)
def test_without_the_ratio_or_with_too_much_of_it_it_is_wrong(weight, estimator, gradient):
    found = one_token(*POLICIES[0], OLD, weight, estimator=estimator, gradient=gradient)
    assert distance(found, reverse(*POLICIES[0])) > 0.05


def test_on_its_own_samples_the_ratio_is_one_and_still_brings_in_the_score_function():
    choice = {"estimator": "k3", "gradient": "own"}
    found = one_token(*POLICIES[0], POLICIES[0][0], lambda rho: rho, **choice)
    assert found == close(reverse(*POLICIES[0]))
    assert one_token(*POLICIES[0], **choice) == close(forward(*POLICIES[0]))


# --- answers of two tokens


def by_place(logits):
    """Split twelve logits: those of the first token, and those of the second after each first."""
    return logits[:3], [logits[3 + 3 * first : 6 + 3 * first] for first in TOKENS]


def answer_probs(logits):
    first, second = by_place(logits)
    return [softmax(first)[a] * softmax(second[a])[b] for a, b in ANSWERS]


def true_gradient():
    return slope(lambda z: kl(answer_probs(z), answer_probs(REF_TWO_STEP)), TWO_STEP)


def answer_logprobs(logits):
    """Log-probability of both tokens of each answer, shape [9, 2]."""
    first, second = by_place(logits)
    after = torch.stack([z.log_softmax(-1) for z in second])
    return torch.stack([torch.stack([first.log_softmax(-1)[a], after[a, b]]) for a, b in ANSWERS])


def two_tokens(later=False, **choice):
    """The averaged gradient of the sum over tokens, with the score term of the later tokens or without."""
    logits = tensor(TWO_STEP, requires_grad=True)
    logprobs, ref = answer_logprobs(logits), answer_logprobs(tensor(REF_TWO_STEP))
    losses = kl_loss(logprobs, ref, **choice).sum(-1)
    if later:
        # The first token also answers for the log-ratio of the second.
        losses = losses + (logprobs - ref)[:, 1].detach() * logprobs[:, 0]
    return averaged(logprobs.sum(-1).exp(), losses, logits)


def test_the_answers_are_all_there():
    assert math.fsum(answer_probs(TWO_STEP)) == pytest.approx(1, rel=1e-15)
    assert answer_logprobs(tensor(TWO_STEP)).sum(-1).exp().tolist() == pytest.approx(answer_probs(TWO_STEP))


@pytest.mark.parametrize(("estimator", "gradient"), RIGHT)
def test_a_sum_over_tokens_misses_what_the_first_token_does_to_the_second(estimator, gradient):
    found, right = two_tokens(estimator=estimator, gradient=gradient), true_gradient()
    # The last token has nothing after it: there the sum is right.
    assert found[3:] == close(right[3:])
    # What the first token misses is the slope of the divergence of the second, as far as the first decides it.
    first, second = by_place(TWO_STEP)
    later = [kl(softmax(z), softmax(ref)) for z, ref in zip(second, by_place(REF_TWO_STEP)[1], strict=True)]
    missed = slope(lambda z: math.fsum(p * k for p, k in zip(softmax(z), later, strict=True)), first)
    gap = [a - b for a, b in zip(right[:3], found[:3], strict=True)]
    assert gap == close(missed)
    assert max(map(abs, gap)) > 0.05


@pytest.mark.parametrize(("estimator", "gradient"), RIGHT)
def test_the_score_term_of_the_later_tokens_closes_the_gap(estimator, gradient):
    assert two_tokens(later=True, estimator=estimator, gradient=gradient) == close(true_gradient())


def test_a_leash_in_the_reward_has_that_term():
    logits = tensor(TWO_STEP, requires_grad=True)
    logprobs, ref = answer_logprobs(logits), answer_logprobs(tensor(REF_TWO_STEP))
    mask = torch.ones_like(logprobs).bool()
    rewards = shaped_rewards(logprobs.new_zeros(len(ANSWERS)), logprobs, ref, mask, beta=1)
    returns = discounted_returns(rewards, mask, gamma=1)
    found = averaged(logprobs.sum(-1).exp(), -(returns * logprobs).sum(-1), logits)
    assert found == close(true_gradient())
