import math

import pytest
import torch

from ppo_core import clip_ratio, clipped_surrogate, surrogate


def slope(function, rho, A, device, **parameters):
    """Return value and slope in the ratio, at one point."""
    rho = torch.tensor(rho, dtype=torch.float64, device=device, requires_grad=True)
    value = function(rho, torch.tensor(A, dtype=torch.float64, device=device), **parameters)
    (gradient,) = torch.autograd.grad(value, rho)
    return value.item(), gradient.item()


def test_surrogate_by_hand(device):
    assert slope(surrogate, 1.6, 2.0, device) == (3.2, 2)
    assert slope(surrogate, 0.5, -3.0, device) == (-1.5, -3)


def test_clip_ratio_by_hand(device):
    rho = torch.tensor([0.5, 0.75, 1.0, 1.25, 1.6], dtype=torch.float64, device=device, requires_grad=True)
    clipped = clip_ratio(rho, epsilon=0.25)
    assert clipped.tolist() == [0.75, 0.75, 1.0, 1.25, 1.25]
    # On the edges the slope is that of the band.
    (gradient,) = torch.autograd.grad(clipped.sum(), rho)
    assert gradient.tolist() == [0, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("rho", "A", "value", "gradient"),
    [
        # A good token: rises up to the ceiling, then flat. Not bounded below.
        (0.1, 2.0, 0.2, 2),
        (1.0, 2.0, 2.0, 2),
        (1.25, 2.0, 2.5, 2),
        (1.5, 2.0, 2.5, 0),
        # A bad token: flat below the floor, then falls without limit.
        (0.5, -2.0, -1.5, 0),
        (0.75, -2.0, -1.5, -2),
        (1.0, -2.0, -2.0, -2),
        (9.0, -2.0, -18.0, -2),
        # A token as expected asks for nothing, whatever its ratio.
        (0.1, 0.0, 0.0, 0),
        (9.0, 0.0, 0.0, 0),
        (9.0, -0.0, 0.0, 0),
    ],
)
def test_clipped_surrogate_by_hand(rho, A, value, gradient, device):
    assert slope(clipped_surrogate, rho, A, device, epsilon=0.25) == (value, gradient)


@pytest.mark.parametrize(
    ("rho", "A", "value", "gradient"),
    [
        (math.inf, 2.0, 2.5, 0),
        (math.inf, 0.0, 0.0, 0),
        (math.inf, -2.0, -math.inf, -2),
        (0.0, 2.0, 0.0, 2),
        (0.0, -2.0, -1.5, 0),
    ],
)
def test_clipped_surrogate_at_the_ends_of_the_axis(rho, A, value, gradient, device):
    assert slope(clipped_surrogate, rho, A, device, epsilon=0.25) == (value, gradient)


@pytest.mark.parametrize("epsilon", [1e-6, 0.2, 0.999999])
def test_clipped_surrogate_equals_the_minimum_bit_for_bit(epsilon, device):
    rho = torch.linspace(0, 3, 601, dtype=torch.float64, device=device).repeat(7)
    A = torch.linspace(-3, 3, 7, dtype=torch.float64, device=device).repeat_interleave(601)
    minimum = torch.minimum(rho * A, rho.clamp(1 - epsilon, 1 + epsilon) * A)
    assert torch.equal(clipped_surrogate(rho, A, epsilon=epsilon), minimum)


def test_with_a_tiny_epsilon_the_first_step_is_a_policy_gradient_step(device):
    assert slope(clipped_surrogate, 1.0, 2.0, device, epsilon=1e-6) == (2, 2)
    # After it a move to the improving side is clipped, a move to the wrong side keeps its gradient.
    assert slope(clipped_surrogate, 1.001, 2.0, device, epsilon=1e-6)[1] == 0
    assert slope(clipped_surrogate, 0.999, 2.0, device, epsilon=1e-6)[1] == 2


# --- two widths, and the dual clip ---


def test_a_wide_ceiling_by_hand(device):
    rho = torch.tensor(
        [0.5, 0.75, 1.0, 2.0, 3.0, 4.0], dtype=torch.float64, device=device, requires_grad=True
    )
    clipped = clip_ratio(rho, epsilon=0.25, epsilon_high=2)
    assert clipped.tolist() == [0.75, 0.75, 1, 2, 3, 3]
    (gradient,) = torch.autograd.grad(clipped.sum(), rho)
    assert gradient.tolist() == [0, 1, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("rho", "A", "value", "gradient"),
    [
        # A good token: the ceiling is 1 + 2, past the symmetric 1.25.
        (2.0, 2.0, 4.0, 2),
        (3.0, 2.0, 6.0, 2),
        (3.5, 2.0, 6.0, 0),
        (0.1, 2.0, 0.2, 2),
        # A bad token: the floor is 1 - 1/4, and the dual clip at 4 does not care for the ceiling.
        (0.5, -2.0, -1.5, 0),
        (3.5, -2.0, -7.0, -2),
        (4.0, -2.0, -8.0, -2),
        (4.5, -2.0, -8.0, 0),
        (math.inf, -2.0, -8.0, 0),
        # A token as expected.
        (4.5, 0.0, 0.0, 0),
        (4.5, -0.0, 0.0, 0),
    ],
)
def test_two_widths_and_a_dual_clip_by_hand(rho, A, value, gradient, device):
    found = slope(clipped_surrogate, rho, A, device, epsilon=0.25, epsilon_high=2, dual_clip=4)
    assert found == (value, gradient)


