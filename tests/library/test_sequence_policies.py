import math

import pytest
import torch

from ppo_core import aggregate, policy_loss, sequence_policy_loss

from .packed import agrees

NAMES = ("logprobs", "old_logprobs", "advantages")


def tensor(x, device, **options):
    return torch.tensor(x, dtype=torch.float64, device=device, **options)


def bools(x, device):
    return torch.tensor(x, dtype=torch.bool, device=device)


def loss_and_gradient(ratios, A, mask, device, **arguments):
    new = tensor(ratios, device).log().requires_grad_()
    arguments = {"epsilon": 0.25, **arguments}
    loss = sequence_policy_loss(
        new, torch.zeros_like(new), tensor(A, device), bools(mask, device), **arguments
    )
    (gradient,) = torch.autograd.grad(loss.sum(), new)
    return loss.flatten().tolist(), gradient.flatten().tolist()


def test_by_hand(device):
    # s = 1 of ratios 4 and 1/4 with A = 3: inside the band, though each token is far outside.
    # s = 2 of ratios 2, 8, 1/2 with A = 1, -1, -1: clipped at 1.25 for the good token, not for the bad ones.
    ratios = [[4.0, 0.25, 7.0], [2.0, 8.0, 0.5]]
    A = [[3.0, 3.0, 9.0], [1.0, -1.0, -1.0]]
    loss, gradient = loss_and_gradient(ratios, A, [[1, 1, 0], [1, 1, 1]], device)
    assert loss == pytest.approx([-3, -3, 0, -1.25, 2, 2], rel=1e-15)
    # Row 1: two losses of slope -1 * 3 / 2. Row 2: two losses of slope 2 * 1 / 3 in each of the tokens.
    assert gradient == pytest.approx([-3, -3, 0, 4 / 3, 4 / 3, 4 / 3], rel=1e-14)


def test_two_widths_by_hand(device):
    # s = 2 stays below 1 + 1.5; s = 3 does not; s = 1/2 is below the floor 3/4.
    ratios = [[2.0, 2.0], [1.0, 9.0], [1.0, 0.25]]
    for A, losses, slopes in ((2.0, [-4, -5, -1], [-4, 0, -1]), (-2.0, [4, 6, 1.5], [4, 6, 0])):
        loss, gradient = loss_and_gradient(ratios, [[A, A]] * 3, [[1, 1]] * 3, device, epsilon_high=1.5)
        assert loss == pytest.approx([x for x in losses for _ in range(2)], rel=1e-14)
        assert gradient == pytest.approx([x for x in slopes for _ in range(2)], rel=1e-14)


def test_the_mean_over_sequences_of_token_means_is_the_objective_of_the_paper(device):
    # Equation 5: the mean over answers of min(s A, clip(s) A). Ratios of the answers 2 and 1/2, A = -1 and 3;
    # lengths 2 and 1: -(2 * -1 + 1/2 * 3) / 2 = 1/4.
    new = tensor([[4.0, 1.0], [0.5, 1.0]], device).log()
    mask = bools([[1, 1], [1, 0]], device)
    A = tensor([[-1.0, -1.0], [3.0, 3.0]], device)
    losses = sequence_policy_loss(new, torch.zeros_like(new), A, mask, epsilon=0.2)
    loss = aggregate(losses, mask, mode="sequence_mean_token_mean")
    assert loss.item() == pytest.approx(0.25, rel=1e-14)


@pytest.mark.parametrize("A", [-1.5, 2.0])
def test_with_one_advantage_each_token_gets_the_gradient_of_the_token_form(A, device):
    # Equations 13 and 14 of the paper: each token has the value s and its own gradient, s A. Summed over the
    # sequence our losses give the same, n times s A / n.
    torch.manual_seed(0)
    new = (torch.randn(3, 4, dtype=torch.float64, device=device) / 3).requires_grad_()
    mask = bools([[1, 1, 0, 1], [1, 1, 1, 1], [0, 1, 0, 0]], device)
    advantages, old = torch.full_like(new, A), torch.zeros_like(new)
    (found,) = torch.autograd.grad(sequence_policy_loss(new, old, advantages, mask, epsilon=0.3).sum(), new)
    s = torch.stack([new[row][mask[row]].mean().exp().expand(4) for row in range(3)]).detach()
    own = s * torch.exp(new - new.detach())
    token_form = -torch.minimum(own * A, own.clamp(0.7, 1.3) * A)
    (expected,) = torch.autograd.grad(token_form[mask].sum(), new)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=0)
    assert (expected[mask] != 0).any()


def test_with_several_advantages_each_token_gets_their_mean(device):
    # All inside the band: minus s times the mean of 1, 2 and 6, for every token.
    _, gradient = loss_and_gradient([[1.0, 1.0, 1.0]], [[1.0, 2.0, 6.0]], [[1, 1, 1]], device)
    assert gradient == pytest.approx([-3, -3, -3], rel=1e-15)


