"""What holds for all inputs, whatever they are: Hypothesis looks for one where it does not.

Where a test shifts or adds numbers, they are eighths, so that this is exact and every difference of results
is one of the function under test.
"""

import inspect
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ppo_core

from .samples import SAMPLES, draw, to_tensors

# The same examples in every run, so that a failure can be repeated. The device is only a name, which no
# example changes, and a busy machine is no fault.
EXAMPLES = settings(
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def eighths(low, high):
    return st.integers(8 * low, 8 * high).map(lambda n: n / 8)


LOGPROBS, REWARDS, LOGITS = eighths(-6, 0), eighths(-4, 4), eighths(-8, 8)
# Any float between the ends, very small ones too.
ANY_LOGPROBS, ANY_RATIOS, ANY_REWARDS = st.floats(-50, 0), st.floats(0, 5), st.floats(-4, 4)
EPSILONS = st.sampled_from([0.1, 0.2, 0.5])
CLIPS = st.fixed_dictionaries({"epsilon": EPSILONS, "epsilon_high": st.sampled_from([None, 0.1, 0.28, 1.5])})
FRACTIONS = st.sampled_from([0.0, 0.5, 0.9, 1.0])
MODES = st.sampled_from(["token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum"])


@st.composite
def batches(draw, *elements, least=1):
    """Draw a tensor of shape [rows, tokens] for each kind of elements, and a mask."""
    shape = draw(st.integers(1, 3)), draw(st.integers(least, 5))
    size = math.prod(shape)
    flat = [draw(st.lists(each, min_size=size, max_size=size)) for each in (*elements, st.booleans())]
    *numbers, mask = flat
    tensors = [torch.tensor(x, dtype=torch.float64).reshape(shape) for x in numbers]
    return *tensors, torch.tensor(mask).reshape(shape)


@st.composite
def two_logits(draw, size=5):
    """Draw two tensors of logits, shape [places, vocabulary]."""
    shape = draw(st.integers(1, 3)), draw(st.integers(1, size))
    flat = st.lists(LOGITS, min_size=math.prod(shape), max_size=math.prod(shape))
    return tuple(torch.tensor(draw(flat), dtype=torch.float64).reshape(shape) for _ in range(2))


def on(device, tensors):
    return [x.to(device) for x in tensors]


def close(a, b, tolerance=1e-12):
    torch.testing.assert_close(
        a, torch.as_tensor(b, dtype=a.dtype, device=a.device).expand_as(a), rtol=tolerance, atol=tolerance
    )


# --- policy ---


@EXAMPLES
@given(x=batches(ANY_RATIOS, ANY_REWARDS), clips=CLIPS)
def test_the_clipped_surrogate_is_never_above_the_plain_one(x, clips, device):
    # It is the smaller of two, and one of them is the plain one, which it is inside the band.
    rho, A, _ = on(device, x)
    plain, clipped = ppo_core.surrogate(rho, A), ppo_core.clipped_surrogate(rho, A, **clips)
    assert (clipped <= plain).all()
    inside = rho == ppo_core.clip_ratio(rho, **clips)
    assert torch.equal(clipped[inside], plain[inside])


@EXAMPLES
@given(x=batches(ANY_RATIOS, ANY_RATIOS, ANY_REWARDS), clips=CLIPS, dual=st.sampled_from([None, 1.5, 3.0]))
def test_the_clipped_surrogate_rises_with_the_ratio_of_a_good_token_and_falls_with_that_of_a_bad_one(
    x, clips, dual, device
):
    # A clip makes pieces flat, and turns none round.
    rho, other, A, _ = on(device, x)
    low, high = (
        ppo_core.clipped_surrogate(part, A, **clips, dual_clip=dual)
        for part in (torch.minimum(rho, other), torch.maximum(rho, other))
    )
    assert torch.where(A >= 0, low <= high, low >= high).all()


@EXAMPLES
@given(x=batches(ANY_RATIOS, ANY_REWARDS), clips=CLIPS, dual=st.sampled_from([1.5, 3.0]))
def test_the_dual_clip_bounds_what_a_bad_token_costs(x, clips, dual, device):
    # Without it a single ratio of a thousand costs a thousand times its advantage.
    rho, A, _ = on(device, x)
    capped = ppo_core.clipped_surrogate(rho, A, **clips, dual_clip=dual)
    assert torch.where(A < 0, capped >= dual * A, True).all()
    assert (capped >= ppo_core.clipped_surrogate(rho, A, **clips)).all()


@EXAMPLES
@given(x=batches(LOGPROBS, LOGPROBS, REWARDS), shift=eighths(-20, 20), clips=CLIPS)
def test_the_policy_losses_see_differences_of_logprobs_alone(x, shift, clips, device):
    # A ratio is all that they know of the two policies.
    new, old, A, mask = on(device, x)
    arguments = {"mask": mask, **clips}
    for loss in (ppo_core.policy_loss, ppo_core.sequence_policy_loss):
        close(loss(new + shift, old + shift, A, **arguments), loss(new, old, A, **arguments))


@EXAMPLES
@given(x=batches(LOGPROBS, LOGPROBS, REWARDS), clips=CLIPS, dual=st.sampled_from([None, 1.5]))
def test_the_policy_loss_is_the_clipped_surrogate_of_the_ratio(x, clips, dual, device):
    # It is written another way only for the sake of overflows, of which there are none here.
    new, old, A, _ = on(device, x)
    expected = -ppo_core.clipped_surrogate(ppo_core.ratio(new, old), A, **clips, dual_clip=dual)
    assert torch.equal(ppo_core.policy_loss(new, old, A, **clips, dual_clip=dual), expected)


@EXAMPLES
@given(x=batches(LOGPROBS, LOGPROBS, ANY_REWARDS), clips=CLIPS)
def test_the_policy_losses_are_as_large_as_the_advantages(x, clips, device):
    # They are proportional to them; a factor of 4 is exact, except below the normal numbers.
    new, old, A, mask = on(device, x)
    for loss in (ppo_core.policy_loss, ppo_core.sequence_policy_loss):
        once, four_times = (loss(new, old, factor * A, mask=mask, **clips) for factor in (1, 4))
        torch.testing.assert_close(four_times, 4 * once, rtol=0, atol=1e-300)


@EXAMPLES
@given(x=batches(LOGPROBS, LOGPROBS))
def test_the_ratio_of_a_sequence_lies_between_those_of_its_tokens(x, device):
    # A mean does.
    new, old, mask = on(device, x)
    rho = ppo_core.ratio(new, old)
    low = torch.where(mask, rho, torch.inf).amin(-1, keepdim=True)
    high = torch.where(mask, rho, -torch.inf).amax(-1, keepdim=True)
    s = ppo_core.sequence_ratio(new, old, mask)
    assert torch.where(mask, (s >= low * (1 - 1e-14)) & (s <= high * (1 + 1e-14)), s == 0).all()


@EXAMPLES
@given(x=batches(LOGPROBS, LOGPROBS, REWARDS), clips=CLIPS)
def test_a_sequence_of_one_token_is_that_token(x, clips, device):
    # The mean of one number is the number, the product too.
    new, old, A, mask = (part.reshape(-1, 1) for part in on(device, x))
    found = ppo_core.sequence_policy_loss(new, old, A, mask, **clips)
    close(found, ppo_core.policy_loss(new, old, A, mask=mask, **clips))
    by_level = (
        ppo_core.truncated_weights(new, old, mask, level=level, max_weight=2.0)
        for level in ("token", "sequence")
    )
    assert torch.equal(*by_level)


@EXAMPLES
@given(x=batches(LOGPROBS, LOGPROBS, REWARDS), low=EPSILONS, high=EPSILONS)
def test_the_weight_of_cispo_stays_in_its_bounds(x, low, high, device):
    # The slope is minus advantage times weight, and no token that has an advantage is dropped.
    new, old, A, _ = on(device, x)
    new.requires_grad_()
    ppo_core.cispo_loss(new, old, A, epsilon_low=low, epsilon_high=high).sum().backward()
    size = new.grad.abs()
    assert (size >= (1 - low) * A.abs() * (1 - 1e-14)).all()
    assert (size <= (1 + high) * A.abs() * (1 + 1e-14)).all()
    assert torch.equal(new.grad.sign(), -A.sign())


@EXAMPLES
@given(x=batches(LOGPROBS, LOGPROBS), level=st.sampled_from(["token", "sequence"]))
def test_the_two_kinds_of_weights_agree_inside_the_window(x, level, device):
    # Outside it one keeps the end of the window and the other nothing.
    new, sampler, mask = on(device, x)
    kept = ppo_core.masked_weights(new, sampler, mask, level=level, min_weight=0.5, max_weight=2.0)
    cut = ppo_core.truncated_weights(new, sampler, mask, level=level, max_weight=2.0)
    assert torch.where(kept == 0, True, (kept >= 0.5) & (kept == cut)).all()
    assert (cut <= 2).all()


# --- KL ---


@EXAMPLES
@given(x=batches(ANY_LOGPROBS, ANY_LOGPROBS))
def test_k2_and_k3_are_never_negative(x, device):
    # A square; and e^d lies above its tangent 1 + d. The subtraction as written breaks this near 0.
    new, ref, _ = on(device, x)
    near = new + (ref - new) * 1e-8
    for reference in (ref, near):
        assert (ppo_core.kl_k2(new, reference) >= 0).all()
        assert (ppo_core.kl_k3(new, reference) >= 0).all()
        assert (ppo_core.kl_k3(new.float(), reference.float()) >= 0).all()


@EXAMPLES
@given(x=batches(ANY_LOGPROBS))
def test_every_estimator_is_0_at_the_reference(x, device):
    # There is no distance from a policy to itself, to the last bit.
    new, _ = on(device, x)
    for estimator in (ppo_core.kl_k1, ppo_core.kl_k2, ppo_core.kl_k3):
        assert (estimator(new, new) == 0).all()


@EXAMPLES
@given(x=batches(LOGPROBS, LOGPROBS))
def test_how_the_estimators_hang_together(x, device):
    # k1 changes its sign with the two policies, k2 does not; k3 is k1 plus a term of mean 0, rho - 1 backwards.
    new, ref, _ = on(device, x)
    k1, k2, k3 = (f(new, ref) for f in (ppo_core.kl_k1, ppo_core.kl_k2, ppo_core.kl_k3))
    assert torch.equal(ppo_core.kl_k1(ref, new), -k1)
    assert torch.equal(ppo_core.kl_k2(ref, new), k2)
    close(k3, k1 + ppo_core.ratio(ref, new) - 1)


@EXAMPLES
@given(z=two_logits(), shift=eighths(-20, 20))
def test_the_whole_kl_is_never_negative_and_0_between_equals(z, shift, device):
    # Gibbs' inequality; a shift of all logits changes no probability.
    logits, ref_logits = on(device, z)
    assert (ppo_core.full_kl(logits, ref_logits) >= 0).all()
    assert (ppo_core.full_kl(logits, logits) == 0).all()
    close(ppo_core.full_kl(logits + shift, ref_logits), ppo_core.full_kl(logits, ref_logits))


@EXAMPLES
@given(z=two_logits())
def test_the_mean_of_k1_and_of_k3_over_all_tokens_is_the_whole_kl(z, device):
    # That is what the two estimate without bias.
    logits, ref_logits = on(device, z)
    logprobs, ref_logprobs = logits.log_softmax(-1), ref_logits.log_softmax(-1)
    expected = ppo_core.full_kl(logits, ref_logits)
    for estimator in (ppo_core.kl_k1, ppo_core.kl_k3):
        close((logprobs.exp() * estimator(logprobs, ref_logprobs)).sum(-1), expected)


@EXAMPLES
@given(x=batches(LOGPROBS, LOGPROBS), gradient=st.sampled_from(["own", "straight_through", "score_function"]))
def test_the_value_of_the_kl_loss_is_that_of_its_estimator(x, gradient, device):
    # The choice of the gradient is one of the gradient alone.
    new, ref, mask = on(device, x)
    for name in ("k1", "k2", "k3"):
        found = ppo_core.kl_loss(new, ref, estimator=name, gradient=gradient, mask=mask)
        assert torch.equal(found, getattr(ppo_core, f"kl_{name}")(new, ref, mask=mask))


@EXAMPLES
@given(
    x=batches(eighths(0, 4)), beta=st.sampled_from([0.01, 1.0]), unit=st.sampled_from(["token", "sequence"])
)
def test_the_leash_changes_with_the_distance_and_by_a_bounded_step(x, beta, unit, device):
    # The controller caps the error at a fifth of the target, for each sequence of the horizon.
    kl, mask = on(device, x)
    options = {"beta": beta, "target": 1.0, "horizon": 100.0, "unit": unit}
    step = 0.2 * mask.any(-1).sum() / 100
    near, far = ppo_core.adapt_beta(kl, mask, **options), ppo_core.adapt_beta(kl + 1, mask, **options)
    assert near <= far
    for found in (near, far):
        assert (found / beta - 1).abs() <= step + 1e-15


# --- rewards and advantages ---


@EXAMPLES
@given(x=batches(LOGPROBS, LOGPROBS, REWARDS), beta=st.sampled_from([0.0, 0.1, 1.0]))
def test_the_rewards_of_an_answer_add_up_to_its_score_less_its_penalty(x, beta, device):
    # Every counted token is leashed and the score is paid once.
    new, ref, scores, mask = on(device, x)
    mask[:, 0] = True
    rewards = ppo_core.shaped_rewards(scores[:, 0], new, ref, mask, beta=beta)
    penalty = beta * torch.where(mask, new - ref, 0.0).sum(-1)
    close(rewards.sum(-1), scores[:, 0] - penalty)


@EXAMPLES
@given(x=batches(REWARDS, REWARDS, REWARDS), gamma=FRACTIONS)
def test_gae_with_lam_1_is_the_return_less_the_value(x, gamma, device):
    # The sum telescopes: every value but the first stands in it once with each sign.
    rewards, values, ends, mask = on(device, x)
    rewards, end = torch.where(mask, rewards, 0.0), ends[:, 0]
    returns = ppo_core.discounted_returns(rewards, mask, gamma=gamma, bootstrap=end)
    expected = torch.where(mask, returns - values, 0.0)
    close(ppo_core.gae(rewards, values, mask, gamma=gamma, lam=1.0, bootstrap=end), expected)


@EXAMPLES
@given(x=batches(REWARDS, REWARDS, REWARDS), gamma=FRACTIONS)
def test_gae_with_lam_0_is_the_error_of_one_step(x, gamma, device):
    # Only the first term of the sum is left; the next step is the next counted token.
    rewards, values, ends, mask = on(device, x)
    rewards = torch.where(mask, rewards, 0.0)
    found = ppo_core.gae(rewards, values, mask, gamma=gamma, lam=0.0, bootstrap=ends[:, 0])
    for row, counts in enumerate(mask):
        r, v = rewards[row, counts], values[row, counts]
        after = torch.cat([v, ends[row, :1]])[1:]
        close(found[row, counts], r + gamma * after - v)


@EXAMPLES
@given(x=batches(*(REWARDS,) * 6), gamma=FRACTIONS, lam=FRACTIONS)
def test_gae_is_linear(x, gamma, lam, device):
    # It is a weighted sum of rewards, values and bootstrap, with weights that none of them changes.
    *numbers, mask = on(device, x)
    r, v, end, other_r, other_v, other_end = (torch.where(mask, part, 0.0) for part in numbers)

    def advantages(rewards, values, ends):
        return ppo_core.gae(rewards, values, mask, gamma=gamma, lam=lam, bootstrap=ends[:, 0])

    expected = advantages(r, v, end) + 2 * advantages(other_r, other_v, other_end)
    close(advantages(r + 2 * other_r, v + 2 * other_v, end + 2 * other_end), expected)


@EXAMPLES
@given(x=batches(REWARDS, REWARDS, REWARDS), place=st.integers(0, 4), gamma=FRACTIONS, lam=FRACTIONS)
def test_an_advantage_knows_nothing_of_what_came_before(x, place, gamma, lam, device):
    # What is done cannot be earned again.
    rewards, values, other, mask = on(device, x)
    rewards = torch.where(mask, rewards, 0.0)
    before = torch.arange(rewards.shape[-1], device=device) < place
    earlier = torch.where(before & mask, other, rewards)
    arguments = {"mask": mask, "gamma": gamma, "lam": lam}
    found, expected = (ppo_core.gae(r, values, **arguments)[:, place:] for r in (earlier, rewards))
    assert torch.equal(found, expected)


@EXAMPLES
@given(x=batches(REWARDS, REWARDS, REWARDS), gamma=FRACTIONS, lam=FRACTIONS)
def test_a_terminated_answer_has_nothing_after_it(x, gamma, lam, device):
    # That is the same as a value of 0 there, and as no bootstrap at all.
    rewards, values, ends, mask = on(device, x)
    rewards, end = torch.where(mask, rewards, 0.0), ends[:, 0]
    terminated = torch.ones_like(end, dtype=torch.bool)
    arguments = {"gamma": gamma, "lam": lam}
    expected = ppo_core.gae(rewards, values, mask, **arguments)
    for options in ({"bootstrap": end, "terminated": terminated}, {"bootstrap": torch.zeros_like(end)}):
        assert torch.equal(ppo_core.gae(rewards, values, mask, **arguments, **options), expected)


@EXAMPLES
@given(x=batches(REWARDS, least=2), shift=eighths(-20, 20))
def test_the_advantages_of_a_group_add_up_to_0(x, shift, device):
    # They compare its answers with each other: what one has more, the others have less.
    scores, _ = on(device, x)
    size = scores.shape[-1]
    for function in (
        ppo_core.group_centred,
        ppo_core.leave_one_out,
        lambda s: ppo_core.group_relative(s, eps=0.01),
    ):
        close(function(scores).sum(-1), 0.0)
        close(function(scores + shift), function(scores))
    close(ppo_core.group_centred(scores), (size - 1) / size * ppo_core.leave_one_out(scores))


@EXAMPLES
@given(x=batches(REWARDS, least=2), factor=st.sampled_from([0.25, 3.0, 1000.0]))
def test_the_advantages_of_a_group_relative_to_its_spread_have_no_unit(x, factor, device):
    # Only eps has one: scaled with the scores it changes nothing, and it keeps the spread at 1 or below.
    scores, _ = on(device, x)
    found = ppo_core.group_relative(scores, eps=0.01)
    close(ppo_core.group_relative(factor * scores, eps=0.01 * factor), found)
    assert (found.std(-1) <= 1).all()


@EXAMPLES
@given(
    x=batches(REWARDS),
    shift=eighths(-100, 100),
    factor=st.sampled_from([0.25, 3.0, 1000.0]),
    ddof=st.sampled_from([0, 1]),
)
def test_whitening_forgets_shift_and_scale(x, shift, factor, ddof, device):
    # Both are taken out; only eps has a unit, so that it is scaled too.
    elements, mask = on(device, x)
    found = ppo_core.whiten(elements, mask, ddof=ddof, eps=0.01)
    close(ppo_core.whiten(elements + shift, mask, ddof=ddof, eps=0.01), found)
    close(ppo_core.whiten(factor * elements, mask, ddof=ddof, eps=0.01 * factor), found)
    # With an eps that is small beside the spread the scale alone is forgotten.
    small = (ppo_core.whiten(c * elements, mask, ddof=ddof, eps=1e-9) for c in (1, factor))
    torch.testing.assert_close(*small, rtol=1e-6, atol=1e-9)


@EXAMPLES
@given(x=batches(ANY_REWARDS), ddof=st.sampled_from([0, 1]))
def test_what_is_whitened_has_mean_0_and_a_spread_of_at_most_1(x, ddof, device):
    # eps is in the divisor, so the spread falls short of 1.
    elements, mask = on(device, x)
    found = ppo_core.whiten(elements, mask, ddof=ddof, eps=0.01)
    close(found.sum(), 0.0)
    assert (found**2).sum() <= max(mask.sum() - ddof, 0) * (1 + 1e-12)


# --- values, entropies, log-probabilities, preferences ---


@EXAMPLES
@given(x=batches(ANY_REWARDS, ANY_REWARDS, ANY_REWARDS), epsilon=EPSILONS, factor=st.sampled_from([0.5, 1]))
def test_the_clipped_value_loss_is_never_below_the_plain_one(x, epsilon, factor, device):
    # It is the larger of two, and one of them is the plain one.
    values, old, returns, mask = on(device, x)
    plain = ppo_core.value_loss(values, returns, factor=factor, mask=mask)
    clipped = ppo_core.clipped_value_loss(values, old, returns, epsilon=epsilon, factor=factor, mask=mask)
    assert (clipped >= plain).all() and (plain >= 0).all()
    unmoved = ppo_core.clipped_value_loss(values, values, returns, epsilon=epsilon, factor=factor, mask=mask)
    assert torch.equal(unmoved, plain)


@EXAMPLES
@given(z=two_logits(), shift=eighths(-20, 20), temperature=st.sampled_from([0.5, 1.0, 3.0]))
def test_an_entropy_lies_between_0_and_that_of_the_uniform_policy(z, shift, temperature, device):
    # No policy knows less than one for which all tokens are equal, and a shift of all logits changes none.
    logits = z[0].to(device)
    found = ppo_core.entropy(logits, temperature=temperature)
    assert (found >= 0).all() and (found <= math.log(logits.shape[-1]) + 1e-15).all()
    close(ppo_core.entropy(logits + shift, temperature=temperature), found)
    close(ppo_core.entropy(torch.zeros_like(logits)), math.log(logits.shape[-1]))


@EXAMPLES
@given(z=two_logits(), temperature=st.sampled_from([0.5, 1.0, 3.0]))
def test_heat_makes_a_policy_undecided(z, temperature, device):
    # The entropy rises with the temperature: its slope is the variance of the logits over the temperature cubed.
    logits = z[0].to(device)
    colder, warmer = (ppo_core.entropy(logits, temperature=temperature * c) for c in (1.0, 1.5))
    assert (warmer >= colder - 1e-15).all()


@EXAMPLES
@given(z=two_logits(), temperature=st.sampled_from([0.5, 1.0, 3.0]))
def test_the_probabilities_of_all_tokens_add_up_to_1(z, temperature, device):
    # One of them is drawn.
    logits = z[0].to(device)
    places, size = logits.shape
    every = torch.arange(size, device=device).expand(places, size)
    logprobs = ppo_core.token_logprobs(
        logits.unsqueeze(1).expand(places, size, size), every, temperature=temperature
    )
    close(logprobs.exp().sum(-1), 1.0)
    assert (logprobs <= 0).all()
    close(-(logprobs.exp() * logprobs).sum(-1), ppo_core.entropy(logits, temperature=temperature))


@EXAMPLES
@given(z=two_logits(), places=st.integers(1, 4), temperature=st.sampled_from([0.5, 1.0, 3.0]))
def test_hidden_states_say_the_same_as_their_logits(z, places, temperature, device):
    # Never holding all logits is a matter of memory alone.
    weight, numbers = on(device, z)
    size, width = weight.shape
    hidden = numbers.flatten().repeat(places)[: places * width].reshape(places, width) / 8
    tokens = torch.arange(places, device=device) % size
    logits = hidden @ weight.mT
    found = ppo_core.hidden_logprobs(hidden, weight, tokens, temperature=temperature)
    close(found.logprobs, ppo_core.token_logprobs(logits, tokens, temperature=temperature))
    close(found.entropies, ppo_core.entropy(logits, temperature=temperature))


@EXAMPLES
@given(x=batches(REWARDS, REWARDS))
def test_one_of_two_answers_is_preferred(x, device):
    # The probabilities add up to 1, and the loss is minus the logarithm of one.
    one, other, _ = on(device, x)
    close(ppo_core.preference_probability(one, other) + ppo_core.preference_probability(other, one), 1.0)
    loss, backwards = ppo_core.reward_model_loss(one, other), ppo_core.reward_model_loss(other, one)
    close(loss, -ppo_core.preference_probability(one, other).log())
    close(loss - backwards, other - one)


@EXAMPLES
@given(
    x=batches(*(LOGPROBS,) * 4), more=eighths(1, 3), shift=eighths(-20, 20), beta=st.sampled_from([0.1, 1.0])
)
def test_dpo_rewards_the_chosen_answer_and_sees_differences_alone(x, more, shift, beta, device):
    # The constant that stands for the partition function is the same for both answers of a prompt.
    chosen, rejected, *references, _ = on(device, x)
    loss = ppo_core.dpo_loss(chosen, rejected, *references, beta=beta)
    assert (ppo_core.dpo_loss(chosen + more, rejected, *references, beta=beta) < loss).all()
    assert (ppo_core.dpo_loss(chosen, rejected + more, *references, beta=beta) > loss).all()
    assert (loss > 0).all()
    close(ppo_core.dpo_loss(chosen + shift, rejected + shift, *references, beta=beta), loss)


# --- reductions ---


@EXAMPLES
@given(x=batches(REWARDS, REWARDS), mode=MODES, factor=eighths(-3, 3))
def test_a_reduction_is_linear(x, mode, factor, device):
    # The weight of a token is one of the mask, not of the losses.
    losses, others, mask = on(device, x)
    once, other, both = (
        ppo_core.aggregate(part, mask, mode=mode) for part in (losses, others, losses + factor * others)
    )
    close(both, once + factor * other)


@EXAMPLES
@given(x=batches(REWARDS), mode=MODES, cut=st.integers(0, 3))
def test_micro_batches_add_up_to_the_batch(x, mode, cut, device):
    # With the denominator of the whole, in value and gradient; a piece may be empty.
    losses, mask = on(device, x)
    losses.requires_grad_()
    pieces = [slice(None, cut), slice(cut, None)]
    whole = sum(ppo_core.batch_count(mask[piece], mode=mode) for piece in pieces)
    assert torch.equal(whole, ppo_core.batch_count(mask, mode=mode))
    found = sum(
        ppo_core.aggregate(losses[piece], mask[piece], mode=mode, denominator=whole.clamp(min=1))
        for piece in pieces
    )
    expected = ppo_core.aggregate(losses, mask, mode=mode)
    close(found, expected)
    close(torch.autograd.grad(found, losses)[0], torch.autograd.grad(expected, losses)[0])


@EXAMPLES
@given(x=batches(ANY_REWARDS), mode=st.sampled_from(["token_mean", "sequence_mean_token_mean"]))
def test_a_mean_lies_between_the_least_and_the_largest(x, mode, device):
    # The weights of the tokens are positive and add up to 1.
    losses, mask = on(device, x)
    found = ppo_core.aggregate(losses, mask, mode=mode)
    if mask.any():
        assert losses[mask].min() - 1e-14 <= found <= losses[mask].max() + 1e-14
    else:
        assert found == 0


@EXAMPLES
@given(x=batches(REWARDS))
def test_the_modes_differ_by_the_lengths_of_the_sequences_alone(x, device):
    # Where all are equally long, a mean of means is the mean, and a sum is a length times a mean.
    losses, _ = on(device, x)
    mask = torch.ones_like(losses, dtype=torch.bool)
    mean, of_means, of_sums = (
        ppo_core.aggregate(losses, mask, mode=mode)
        for mode in ("token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum")
    )
    close(of_means, mean)
    close(of_sums, losses.shape[-1] * mean)
    close(ppo_core.masked_mean(losses, mask), mean)


@EXAMPLES
@given(x=batches(*(LOGPROBS,) * 3, *(REWARDS,) * 4), mode=MODES, clips=CLIPS)
def test_the_objective_is_the_sum_of_its_terms(x, mode, clips, device):
    # With every coefficient at 0 the policy is left; the terms do not depend on the coefficients.
    *tensors, mask = on(device, x)

    def objective(value_coef, entropy_coef, beta):
        weights = {"value_coef": value_coef, "entropy_coef": entropy_coef, "beta": beta}
        return ppo_core.ppo_objective(*tensors, mask, **weights, mode=mode, **clips)

    bare, whole = objective(0, 0, 0), objective(0.5, 0.25, 2)
    assert torch.equal(bare.loss, bare.policy)
    assert whole[1:] == bare[1:]
    close(whole.loss, bare.policy + 0.5 * bare.value - 0.25 * bare.entropy + 2 * bare.kl)


# --- diagnostics ---


@EXAMPLES
@given(x=batches(LOGITS), shift=eighths(-20, 20))
def test_the_effective_sample_is_a_part_of_the_whole(x, shift, device):
    # At least one sample and at most all, which equal weights are worth; a common factor of the weights cancels.
    log_weights, mask = on(device, x)
    mask[0, 0] = True
    found = ppo_core.effective_sample_size(log_weights, mask)
    assert (1 - 1e-14) / mask.sum() <= found <= 1 + 1e-14
    close(ppo_core.effective_sample_size(log_weights + shift, mask), found)
    close(ppo_core.effective_sample_size(torch.full_like(log_weights, shift), mask), 1.0)


@EXAMPLES
@given(x=batches(LOGPROBS, LOGPROBS, REWARDS), clips=CLIPS, dual=st.sampled_from([None, 1.5]))
def test_the_clip_fractions_are_parts_of_one_whole(x, clips, dual, device):
    # A token is clipped on one side at most, and on none while nothing has changed.
    new, old, A, mask = on(device, x)
    found = torch.stack(ppo_core.clip_fractions(new, old, A, mask, **clips, dual_clip=dual))
    assert (found >= 0).all() and found.sum() <= 1 + 1e-15
    assert not any(ppo_core.clip_fractions(new, new, A, mask, **clips, dual_clip=dual))


@EXAMPLES
@given(x=batches(LOGPROBS, LOGPROBS))
def test_the_approximate_kl_is_never_negative(x, device):
    # A mean of k3 is not.
    new, old, mask = on(device, x)
    assert ppo_core.approximate_kl(new, old, mask) >= 0
    assert ppo_core.approximate_kl(new, new, mask) == 0


@EXAMPLES
@given(x=batches(REWARDS, REWARDS), shift=REWARDS)
def test_no_critic_explains_more_than_everything(x, shift, device):
    # Values that miss the returns by a constant explain all of their variance, and constant ones nothing.
    values, returns, mask = on(device, x)
    found, whole, nothing = (
        ppo_core.explained_variance(guess, returns, mask)
        for guess in (values, returns + shift, torch.full_like(returns, shift))
    )
    if returns[mask].unique().numel() > 1:
        assert found <= 1
        close(whole, 1.0)
        close(nothing, 0.0)
    else:
        assert found.isnan() and whole.isnan() and nothing.isnan()


@EXAMPLES
@given(x=batches(LOGPROBS, LOGPROBS), q=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_a_quantile_rises_with_its_share(x, q, device):
    # From the least ratio to the largest.
    new, old, mask = on(device, x)
    mask[0, 0] = True
    rho = ppo_core.ratio(new, old)[mask]
    in_order = [ppo_core.ratio_quantiles(new, old, mask, q=share).item() for share in (0, *sorted(q), 1)]
    assert in_order == sorted(in_order)
    assert in_order[0] == rho.min() and in_order[-1] == rho.max()


# --- packed rows ---

# Hidden states have a dimension behind the tokens; test_hidden_losses packs them.
PACKED = [sample for sample in SAMPLES if {"sequence_ids", "hidden"} & {*sample.tensors} == {"sequence_ids"}]
# What has one element for each answer of a padded batch, and a place for each token of a packed row.
PER_SEQUENCE = ("scores", "bootstrap", "terminated")


def test_every_function_that_packs_is_tried():
    packing = {
        name
        for name in ppo_core.__all__
        if "sequence_ids" in inspect.signature(getattr(ppo_core, name)).parameters
    }
    assert {sample.name for sample in PACKED} == packing - {"batch_count", "hidden_policy_loss"}


@st.composite
def layouts(draw):
    """Draw the lengths of some sequences, and which of them stand in which packed row."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    rows = [[0]]
    for sequence in range(1, len(lengths)):
        if draw(st.booleans()):
            rows.append([])
        rows[-1].append(sequence)
    return lengths, rows


def in_rows(x, lengths, rows, fill):
    """Pack a padded tensor; what pads the packed rows is `fill`."""
    packed = [torch.cat([x[sequence, : lengths[sequence]] for sequence in row]) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(packed, batch_first=True, padding_value=fill)


def numbers_in_rows(lengths, rows, device):
    """Number the sequences of each row 7, 8, 7, 8: equal numbers that are no neighbours are two sequences."""
    numbers = [
        torch.cat([torch.full((lengths[sequence],), 7 + k % 2) for k, sequence in enumerate(row)])
        for row in rows
    ]
    return torch.nn.utils.rnn.pad_sequence(numbers, batch_first=True, padding_value=-1).to(device)


def value_and_gradients(sample, tensors, weights):
    """Return the result, and the gradients of its weighted sum over the counted tokens."""
    leaves = {name: tensors[name].detach().clone().requires_grad_() for name in sample.gradients}
    result = sample({**tensors, **leaves})
    total = result.sum() if sample.reduces else torch.where(tensors["mask"], result * weights, 0.0).sum()
    gradients = torch.autograd.grad(total, list(leaves.values())) if leaves else ()
    return result.detach(), gradients


@pytest.mark.parametrize("sample", PACKED, ids=lambda sample: f"{sample}-{len(sample.tensors)}")
@settings(EXAMPLES, max_examples=10)
@given(layout=layouts(), seed=st.integers(0, 9))
def test_packed_rows_say_the_same_as_padded_ones(sample, layout, seed, device):
    # How sequences lie in memory is no concern of a loss; values, gradients and what is written once for each.
    lengths, rows = layout
    shape = len(lengths), max(lengths)
    padded = replace(
        sample,
        tensors=tuple(name for name in sample.tensors if name != "sequence_ids"),
        per_answer=tuple(name for name in PER_SEQUENCE if name in sample.tensors),
    )
    tensors = to_tensors(draw(padded, shape, seed), shape, device, sample=padded)
    held = torch.arange(shape[1], device=device) < torch.tensor(lengths, device=device).unsqueeze(-1)
    mask = tensors["mask"] & held
    # A score needs a token that it is paid at.
    mask[:, 0] |= "scores" in tensors
    tensors |= {"mask": mask, **{n: torch.where(mask, tensors[n], 0.0) for n in {"rewards"} & tensors.keys()}}

    last = mask & (mask.long().flip(-1).cumsum(-1).flip(-1) == 1)
    packed = {"sequence_ids": numbers_in_rows(lengths, rows, device)}
    for name, x in tensors.items():
        fill = False if x.dtype == torch.bool else torch.nan
        if name in padded.per_answer:
            x = torch.where(last, x.unsqueeze(-1), torch.tensor(fill, dtype=x.dtype, device=device))
        packed[name] = in_rows(x, lengths, rows, fill) if x.ndim else x

    weights = torch.linspace(1, 2, mask.numel(), dtype=torch.float64, device=device).reshape(shape)
    expected, slopes = value_and_gradients(padded, tensors, weights)
    found, packed_slopes = value_and_gradients(sample, packed, in_rows(weights, lengths, rows, torch.nan))
    close(found, expected if sample.reduces else in_rows(expected, lengths, rows, 0.0))
    for in_packed, in_padded in zip(packed_slopes, slopes, strict=True):
        close(in_packed, in_rows(in_padded, lengths, rows, 0.0))


@settings(EXAMPLES, max_examples=20)
@given(layout=layouts(), mode=MODES)
def test_a_batch_counts_the_same_in_packed_rows(layout, mode, device):
    # It has no losses, and so no sample; a token in three is left out.
    lengths, rows = layout
    mask = torch.arange(len(lengths) * max(lengths), device=device).reshape(len(lengths), -1) % 3 != 1
    mask &= torch.arange(max(lengths), device=device) < torch.tensor(lengths, device=device).unsqueeze(-1)
    found = ppo_core.batch_count(
        in_rows(mask, lengths, rows, False), mode=mode, sequence_ids=numbers_in_rows(lengths, rows, device)
    )
    assert found == ppo_core.batch_count(mask, mode=mode)
