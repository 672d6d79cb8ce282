import math

import pytest
import torch

from ppo_core import clipped_surrogate, policy_loss, ratio


def loss_and_gradient(new, old, A, device, dtype=torch.float64, epsilon=0.25, **arguments):
    new, old, A = (torch.tensor(x, dtype=dtype, device=device) for x in (new, old, A))
    new.requires_grad_()
    loss = policy_loss(new, old, A, epsilon=epsilon, **arguments)
    (gradient,) = torch.autograd.grad(loss.sum(), new)
    return loss.tolist(), gradient.tolist()


def test_by_hand(device):
    # Ratios 1.5, 1.5, 0.5, 0.5, 1 against advantages 2, -2, 2, -2, 3.
    new = [math.log(x) for x in (1.5, 1.5, 0.5, 0.5, 1.0)]
    loss, gradient = loss_and_gradient(new, [0.0] * 5, [2.0, -2.0, 2.0, -2.0, 3.0], device)
    assert loss == pytest.approx([-2.5, 3.0, -1.0, 1.5, -3.0], rel=1e-15)
    # Minus the ratio times the advantage, 0 where the clip is active.
    assert gradient == pytest.approx([0, 3.0, -1.0, 0, -3.0], rel=1e-15)


def test_it_is_the_negated_clipped_surrogate_of_the_ratio(device):
    new = torch.linspace(-2, 2, 401, dtype=torch.float64, device=device).repeat(3)
    A = torch.tensor([-1.5, 0.0, 2.5], dtype=torch.float64, device=device).repeat_interleave(401)
    old = torch.zeros_like(new)
    expected = -clipped_surrogate(ratio(new, old), A, epsilon=0.2)
    assert torch.equal(policy_loss(new, old, A, epsilon=0.2), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("far", [79.0, 80.0, 81.0, 88.0, 89.0, 1000.0, math.inf])
def test_past_the_ceiling_the_gradient_is_zero_however_far(far, dtype, device):
    assert loss_and_gradient([far], [0.0], [2.0], device, dtype) == ([-2.5], [0])
    assert loss_and_gradient([far], [0.0], [0.0], device, dtype) == ([0], [0])


def test_a_bad_token_that_overflows_has_an_infinite_loss(device):
    assert loss_and_gradient([1000.0], [0.0], [-2.0], device) == ([math.inf], [math.inf])
    # Short of that it is the formula, past 80 as before it.
    loss, gradient = loss_and_gradient([85.0], [0.0], [-2.0], device)
    assert loss == gradient == pytest.approx([2 * math.exp(85)], rel=1e-14)


def test_a_token_that_became_impossible(device):
    assert loss_and_gradient([-1000.0, -1000.0], [0.0, 0.0], [2.0, -2.0], device) == ([0, 1.5], [0, 0])


def test_under_the_mask_even_a_bad_token_may_overflow(device):
    mask = torch.tensor([True, False], device=device)
    assert loss_and_gradient([0.0, 1000.0], [0.0, 0.0], [-2.0, -2.0], device, mask=mask) == ([2, 0], [2, 0])


# --- two widths, the dual clip, the bound on the log-ratio ---

FAR = [79.0, 88.0, 89.0, 700.0, 710.0, 1000.0, 1e30, math.inf]


def test_two_widths_and_a_dual_clip_by_hand(device):
    # Ratios 2 and 6 against 2 and -2, with the ceiling 3, the floor 3/4 and the dual clip 4; then below.
    new = [math.log(x) for x in (2.0, 6.0, 2.0, 6.0, 0.5, 0.5)]
    A = [2.0, 2.0, -2.0, -2.0, 2.0, -2.0]
    loss, gradient = loss_and_gradient(new, [0.0] * 6, A, device, epsilon_high=2, dual_clip=4)
    assert loss == pytest.approx([-4, -6, 4, 8, -1, 1.5], rel=1e-15)
    assert gradient == pytest.approx([-4, 0, 4, 0, -1, 0], rel=1e-15)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("far", FAR)
def test_past_the_dual_clip_the_gradient_is_zero_however_far(far, dtype, device):
    assert loss_and_gradient([far], [0.0], [-2.0], device, dtype, dual_clip=3.0) == ([6.0], [0])
    # The dual clip is for bad tokens; good ones have the ceiling.
    assert loss_and_gradient([far], [0.0], [2.0], device, dtype, dual_clip=3.0) == ([-2.5], [0])
    assert loss_and_gradient([far], [0.0], [0.0], device, dtype, dual_clip=3.0) == ([0], [0])


@pytest.mark.parametrize("bound", [1e6, 1e30, 2e38, 3e38])
@pytest.mark.parametrize("far", FAR[1:])
def test_no_bound_is_too_far(bound, far, device):
    # 3e38 is e^88.6, and the largest float32 is e^88.7.
    def found(A, **options):
        return loss_and_gradient([far], [0.0], [A], device, torch.float32, **options)

    ratio = math.exp(far) if far < 700 else math.inf
    for A, options in ((1.0, {"epsilon_high": bound}), (-1.0, {"dual_clip": bound})):
        (loss,), (gradient,) = found(A, **options)
        assert loss == pytest.approx(-A * min(ratio, bound), rel=1e-5)
        assert gradient == pytest.approx(-A * ratio if ratio < bound else 0, rel=1e-5)


def test_a_bound_on_the_log_ratio_by_hand(device):
    # Log-ratios 3 and -3 are moved to 1 and -1; with a bad token the loss stops at e and nothing pulls it back.
    new, A = [3.0, -3.0, 3.0, -3.0, 0.5], [-2.0, 2.0, 2.0, -2.0, -2.0]
    loss, gradient = loss_and_gradient(new, [0.0] * 5, A, device, log_bound=1.0)
    e, root = math.e, math.exp(0.5)
    assert loss == pytest.approx([2 * e, -2 / e, -2.5, 1.5, 2 * root], rel=1e-15)
    assert gradient == pytest.approx([0, 0, 0, 0, 2 * root], rel=1e-15)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("far", FAR)
def test_beyond_the_bound_the_gradient_is_zero_however_far(far, dtype, device):
    (loss,), (gradient,) = loss_and_gradient([far], [0.0], [-2.0], device, dtype, log_bound=20)
    assert loss == pytest.approx(2 * math.exp(20), rel=1e-6) and gradient == 0
    assert loss_and_gradient([-far], [0.0], [-2.0], device, dtype, log_bound=20) == ([1.5], [0])
    (loss,), (gradient,) = loss_and_gradient([-far], [0.0], [2.0], device, dtype, log_bound=20)
    assert loss == pytest.approx(-2 * math.exp(-20), rel=1e-6) and gradient == 0


def test_inside_the_bound_nothing_changes(device):
    new = torch.linspace(-2, 2, 401, dtype=torch.float64, device=device).repeat(2)
    A = torch.tensor([-1.5, 2.5], dtype=torch.float64, device=device).repeat_interleave(401)
    old = torch.zeros_like(new)
    assert torch.equal(
        policy_loss(new, old, A, epsilon=0.2, log_bound=2), policy_loss(new, old, A, epsilon=0.2)
    )


def test_under_the_mask_nothing_is_bounded_or_clipped(device):
    mask = torch.tensor([True, False, False], device=device)
    options = {"epsilon_high": 0.5, "dual_clip": 3.0, "log_bound": 20.0, "mask": mask}
    loss, gradient = loss_and_gradient([0.0, math.nan, math.inf], [0.0] * 3, [-2.0] * 3, device, **options)
    assert (loss, gradient) == ([2, 0, 0], [2, 0, 0])


def test_a_nan_passes_every_bound(device):
    options = {"epsilon_high": 0.5, "dual_clip": 3.0, "log_bound": 20.0}
    for A in (2.0, -2.0, 0.0):
        (loss,), _ = loss_and_gradient([math.nan], [0.0], [A], device, **options)
        assert math.isnan(loss)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"epsilon_high": 0}, "epsilon_high must be finite and above 0, got 0"),
        ({"log_bound": -1}, "log_bound must be finite and above 0, got -1"),
        ({"dual_clip": 1}, "dual_clip must be finite and above 1, got 1; it caps the ratio of bad tokens, which "
         "begins at 1; 3 is usual"),
    ],
)  # fmt: skip
def test_bad_options(options, text):
    with pytest.raises(ValueError) as raised:
        policy_loss(torch.ones(1), torch.ones(1), torch.ones(1), epsilon=0.2, **options)
    assert str(raised.value) == text


def test_a_compiled_loss_takes_other_options():
    compiled = torch.compile(policy_loss, fullgraph=True, backend="aot_eager")
    new = torch.linspace(-5, 100, 50)
    old, A = torch.zeros_like(new), torch.tensor([2.0, -3.0]).repeat(25)
    for high, c, bound in ((0.2, 2.0, 20.0), (0.3, 3.0, 10.0), (1.5, 1.5, 90.0), (0.25, 2.5, 1.0)):
        options = {"epsilon": 0.2, "epsilon_high": high, "dual_clip": c, "log_bound": bound}
        torch.testing.assert_close(compiled(new, old, A, **options), policy_loss(new, old, A, **options))
