"""The benchmark of the losses on a GPU: what can be checked without one."""

import json

import torch

from benchmarks.losses import check, cuda, page
from benchmarks.losses.inputs import Source
from benchmarks.losses.operations import OPERATIONS, Operation, run


class FixedClock:
    def seconds(self, call):
        call()
        return 0.5

    def peak(self, call):
        call()
        return 7


def test_the_rows_of_a_gpu(monkeypatch):
    ours = OPERATIONS["logprobs"].sides["ours"]

    def absent():
        raise ImportError

    def too_large():
        raise torch.OutOfMemoryError

    def in_place():
        side = ours()

        def over(x):
            found = side(x | {"logits": x["logits"] * 1})
            with torch.no_grad():
                x["logits"].zero_()
            return {"logprobs": found["logprobs"] + 0 * x["logits"].sum()}

        return over

    operation = Operation(
        "t",
        OPERATIONS["logprobs"].make,
        ("logits",),
        (2, 4, 16),
        {
            "ours": ours,
            "gone": absent,
            "large": too_large,
            "wrong": lambda: lambda x: {"logprobs": 2 * ours()(x)["logprobs"]},
            "floor": OPERATIONS["logprobs"].sides["floor"],
        },
    )
    monkeypatch.setitem(cuda.ALL, "logprobs", operation)
    arguments = ("logprobs", (2, 4, 16), torch.float32, {cuda.IN_PLACE: in_place}, "cpu", FixedClock())

    rows = {each["side"]: each for each in cuda.of_case(*arguments, end=torch.inf)}
    late = cuda.of_case(*arguments, end=-torch.inf)

    times = {
        "seconds": 0.5,
        "smallest": 0.5,
        "largest": 0.5,
        "repeats": 7,
        "beyond": 7,
        "ratio": 1,
        "share": 1,
    }
    for side in ("ours", "floor", cuda.IN_PLACE):
        assert {key: rows[side].get(key) for key in times} == times, rows[side]
    assert rows["gone"]["error"] == "not installed"
    assert rows["large"]["error"] == "out of memory"
    assert rows["wrong"]["error"].startswith("another answer: logprobs differs by")
    assert {each["error"] for each in late} == {"no time was left"}


def test_ratio_and_share_of_a_gpu():
    rows = [
        {"operation": "gae", "side": side, "seconds": each}
        for side, each in (("ours", 2.0), ("verl", 6.0), ("floor", 1.0))
    ]

    assert [(each["ratio"], each["share"]) for each in cuda.with_ratios(rows)] == [
        (1, 0.5),
        (3, 1 / 6),
        (0.5, 1),
    ]
    assert "share" not in cuda.with_ratios([each | {"operation": "hidden"} for each in rows])[0]


def test_the_loss_from_logits_on_a_gpu_is_the_plain_one():
    x = cuda.logits_loss((3, 5, 11), Source("cpu", torch.float32))
    ours, plain = (run(cuda.LOGITS_LOSS.sides[side](), x, ("logits",)) for side in ("ours", "plain"))

    assert list(check.compare(ours, plain, x["mask"])) == []
    assert ours[1]["logits"][:, -1].abs().max() == 0 < ours[1]["logits"][:, :-1].abs().max()


def test_every_case_of_the_gpu_has_an_operation():
    assert {name for name, *_ in cuda.CASES} == set(cuda.ALL)
    for name, size, _, _ in cuda.CASES:
        assert len(size) == len(cuda.ALL[name].small)


def test_without_a_gpu_nothing_is_measured(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    assert cuda.main() == 2
    assert capsys.readouterr().out == "torch finds no GPU: nothing is measured\n"


def test_the_page_shows_the_gpu_when_it_was_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(page, "CUDA", tmp_path / "cuda.json")
    assert "Not measured yet" in page.gpu()

    made = {"date": "2026-01-02", "device": "A GPU", "torch": "2.0", "copy": 3e12}
    where = {"operation": "logits_loss", "size": [8, 4], "dtype": "bfloat16"}
    found = [
        where | {"side": "ours", "seconds": 1, "ratio": 1, "share": 0.5, "beyond": 2e9},
        where | {"side": "plain", "error": "not installed"},
    ]
    page.CUDA.write_text(json.dumps({"made": made, "rows": found}), encoding="utf-8")

    assert "A GPU, which copies 3000 GB a second" in page.gpu()
    assert "| logits to policy loss | 8 × 4 | bfloat16 | ours | 1.00 | 50% | 2.00 GB |" in page.gpu()
    assert "| logits to policy loss | 8 × 4 | bfloat16 | plain PyTorch | not installed |  |  |" in page.gpu()
