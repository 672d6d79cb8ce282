"""The comparison with the peers, as far as it goes without them: ours against what they gave when they last ran.

`make parity` runs the peers themselves; `make slow` does too where their environment is there.
"""

import inspect
import json
import math
import re
import subprocess
import sys

import pytest
import torch

import ppo_core
from benchmarks.parity import pages, recorded
from benchmarks.parity.__main__ import main
from benchmarks.parity.compare import differ, where_counted
from benchmarks.parity.differences import Difference, differences
from benchmarks.parity.environment import LIST
from benchmarks.parity.ours import functions, missing, our_names
from benchmarks.parity.pairs import peers
from benchmarks.parity.run import by_hand, called, evaluate, plain, result
from benchmarks.parity.samples import SEEDS, sample
from benchmarks.parity.verdict import ERROR, our_fault, verdict
from conftest import ROOT

RECORDED = recorded.read()
PEERS = ROOT / "build" / "peers-venv"
PAIRS = [
    pytest.param(peer, pair, id=f"{peer.name}: {pair.subject}") for peer in peers() for pair in peer.pairs
]
ROWS = [pytest.param(row, id=f"{row.peer}: {row.subject}: {row.what}") for row in differences()]


def theirs(kind: str, **key: str) -> dict:
    """What is recorded of one row."""
    (found,) = [each for each in RECORDED[kind] if all(each[name] == value for name, value in key.items())]
    return found


@pytest.mark.parametrize(("peer", "pair"), PAIRS)
def test_ours_gives_what_the_peer_gave(peer, pair):
    inputs = sample(pair.on, recorded.SEED)
    ours = result(pair.ours, our_names() | inputs, pair.slope)
    expected = theirs("pairs", peer=peer.name, subject=pair.subject)

    assert "error" not in ours
    for key, value in ours.items():
        mask = plain(inputs["mask"])
        counted = pair.counted and key == "value"
        both = [where_counted(x, mask) if counted else x for x in (expected[key], value)]
        assert differ(*both, pair.tolerance) is None


@pytest.mark.parametrize(("peer", "pair"), PAIRS)
def test_a_row_runs_on_every_kind_of_mask_that_it_promises(peer, pair):
    for seed in SEEDS:
        assert "error" not in result(pair.ours, our_names() | sample(pair.on, seed), pair.slope)


@pytest.mark.parametrize("row", ROWS)
def test_ours_is_right_where_we_differ_and_the_peer_was_not(row):
    found = theirs("differences", peer=row.peer, subject=row.subject, what=row.what, given=row.given)

    assert our_fault(row) is None
    assert verdict(row, found)["fault"] is None


def test_every_row_is_told_from_the_others():
    keys = [(row.peer, row.subject, row.what, row.given) for row in differences()]

    assert len(set(keys)) == len(keys) == len(RECORDED["differences"])
    for peer in peers():
        assert len({pair.subject for pair in peer.pairs}) == len(peer.pairs)
    assert sum(len(peer.pairs) for peer in peers()) == len(RECORDED["pairs"])


@pytest.mark.parametrize(("path", "text"), pages.texts(RECORDED).items())
def test_the_pages_are_those_that_the_rows_make(path, text):
    assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path} is stale: run make parity"


def test_the_releases_are_those_that_are_installed():
    pins = dict(line.split("==") for line in LIST.read_text().splitlines() if line and line[0] != "#")

    for versions in RECORDED["versions"].values():
        for name, version in versions.items():
            assert pins[name] == version.split("+")[0]
    # Names and versions alone: whoever installs decides where from.
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", f"{name}=={version}") for name, version in pins.items())


def test_each_argument_is_one_of_ours():
    ours = {
        name
        for function in our_names().values()
        if inspect.isfunction(function)
        for name in inspect.signature(function).parameters
    }

    for peer in peers():
        for _, name, _ in peer.arguments:
            assert name in ours


