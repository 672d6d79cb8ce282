"""The benchmark of the losses: the comparison of answers, the measurement of one side and the inputs."""

import dataclasses
import sys

import pytest
import torch

from benchmarks.losses import __main__ as bench
from benchmarks.losses import check, goals, measure
from benchmarks.losses.inputs import Source
from benchmarks.losses.operations import OPERATIONS, run
from benchmarks.losses.sides import policy_loss


def tensors(size=(4, 6), operation="policy"):
    return OPERATIONS[operation].make(size, Source("cpu", torch.float32))


def answers(x, change=None):
    found = run(OPERATIONS["policy"].sides["ours"](), x, ("logprobs",))
    if change:
        change(*found)
    return found


def add(which, name, amount):
    def change(*parts):
        parts[which][name] = parts[which][name].detach().clone() + amount

    return change


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (None, None),
        (add(0, "loss", 1e-6), None),
        (add(0, "loss", 1e-2), "loss differs by"),
        (add(0, "loss", torch.nan), "loss differs by"),
        (add(1, "logprobs", 1e-3), "gradient into logprobs differs by"),
        (add(0, "loss", torch.zeros(1)), "loss has the shape [1], ours []"),
        (lambda answer, _: answer.pop("loss"), "loss is missing"),
        (lambda _, gradients: gradients.clear(), "gradient into logprobs is missing"),
    ],
)
def test_another_answer_is_found(change, fault):
    x = tensors()
    found = list(check.compare(answers(x), answers(x, change), x["mask"]))

    assert len(found) == (fault is not None)
    assert fault is None or found[0].startswith(fault)


def test_what_is_not_counted_is_no_answer():
    mask = torch.tensor([True, False])
    ours, theirs = ({"advantages": torch.tensor([1.0, each])} for each in (0.0, torch.nan))

    assert list(check.compare((ours, {}), (theirs, {}), mask)) == []
    assert len(list(check.compare((ours, {}), (theirs, {}), None))) == 1


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_a_wrong_peer_stops_the_run(monkeypatch, capsys, factor):
    def wrong():
        return lambda x: {"loss": factor * policy_loss(*(x[name] for name in ("logprobs", "old_logprobs", "advantages", "mask")))}  # fmt: skip

    planted = dataclasses.replace(
        OPERATIONS["policy"], sides={"ours": OPERATIONS["policy"].sides["ours"], "verl": wrong}
    )
    monkeypatch.setitem(check.OPERATIONS, "policy", planted)
    monkeypatch.setattr(
        check, "cases", lambda rounds: [goals.Case("policy", (4, 6), {"ours": 1, "verl": 1}, True)]
    )
    started = []

    def in_this_process(python, module, *arguments):
        started.append(module)
        if module != "check":
            raise KeyboardInterrupt
        monkeypatch.setattr(sys, "argv", ["check", *arguments])
        return check.main()

    monkeypatch.setattr(bench, "run", in_this_process)
    monkeypatch.setattr(bench, "cases", check.cases)
    monkeypatch.setattr(bench, "made_by", lambda python: {})
    monkeypatch.setattr(sys, "argv", ["bench", "python"])

    if factor == 1:
        with pytest.raises(KeyboardInterrupt):
            bench.main()
        assert started == ["check", "measure"]
    else:
        assert bench.main() == 1
        assert started == ["check"]
        said = capsys.readouterr().out
        assert "clipped policy loss, token mean, 4 x 6, verl: loss differs by" in said
        assert "Nothing is timed" in said


def test_a_measurement_has_time_and_memory():
    found = measure.measure("logprobs", (2, 8, 64), "ours", seconds=1e-9)

    assert found["repeats"] == measure.LEAST == 7
    assert 0 < found["smallest"] <= found["seconds"] <= found["largest"]
    assert found["gradients"] == 2 * 8 * 64 * 4 and found["peak"] >= 0
    assert "seconds" not in measure.measure("logprobs", (2, 8, 64), "ours", seconds=0)


def test_the_peak_is_what_a_call_holds_at_most():
    def call():
        torch.ones(16 * 2**20)
        return {}, {"x": torch.ones(8 * 2**20)}

    held, gradients = measure.peak(call)

    assert gradients == 32 * 2**20
    # The first is freed before the second is made.
    assert 63 * 2**20 < held < 68 * 2**20


def test_long_calls_are_repeated_seven_times_and_short_ones_more_often():
    calls = []

    assert measure.timed(lambda: calls.append(0), 1e9)["repeats"] == measure.MOST
    assert len(calls) == measure.MOST + measure.WARM_UP
    assert measure.timed(lambda: calls.append(0), 1e-9)["repeats"] == 7


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_floor_makes_what_the_gradients_need(name):
    operation = OPERATIONS[name]
    x = operation.make(operation.small, Source("cpu", torch.float32))
    written, gradients = run(operation.sides["floor"](), x, operation.slopes)

    slopes = operation.slopes or ("rewards",)
    assert [each.shape for each in written.values()] == [x[slope].shape for slope in slopes]
    assert gradients == {} and not any(each.requires_grad for each in written.values())


def test_no_ratio_lies_near_the_edge_of_the_band():
    x = tensors((64, 64))
    rho = (x["logprobs"] - x["old_logprobs"]).exp()

    assert (rho > 1.2).any() and (rho < 0.8).any()
    assert min((rho - 1.2).abs().min(), (rho - 0.8).abs().min()) > 1e-3


def test_packed_rows_are_the_same_sequences_one_a_row():
    x = tensors((2, 16), "gae_packed")

    assert x["sequence_ids"][0].tolist() == [0] * 8 + [1] * 4 + [2] * 2 + [3] * 2
    assert x["unpacked_rewards"].shape == (8, 8)
    assert x["unpacked_mask"].sum(1).tolist() == [8, 4, 2, 2] * 2
    assert torch.equal(x["unpacked_values"][x["unpacked_mask"]].reshape(2, 16), x["values"])


def test_the_ends_of_ragged_answers():
    x = tensors((8, 32), "gae")
    lengths = x["mask"].sum(1)

    for row_of_ends, length in zip(x["ends"].tolist(), lengths.tolist(), strict=True):
        assert [index for index, end in enumerate(row_of_ends) if end] == sorted({length - 1, 31})
