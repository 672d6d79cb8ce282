import math
import re

import pytest
import torch

from ppo_core import shaped_rewards


def shaped(scores, new, ref, mask, device, beta=0.5):
    tensors = [torch.tensor(x, dtype=torch.float64, device=device) for x in (scores, new, ref)]
    return shaped_rewards(*tensors, torch.tensor(mask, device=device), beta=beta).tolist()


def test_by_hand(device):
    # Log-ratios 1, -2, 0 and 4, 0, 6; the score goes to the last counted token, a hole gets nothing.
    new, ref = [[-1.0, -4.0, -2.0], [-1.0, -9.0, -2.0]], [[-2.0, -2.0, -2.0], [-5.0, -9.0, -8.0]]
    mask = [[True, True, False], [True, False, True]]
    assert shaped([10.0, 20.0], new, ref, mask, device) == [[-0.5, 11.0, 0.0], [-2.0, 0.0, 17.0]]


def test_one_token_without_a_batch(device):
    assert shaped(1.0, [-1.0], [-3.0], [True], device) == [0.0]


def test_one_token_at_the_first_place(device):
    assert shaped(1.0, [-1.0, -1.0], [-3.0, -1.0], [True, False], device) == [0.0, 0.0]
    assert shaped(1.5, [-1.0, -1.0], [-3.0, -1.0], [True, False], device) == [0.5, 0.0]


def test_without_a_leash_only_the_score_is_left(device):
    assert shaped([2.0], [[-1.0, -5.0]], [[-3.0, -1.0]], [[True, True]], device, beta=0) == [[0.0, 2.0]]


def test_no_answers_no_rewards(device):
    empty = torch.zeros(0, 3, device=device)
    assert shaped_rewards(torch.zeros(0, device=device), empty, empty, empty.bool(), beta=0.1).shape == (0, 3)


def test_rewards_add_up_to_the_score_minus_the_leash(device):
    torch.manual_seed(0)
    new, ref = torch.randn(2, 5, 7, dtype=torch.float64, device=device).unbind(0)
    mask = torch.rand(5, 7, device=device) < 0.5
    mask[:, 3] = True
    scores = torch.arange(5, dtype=torch.float64, device=device)
    total = shaped_rewards(scores, new, ref, mask, beta=0.3).sum(-1).tolist()
    for row in range(5):
        tokens = [t for t in range(7) if mask[row, t]]
        leash = math.fsum(0.3 * (new[row, t].item() - ref[row, t].item()) for t in tokens)
        assert total[row] == pytest.approx(row - leash, rel=1e-12, abs=1e-12)


EMPTY_ANSWER = (
    torch.ones(3),
    -torch.ones(3, 2),
    -torch.ones(3, 2),
    torch.tensor([[True, True], [False, False], [True, False]]),
)


def test_an_answer_without_a_token_is_an_error_where_looking_is_free():
    with pytest.raises(ValueError) as raised:
        shaped_rewards(*EMPTY_ANSWER, beta=0.1)
    assert str(raised.value) == (
        "mask has no counted token in the answer at index [1], so its score would be lost; "
        "leave the answer out"
    )


@pytest.mark.parametrize(("shape", "index"), [((), "[]"), ((2, 3), "[1, 2]")])
def test_the_error_names_the_answer(shape, index):
    mask = torch.ones(*shape, 4, dtype=torch.bool)
    mask[(-1,) * len(shape)] = False
    with pytest.raises(ValueError, match=re.escape(f"in the answer at index {index}, so")):
        shaped_rewards(torch.ones(shape), torch.ones(*shape, 4), torch.ones(*shape, 4), mask, beta=0.1)


def test_an_answer_without_a_token_is_nan_in_a_compiled_graph(device):
    arguments = [x.to(device) for x in EMPTY_ANSWER]
    result = torch.compile(shaped_rewards, fullgraph=True, backend="aot_eager")(*arguments, beta=0.1)
    assert result.isnan().tolist() == [[False, False], [True, True], [False, False]]
    assert result[[0, 2]].tolist() == [[0, 1], [1, 0]]


def test_an_answer_without_a_token_is_nan_where_looking_would_wait(device):
    arguments = [x.to(device) for x in EMPTY_ANSWER]
    if device == "cpu":
        with pytest.raises(ValueError, match="no counted token"):
            shaped_rewards(*arguments, beta=0.1)
    else:
        result = shaped_rewards(*arguments, beta=0.1)
        assert result.isnan().tolist() == [[False, False], [True, True], [False, False]]