def test_every_function_that_has_a_peer_is_compared():
    compared = {name for peer in peers() for pair in peer.pairs for name in functions(pair.ours)}

    # What no peer has as a function on tensors, what stands inside one that is compared or is made of some that
    # are, and what needs several processes.
    alone = {
        "approximate_kl",
        "batch_count",
        "clip_ratio",
        "clipped_surrogate",
        "explained_variance",
        "global_sum",
        "hidden_policy_loss",
        "kl_penalty",
        "log_ratio",
        "logit_statistics",
        "masked_sum",
        "ppo_objective",
        "preference_probability",
        "ratio",
        "ratio_quantiles",
        "sequence_ids_from_lengths",
        "sequence_ratio",
        "sharded_logprobs",
        "surrogate",
        "undo_mean_over_ranks",
    }
    assert set(ppo_core.__all__) - compared - alone == set()


@pytest.mark.parametrize("kind", ["padded", "holes", "full"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_inputs_reach_both_sides_of_every_clip(kind, seed):
    inputs = sample(kind, seed)
    mask = inputs["mask"]
    moved = (inputs["values"] - inputs["old_values"])[mask]
    rho = torch.exp(inputs["logprobs"] - inputs["old_logprobs"])[mask]
    weight = torch.exp(inputs["old_logprobs"] - inputs["sampler_logprobs"])[mask]

    per_answer = inputs["answer_advantages"].unsqueeze(-1).expand_as(mask)
    for good in (inputs["advantages"][mask] > 0, per_answer[mask] > 0):
        for where in (rho > 1.5, rho > 1.28, rho < 0.8):
            assert (where & good).any() and (where & ~good).any()
    assert (weight > 1.5).any() and (weight < 0.7).any()
    assert (moved > 0.2).any() and (moved < -0.2).any()
    assert mask.any(-1).all()
    assert mask.all() == (kind == "full")
    assert not inputs["rewards"][~mask].any()


def test_the_inputs_are_the_same_each_time_and_others_for_another_seed():
    one, again, other = sample("holes", 1), sample("holes", 1), sample("holes", 2)

    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one)


def test_the_code_of_a_row_gives_its_last_line():
    assert evaluate("a = x + 1\na * 2", {"x": 3}) == 8
    with pytest.raises(SyntaxError, match="the last line is no expression"):
        evaluate("a = 1", {})


def test_a_result_is_a_value_with_its_slope_or_an_error():
    x = torch.tensor([2.0, 3.0])

    assert result("x ** 2", {"x": x}, "x") == {"value": [4.0, 9.0], "slope": [4.0, 6.0]}
    assert result("x.nothing", {"x": x})["error"].startswith("AttributeError: ")
    assert not x.requires_grad


def test_what_json_has_no_number_for_is_a_word():
    assert plain(torch.tensor([1.0, math.nan, math.inf, -math.inf])) == [1.0, "nan", "inf", "-inf"]
    assert json.loads(json.dumps(plain((True, 2)), allow_nan=False)) == [1.0, 2.0]
    with pytest.raises(TypeError, match="a row must give numbers, got dict"):
        plain({})


def test_by_hand_there_is_arithmetic_and_nothing_else():
    assert by_hand("[sqrt(4), exp(0)]") == [2.0, 1.0]
    for other in ("torch", "open('x')", "__import__('os')", "ppo_core"):
        with pytest.raises(NameError):
            by_hand(other)


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        (1.0, 1.000001, None),
        (1.0, 1.001, "the result: theirs 1.0, ours 1.001"),
        ([1.0, 2.0], [1.0, 3.0], "[1]: theirs 2.0, ours 3.0"),
        ([[1.0], [2.0]], [[1.0], [-2.0]], "[1][0]: theirs 2.0, ours -2.0"),
        ([1.0], [1.0, 1.0], "the result: 1 and 2 elements"),
        ([1.0], 1.0, "the result: one is a list and the other a number"),
        (0.0, 1e-6, None),
        (0.0, 1e-4, "the result: theirs 0.0, ours 0.0001"),
        ("nan", "nan", None),
        ("nan", 0.0, "the result: theirs nan, ours 0.0"),
        ("inf", "-inf", "the result: theirs inf, ours -inf"),
    ],
)
def test_a_difference_is_noticed_and_said_where_it_is(a, b, found):
    assert differ(a, b, 1e-5) == found