def test_a_dual_clip_inside_the_band_cuts_bad_tokens_alone(device):
    options = {"epsilon": 0.5, "dual_clip": 1.25}
    assert slope(clipped_surrogate, 1.4, -2.0, device, **options) == (-2.5, 0)
    assert slope(clipped_surrogate, 1.4, 2.0, device, **options) == (2.8, 2)


@pytest.mark.parametrize("high", [0.05, 0.28, 3.0])
@pytest.mark.parametrize("c", [1.01, 2.0, 30.0])
def test_it_equals_the_formula_bit_for_bit(high, c, device):
    rho = torch.linspace(0, 6, 601, dtype=torch.float64, device=device).repeat(7)
    A = torch.linspace(-3, 3, 7, dtype=torch.float64, device=device).repeat_interleave(601)
    smaller = torch.minimum(rho * A, rho.clamp(1 - 0.2, 1 + high) * A)
    expected = torch.where(A < 0, torch.maximum(smaller, c * A), smaller)
    found = clipped_surrogate(rho, A, epsilon=0.2, epsilon_high=high, dual_clip=c)
    assert torch.equal(found, expected)


def test_a_width_of_its_own_that_is_the_same_changes_nothing(device):
    rho = torch.linspace(0, 3, 301, device=device)
    A = torch.ones_like(rho)
    same = {"epsilon": 0.2, "epsilon_high": 0.2}
    assert torch.equal(clip_ratio(rho, **same), clip_ratio(rho, epsilon=0.2))
    assert torch.equal(clipped_surrogate(rho, A, **same), clipped_surrogate(rho, A, epsilon=0.2))


def test_a_nan_passes_every_clip(device):
    nan, one = torch.tensor([math.nan], device=device), torch.ones(1, device=device)
    options = {"epsilon": 0.2, "epsilon_high": 0.3, "dual_clip": 3}
    for rho, A in ((nan, one), (nan, -one), (one, nan)):
        assert clipped_surrogate(rho, A, **options).isnan().all()


TWO = torch.ones(2)


@pytest.mark.parametrize("bad", [0, -0.2, math.inf, math.nan])
@pytest.mark.parametrize(
    "call",
    [
        lambda high: clip_ratio(TWO, epsilon=0.2, epsilon_high=high),
        lambda high: clipped_surrogate(TWO, TWO, epsilon=0.2, epsilon_high=high),
    ],
)
def test_a_bad_upper_width(call, bad):
    with pytest.raises(ValueError) as raised:
        call(bad)
    assert str(raised.value) == f"epsilon_high must be finite and above 0, got {bad}"


@pytest.mark.parametrize("bad", [1, 0.5, -2.0, math.inf, math.nan])
def test_a_bad_dual_clip(bad):
    with pytest.raises(ValueError) as raised:
        clipped_surrogate(TWO, TWO, epsilon=0.2, dual_clip=bad)
    assert str(raised.value) == (
        f"dual_clip must be finite and above 1, got {bad}; it caps the ratio of bad tokens, which begins at 1; "
        "3 is usual"
    )


@pytest.mark.parametrize("name", ["epsilon_high", "dual_clip"])
def test_the_options_are_plain_numbers(name):
    for bad, kind in ((True, "bool"), (torch.tensor(2.0), "Tensor"), ("2", "str")):
        with pytest.raises(TypeError) as raised:
            clipped_surrogate(TWO, TWO, epsilon=0.2, **{name: bad})
        assert str(raised.value) == f"{name} must be a plain number, got {kind}; write a float or an int"


def test_the_lower_width_keeps_its_limit_beside_an_upper_one():
    with pytest.raises(ValueError, match=r"^epsilon must lie strictly between 0 and 1, got 1\.5"):
        clip_ratio(TWO, epsilon=1.5, epsilon_high=2.0)


def test_compiled_functions_take_other_options():
    compiled = torch.compile(clipped_surrogate, fullgraph=True, backend="aot_eager")
    rho, A = torch.linspace(0, 5, 50).double(), torch.tensor([2.0, -3.0]).double().repeat(25)
    for epsilon, high, c in ((0.1, 0.2, 2.0), (0.2, 0.3, 3.0), (0.3, 1.5, 1.5), (0.2, 0.25, 2.5)):
        options = {"epsilon": epsilon, "epsilon_high": high, "dual_clip": c}
        assert torch.equal(compiled(rho, A, **options), clipped_surrogate(rho, A, **options))
