import math

import pytest
import torch

from ppo_core import batch_count, ppo_objective


def arguments(device, mask=((True, True), (True, False))):
    """Ratios 3/2, 1/2 and 1; log-ratios to the reference 2, 0 and -2; what is not counted is far off."""
    rows = {
        "logprobs": [[math.log(1.5), math.log(0.5)], [0.0, 9.0]],
        "old_logprobs": [[0.0, 0.0], [0.0, -9.0]],
        "ref_logprobs": [[math.log(1.5) - 2, math.log(0.5)], [2.0, 0.0]],
        "advantages": [[2.0, 4.0], [-3.0, -9.0]],
        "values": [[1.0, 2.0], [3.0, 9.0]],
        "returns": [[3.0, 2.0], [-1.0, 0.0]],
        "entropies": [[0.5, 1.0], [1.5, 9.0]],
    }
    tensors = {n: torch.tensor(x, dtype=torch.float64, device=device) for n, x in rows.items()}
    return {**tensors, "mask": torch.tensor(mask, device=device)}


WEIGHTS = {"epsilon": 0.25, "value_coef": 0.5, "entropy_coef": 0.25, "beta": 0.125}


def test_by_hand(device):
    terms = ppo_objective(**arguments(device), **WEIGHTS, mode="token_mean")
    assert terms._fields == ("loss", "policy", "value", "entropy", "kl")
    # -5/4 * 2, -1/2 * 4, 3; halves of 4, 0, 16; entropies; halves of 4, 0, 4. Three tokens.
    expected = [(-2.5 - 2 + 3) / 3, (2 + 0 + 8) / 3, (0.5 + 1 + 1.5) / 3, (2 + 0 + 2) / 3]
    assert [x.item() for x in terms[1:]] == pytest.approx(expected, rel=1e-14)
    # -1/2 + 1/2 * 10/3 - 1/4 * 1 + 1/8 * 4/3 = 13/12
    assert terms.loss.item() == pytest.approx(13 / 12, rel=1e-14)


def test_the_slopes_by_hand(device):
    tensors = arguments(device)
    leaves = [tensors[name].requires_grad_() for name in ("logprobs", "values", "entropies")]
    loss = ppo_objective(**tensors, **WEIGHTS, mode="token_mean").loss
    policy, value, entropy = torch.autograd.grad(loss, leaves)
    # Minus ratio times advantage, none past the ceiling, and 1/8 of the log-ratio to the reference; over 3.
    assert policy.flatten().tolist() == pytest.approx([0.25 / 3, -2 / 3, (3 - 0.25) / 3, 0], rel=1e-14)
    assert value.flatten().tolist() == pytest.approx([-1 / 3, 0, 2 / 3, 0], rel=1e-14)
    assert entropy.flatten().tolist() == pytest.approx([-1 / 12, -1 / 12, -1 / 12, 0], rel=1e-14)


@pytest.mark.parametrize(
    ("mode", "denominator", "policy"),
    [
        ("sequence_mean_token_mean", None, (-4.5 / 2 + 3) / 2),
        ("sequence_mean_token_sum", None, -1.5 / 2),
        ("constant", 5, -1.5 / 5),
        ("token_mean", 6, -1.5 / 6),
    ],
)
def test_the_reduction_is_chosen(mode, denominator, policy, device):
    terms = ppo_objective(**arguments(device), **WEIGHTS, mode=mode, denominator=denominator)
    assert terms.policy.item() == pytest.approx(policy, rel=1e-14)


@pytest.mark.parametrize(("weight", "term"), [("value_coef", 2), ("entropy_coef", 3), ("beta", 4)])
def test_a_weight_of_zero_leaves_the_term_out_of_the_loss(weight, term, device):
    whole = ppo_objective(**arguments(device), **WEIGHTS, mode="token_mean")
    without = ppo_objective(**arguments(device), **{**WEIGHTS, weight: 0}, mode="token_mean")
    sign = -1 if weight == "entropy_coef" else 1
    share = sign * WEIGHTS[weight] * whole[term].item()
    assert whole.loss.item() - without.loss.item() == pytest.approx(share, rel=1e-13)
    assert without[1:] == whole[1:]


def test_the_clip_is_passed_on(device):
    # Ratios 3/2 with A = 2, 1/2 with A = 4, and 3 with A = -3. The band ends at 11/8, the dual clip is 2:
    # -11/8 * 2, -1/2 * 4, and 2 * 3.
    tensors = arguments(device)
    tensors["logprobs"][1, 0] = math.log(3)
    plain = ppo_objective(**tensors, **WEIGHTS, mode="token_mean")
    assert plain.policy.item() == pytest.approx((-2.5 - 2 + 9) / 3, rel=1e-14)
    terms = ppo_objective(**tensors, **WEIGHTS, mode="token_mean", epsilon_high=0.375, dual_clip=2)
    assert terms.policy.item() == pytest.approx((-2.75 - 2 + 6) / 3, rel=1e-14)


def test_packed_rows_by_hand(device):
    # All four tokens in one row, the first two as one sequence, the next as the second, with a hole after it.
    row = {name: x.reshape(1, 4) for name, x in arguments(device).items()}
    ids = torch.tensor([[0, 0, 1, 1]], device=device)
    packed = ppo_objective(**row, **WEIGHTS, mode="sequence_mean_token_mean", sequence_ids=ids)
    # Means of (-5/2, -2) and of 3; of (2, 0) and 8; of (1/2, 1) and 3/2; of (2, 0) and 2. Two sequences.
    expected = [(-2.25 + 3) / 2, (1 + 8) / 2, (0.75 + 1.5) / 2, (1 + 2) / 2]
    assert [x.item() for x in packed[1:]] == pytest.approx(expected, rel=1e-14)
    padded = ppo_objective(**arguments(device), **WEIGHTS, mode="sequence_mean_token_mean")
    assert [x.item() for x in packed] == pytest.approx([x.item() for x in padded], rel=1e-14)


def test_a_count_as_a_tensor_divides_all_terms(device):
    tensors = arguments(device)
    count = batch_count(tensors["mask"], mode="token_mean")
    given = ppo_objective(**tensors, **WEIGHTS, mode="token_mean", denominator=2 * count)
    whole = ppo_objective(**tensors, **WEIGHTS, mode="token_mean")
    assert [2 * x.item() for x in given] == pytest.approx([x.item() for x in whole], rel=1e-14)


def test_micro_batches_add_up(device):
    tensors = arguments(device)
    whole = ppo_objective(**tensors, **WEIGHTS, mode="token_mean").loss
    parts = [{name: x[i : i + 1] for name, x in tensors.items()} for i in range(2)]
    count = sum(batch_count(part["mask"], mode="token_mean") for part in parts)
    losses = [ppo_objective(**part, **WEIGHTS, mode="token_mean", denominator=count).loss for part in parts]
    torch.testing.assert_close(sum(losses), whole, rtol=1e-14, atol=0)


def test_an_empty_mask_gives_zero(device):
    nothing = arguments(device, mask=((False, False), (False, False)))
    terms = ppo_objective(**nothing, **WEIGHTS, mode="token_mean")
    assert [x.item() for x in terms] == [0] * 5