def test_where_nothing_counts_nothing_is_compared():
    assert where_counted([[1.0, 2.0]], [[1.0, 0.0]]) == [[1.0, 0.0]]


ROW = Difference(
    "trl",
    "s",
    "w",
    "g",
    theirs="",
    ours="masked_mean(torch.ones(1), torch.tensor([True]))",
    right="1",
    by_hand="",
    why="",
)


@pytest.mark.parametrize(
    ("ours", "right", "given", "fault"),
    [
        (ROW.ours, "1", {"value": "nan"}, None),
        (ROW.ours, "2", {"value": "nan"}, "right is 2.0, ours 1.0"),
        (ROW.ours, "1", {"value": 1.0}, "theirs gives the right answer now, 1.0"),
        (ROW.ours, "1", {"error": "ValueError: no"}, None),
        (ROW.ours, f"'{ERROR}'", {"value": 1.0}, "ours should raise and gives 1.0"),
        ("masked_mean(1.0)", "1", {"value": 2.0}, "ours raises: TypeError"),
        ("masked_mean(1.0)", f"'{ERROR}'", {"value": 2.0}, None),
        ("masked_mean(1.0)", f"'{ERROR}'", {"error": "ValueError: no"}, "theirs raises now: ValueError: no"),
    ],
)
def test_a_row_that_is_no_longer_true_is_noticed(ours, right, given, fault):
    row = Difference("trl", "s", "w", "g", theirs="", ours=ours, right=right, by_hand="", why="")
    found = verdict(row, given)["fault"]

    assert found == fault or (fault and found.startswith(fault))


def test_the_functions_of_a_code():
    code = "make = loss.PolicyLoss(0.2)\nmake(rho.exp(), torch.ones(1))[0]\nlater.first(x)(y).then()"

    assert called(code) == ["loss.PolicyLoss", "rho.exp", "torch.ones", "later.first"]
    assert functions("a = masked_mean(ratio(x, y), mask)\na.sum()") == ["masked_mean", "ratio"]


def test_what_ours_lacks_is_said():
    assert missing("aggregate(x, mask, mode='token_mean')") is None
    assert missing("a = no_such_loss(x)\na") == "ppo_core has no no_such_loss"
    assert missing("aggregate(x, mask, wrong=1)") == "aggregate has no argument wrong"
    assert all(missing(row.ours) is None for row in differences())
    assert all(missing(pair.ours) is None for peer in peers() for pair in peer.pairs)


def test_an_unknown_peer_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["parity", "python", "tlr"])

    assert main() == 2
    assert capsys.readouterr().out.startswith("no peer tlr; there are trl, verl")


def test_a_number_that_another_machine_rounds_otherwise_is_not_recorded_anew():
    def record(*values):
        rows = [{"peer": "verl", "subject": str(n), "value": [value]} for n, value in enumerate(values)]
        return {"versions": {}, "pairs": rows, "differences": []}

    old = record(0.1234567, 0.1234567, -0.5)
    new = record(0.1234568, 0.1234667, -0.5, 3.0)
    found = [row["value"] for row in recorded.settled(new, old)["pairs"]]
    assert found == [[0.1234567], [0.1234667], [-0.5], [3.0]]
    # An error, or a gradient more, is no rounding.
    broken = {
        "versions": {},
        "pairs": [{"peer": "verl", "subject": "0", "error": "TypeError: no"}],
        "differences": [],
    }
    assert recorded.settled(broken, old)["pairs"] == broken["pairs"]


@pytest.mark.slow
@pytest.mark.skipif(
    not (PEERS / ".ready").exists(), reason="the peers are not installed: make parity installs them"
)
def test_the_peers_still_give_these_numbers():
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.parity", str(PEERS / "bin" / "python")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "stale" not in run.stdout