def test_a_sequence_of_one_token_is_that_token(device):
    torch.manual_seed(0)
    new, old, A = torch.randn(3, 50, 1, dtype=torch.float64, device=device)
    every = torch.ones_like(new, dtype=torch.bool)
    options = {"epsilon": 0.2, "epsilon_high": 0.4}
    assert torch.equal(
        sequence_policy_loss(new, old, A, every, **options), policy_loss(new, old, A, **options)
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("options", [{"epsilon": 0.2}, {"epsilon": 0.1, "epsilon_high": 0.5}])
def test_packed_equals_padded(options, seed, device):
    assert agrees(sequence_policy_loss, NAMES, seed, device, **options) > 4


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("packed", [False, True], ids=["a row", "packed"])
def test_where_the_ratio_of_a_sequence_overflows(packed, dtype, device):
    # Mean log-ratios 2000 and -2000. Good tokens are clipped at 1.25 and have no gradient; bad ones are at the
    # floor 3/4; the third sequence has no counted token.
    new = torch.tensor([[3000.0, 1000.0], [-2000.0, -2000.0], [math.nan, math.inf]], device=device).to(dtype)
    A = torch.tensor([[2.0, 2.0], [-2.0, -2.0], [1.0, 1.0]], dtype=dtype, device=device)
    mask = bools([[1, 1], [1, 1], [0, 0]], device)
    ids = None
    if packed:
        new, A, mask = new.reshape(1, 6), A.reshape(1, 6), mask.reshape(1, 6)
        ids = torch.tensor([[0, 0, 1, 1, 2, 2]], device=device)
    new.requires_grad_()
    loss = sequence_policy_loss(new, torch.zeros_like(new), A, mask, epsilon=0.25, sequence_ids=ids)
    (gradient,) = torch.autograd.grad(loss.sum(), new)
    assert loss.flatten().tolist() == [-2.5, -2.5, 1.5, 1.5, 0, 0]
    assert gradient.flatten().tolist() == [0] * 6


def test_a_bad_sequence_that_overflows_has_an_infinite_loss(device):
    loss, _ = loss_and_gradient([[math.inf, 1.0]], [[-1.0, -1.0]], [[1, 1]], device)
    assert loss == [math.inf, math.inf]


def test_a_nan_in_a_sequence_stays_in_it(device):
    new = tensor([[0.0, math.nan], [0.0, 0.0]], device)
    every = bools([[1, 1], [1, 1]], device)
    loss = sequence_policy_loss(new, torch.zeros_like(new), torch.ones_like(new), every, epsilon=0.2)
    assert loss.isnan().tolist() == [[True, True], [False, False]]


def test_an_empty_mask_gives_zero(device):
    loss, gradient = loss_and_gradient([[2.0, math.inf]], [[1.0, math.nan]], [[0, 0]], device)
    assert loss == gradient == [0, 0]


GOOD = {
    "logprobs": torch.ones(2, 3),
    "old_logprobs": torch.ones(2, 3),
    "advantages": torch.ones(2, 3),
    "mask": torch.ones(2, 3, dtype=torch.bool),
    "epsilon": 0.2,
}
SHAPE = "nothing is broadcast: expand or index one of them first"


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"advantages": torch.ones(2, 1)}, ValueError,
         f"logprobs and advantages must have the same shape, got [2, 3] and [2, 1]; {SHAPE}"),
        ({"mask": torch.ones(2, 1, dtype=torch.bool)}, ValueError,
         f"logprobs and mask must have the same shape, got [2, 3] and [2, 1]; {SHAPE}"),
        ({"mask": torch.ones(2, 3)}, TypeError,
         "mask must be a bool tensor (True: the token counts), got torch.float32; write mask.bool()"),
        ({"sequence_ids": torch.zeros(2, 3, dtype=torch.int32)}, TypeError,
         "sequence_ids must be an int64 tensor, got torch.int32; write sequence_ids.long()"),
        ({"sequence_ids": torch.zeros(2, dtype=torch.int64)}, ValueError,
         f"logprobs and sequence_ids must have the same shape, got [2, 3] and [2]; {SHAPE}"),
        ({"epsilon": 1.0}, ValueError,
         "epsilon must lie strictly between 0 and 1, got 1.0; at 1 or more no ratio is below the floor "
         "1 - epsilon, at 0 or less there is no band; 0.2 is usual"),
        ({"epsilon_high": -0.1}, ValueError, "epsilon_high must be finite and above 0, got -0.1"),
    ],
)  # fmt: skip
def test_bad_arguments(change, kind, text):
    with pytest.raises(kind) as raised:
        sequence_policy_loss(**{**GOOD, **change})
    assert str(raised.value) == text
