"""The adaptive strength of the leash. Expected values by hand."""

import math

import pytest
import torch

from ppo_core import adapt_beta

KL = [[1.0, 3.0, 50.0], [2.0, -9.0, 7.0], [8.0, 8.0, 8.0]]
MASK = [[1, 1, 0], [1, 0, 0], [0, 0, 0]]
# Counted: 1, 3 and 2. Per token (1 + 3 + 2) / 3 = 2; per sequence (4 + 2) / 2 = 3, the third has nothing. n = 2.
PACKED = [[5, 5, 3], [0, 1, 1], [2, 2, 2]]
# The same numbers in sequences [1, 3], [], [2], [], []: the same means and n = 2.


def tensor(x, device="cpu", dtype=torch.float64):
    return torch.tensor(x, dtype=dtype, device=device)


def bools(x, device="cpu"):
    return torch.tensor(x, dtype=torch.bool, device=device)


def adapted(device="cpu", kl=KL, mask=MASK, **parameters):
    parameters = {"beta": 0.1, "target": 2, "horizon": 10, "unit": "token", **parameters}
    return adapt_beta(tensor(kl, device), bools(mask, device), **parameters).item()


@pytest.mark.parametrize("ids", [None, PACKED], ids=["rows", "packed"])
@pytest.mark.parametrize(
    ("unit", "target", "error"),
    [
        ("token", 2.0, 0),
        ("token", 1.9, 2 / 1.9 - 1),
        ("token", 2.2, 2 / 2.2 - 1),
        ("token", 1.0, 0.2),
        ("token", 4.0, -0.2),
        ("sequence", 3.0, 0),
        ("sequence", 2.75, 3 / 2.75 - 1),
        ("sequence", 3.5, 3 / 3.5 - 1),
        ("sequence", 2.0, 0.2),
        ("sequence", 30.0, -0.2),
    ],
)
def test_by_hand(unit, target, error, ids, device):
    ids = None if ids is None else torch.tensor(ids, device=device)
    found = adapted(device, unit=unit, target=target, horizon=7, sequence_ids=ids)
    assert found == pytest.approx(0.1 * (1 + error * 2 / 7), rel=1e-14)


def test_packed_sequences_count_apart(device):
    # One row of three sequences with 1, 2 and 1 counted tokens, sums 1, 5 and 6: mean 4 per sequence, 3 per token.
    kl, mask, ids = [[1.0, 2, 3, 99, 6]], [[1, 1, 1, 0, 1]], [[4, 2, 2, 2, 4]]
    ids = torch.tensor(ids, device=device)
    for unit, mean in (("sequence", 4), ("token", 3)):
        found = adapted(device, kl, mask, unit=unit, target=mean / 1.1, horizon=30, sequence_ids=ids)
        assert found == pytest.approx(0.1 * (1 + 0.1 * 3 / 30), rel=1e-13)


def test_published_values(device):
    # The rule with the numbers of the libraries that have it: 256 sequences, horizon 10 000.
    kl = tensor(12.0, device).expand(256, 1)
    mask = torch.ones_like(kl).bool()
    for unit in ("token", "sequence"):
        far = adapt_beta(kl, mask, beta=0.1, target=6, horizon=10_000, unit=unit)
        near = adapt_beta(kl / 4, mask, beta=0.2, target=6, horizon=10_000, unit=unit)
        # 0.1 (1 + 0.2 * 0.0256) and 0.2 (1 - 0.2 * 0.0256)
        assert (far.item(), near.item()) == pytest.approx((0.100512, 0.198976), rel=1e-12)


def test_several_updates_compound(device):
    beta, expected = 0.1, 0.1
    for kl in (12.0, 12.0, 6.6, 6.0, 1.0):
        beta = adapted(device, [[kl]] * 4, [[1]] * 4, beta=beta, target=6, horizon=40)
        expected *= {12.0: 1.02, 6.6: 1.01, 6.0: 1, 1.0: 0.98}[kl]
        assert beta == pytest.approx(expected, rel=1e-13)


def test_a_negative_estimate_loosens_the_leash(device):
    # k1 may average to less than 0 on a sample.
    assert adapted(device, [[-0.5]], [[1]]) == pytest.approx(0.1 * 0.98, rel=1e-14)


def test_where_nothing_counts_nothing_changes(device):
    for shape in ((2, 3), (0, 3), (2, 0)):
        kl, mask = torch.full(shape, torch.nan, device=device), torch.zeros(shape, device=device).bool()
        for unit in ("token", "sequence"):
            found = adapt_beta(kl, mask, beta=0.25, target=2, horizon=10, unit=unit)
            assert (found.shape, found.dtype, found.item()) == ((), torch.float32, 0.25)


def test_a_nan_on_a_counted_token_surfaces(device):
    assert math.isnan(adapted(device, [[1.0, math.nan]], [[1, 1]]))
    assert adapted(device, [[2.0, math.nan]], [[1, 0]]) == pytest.approx(0.1)


# --- more sequences than the horizon has room for


def test_a_batch_that_could_turn_beta_negative_is_an_error_where_looking_is_free(device):
    kl, mask = torch.zeros(50, 2, device=device), torch.ones(50, 2, device=device).bool()
    call = {"beta": 0.1, "target": 1, "unit": "token"}
    # 1 - 0.2 * 50 / horizon: 0 at 10.
    assert adapt_beta(kl, mask, horizon=10.1, **call).item() == pytest.approx(0.1 * 0.1 / 10.1, rel=1e-4)
    if device != "cpu":
        assert adapt_beta(kl, mask, horizon=10, **call).isnan()
        return
    with pytest.raises(ValueError) as raised:
        adapt_beta(kl, mask, horizon=10, **call)
    assert str(raised.value) == (
        "horizon must be above a fifth of the number of sequences, got 10 and 50 sequences; it counts sequences, "
        "not batches, and one batch could turn beta negative; 10000 is usual"
    )
    # Rows in which nothing counts are no sequences.
    mask[25:] = False
    assert adapt_beta(kl, mask, horizon=10, **call).item() == pytest.approx(0.05)


def test_a_batch_that_could_turn_beta_negative_is_nan_in_a_compiled_graph(device):
    call = torch.compile(adapt_beta, fullgraph=True, backend="aot_eager")
    kl, mask = torch.zeros(50, 2, device=device), torch.ones(50, 2, device=device).bool()
    found = [call(kl, mask, beta=0.1, target=1, horizon=h, unit="token").item() for h in (10, 20)]
    assert found == [pytest.approx(math.nan, nan_ok=True), pytest.approx(0.05)]


# --- errors

ONE, YES = torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bool)
GOOD = {"beta": 0.1, "target": 6, "horizon": 10_000, "unit": "token"}
SHAPE = "nothing is broadcast: expand or index one of them first"
ERRORS = [
    *(
        (lambda name=name, bad=bad: adapt_beta(ONE, YES, **{**GOOD, name: bad}), ValueError,
         f"{name} must be finite and above 0, got {bad}")
        for name in ("beta", "target", "horizon")
        for bad in (0, -1, math.nan, math.inf)
    ),
    *(
        (lambda name=name: adapt_beta(ONE, YES, **{**GOOD, name: torch.tensor(1.0)}), TypeError,
         f"{name} must be a plain number, got Tensor; write a float or an int")
        for name in ("beta", "target", "horizon")
    ),
    (lambda: adapt_beta(ONE, YES, **{**GOOD, "unit": "batch"}), ValueError,
     "unit must be one of token, sequence, got 'batch'"),
    (lambda: adapt_beta(ONE, YES[0], **GOOD), ValueError,
     f"kl and mask must have the same shape, got [2, 3] and [3]; {SHAPE}"),
    (lambda: adapt_beta(ONE, YES, **GOOD, sequence_ids=YES[0].long()), ValueError,
     f"kl and sequence_ids must have the same shape, got [2, 3] and [3]; {SHAPE}"),
    (lambda: adapt_beta(ONE[0, 0], YES[0, 0], **GOOD), ValueError,
     "kl must have at least one dimension, the tokens, got []; write kl.reshape(1)"),
    (lambda: adapt_beta(ONE.long(), YES, **GOOD), TypeError,
     "kl must be a floating-point tensor, got torch.int64; write kl.float()"),
    (lambda: adapt_beta(ONE, ONE, **GOOD), TypeError,
     "mask must be a bool tensor (True: the token counts), got torch.float32; write mask.bool()"),
    (lambda: adapt_beta(ONE, YES, **GOOD, sequence_ids=ONE), TypeError,
     "sequence_ids must be an int64 tensor, got torch.float32; write sequence_ids.long()"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[text for _, _, text in ERRORS])
def test_text_of_errors(call, kind, text):
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == text


@pytest.mark.parametrize("missing", GOOD)
def test_nothing_is_chosen_for_the_caller(missing):
    chosen = {name: value for name, value in GOOD.items() if name != missing}
    with pytest.raises(TypeError, match=f"required keyword-only argument: '{missing}'"):
        adapt_beta(ONE, YES, **chosen)
