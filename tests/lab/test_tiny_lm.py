"""PPO on a small model: each part by hand, a short run that must learn, and the committed results."""

import ast
import itertools
import json
import math
import random
import sys

import pytest
import torch

import lab
from conftest import ROOT
from lab.tiny_lm import experiment, task
from lab.tiny_lm.experiment import SEEDS, Claim, claim, reproducible, run
from lab.tiny_lm.model import TinyLM, at_answers
from lab.tiny_lm.pretrain import pretrained
from lab.tiny_lm.rollout import Rollout, roll_out, sample
from lab.tiny_lm.train import Settings, step, train, with_advantages

RESULTS = ROOT / "lab" / "tiny_lm" / "results"
LEASHES = ("leash-0.5", "leash-0.2")


def words(text):
    """Return an answer as tokens, int64 [1, ANSWER]."""
    row = [task.WORDS.index(word) for word in text.split()]
    return torch.tensor([row + [task.PAD] * (task.ANSWER - len(row))])


def committed(leash):
    return json.loads((RESULTS / leash / "results.json").read_text(encoding="utf-8"))


@pytest.fixture
def model():
    with reproducible(5):
        fresh = TinyLM()
        # A critic that says something, so that a mix-up shows.
        torch.nn.init.normal_(fresh.value.weight)
        yield fresh


# --- the task ---


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("sees a dog .", 0),
        ("sees a happy kind dog .", 2),
        ("sees a happy dog and likes the cruel sad bird .", -1),
        # What follows the full stop is no part of the answer.
        ("sees a bright dog . happy happy", 1),
        # Fourteen tokens without a full stop: 14 happy words less 2.
        (" ".join(["happy"] * 14), 12),
        (" ".join(["happy"] * 13 + ["."]), 13),
    ],
)
def test_the_score_by_hand(answer, expected):
    assert task.score(words(answer)).tolist() == [expected]


def test_the_full_stop_counts_and_the_padding_does_not():
    assert task.answer_mask(words("sees a dog ."))[0].tolist() == [True] * 4 + [False] * 10
    assert task.answer_mask(words(" ".join(["and"] * 14))).all()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("sees a dog .", True),
        ("sees the happy sad dog and likes a kind bird .", True),
        ("sees a dog", False),
        ("sees a dog . .", False),
        ("sees a happy happy happy dog .", False),
        ("sees a dog and sees a dog and sees a dog .", False),
        ("a dog .", False),
        ("sees a happy .", False),
    ],
)
def test_the_grammar(answer, expected):
    assert task.grammatical(words(answer)).tolist() == [expected]


def test_the_synthetic_text_is_the_language():
    text = task.sentences(2000, seed=3)
    answers = text[:, task.PROMPT :]
    assert text.shape == (2000, task.PROMPT + task.ANSWER) and text.dtype == torch.int64
    assert task.grammatical(answers).all()
    assert (text[:, 0] == task.START).all()
    # Happy and sad are as likely as each other, so the reward is 0 on average: its standard deviation is below
    # 1 (0.65 adjectives a clause, 1.4 clauses), that of the mean below 1 / sqrt(2000), and five of those 0.11.
    assert abs(task.score(answers).mean().item()) < 0.11
    assert torch.equal(text, task.sentences(2000, seed=3))
    assert not torch.equal(text, task.sentences(2000, seed=4))


def test_prompts_are_subjects():
    asked = task.prompts(500, seed=3)
    assert {task.as_text(row) for row in asked} == {
        f"{determiner} {noun}"
        for determiner, noun in itertools.product(("the", "a"), ("cat", "dog", "bird", "child"))
    }


# --- the model ---


def test_a_token_sees_nothing_of_what_comes_later(model):
    text = task.sentences(4, seed=1)
    changed = text.clone()
    changed[:, 9:] = (text[:, 9:] + 1) % len(task.WORDS)
    for plain, other in zip(model(text), model(changed), strict=True):
        torch.testing.assert_close(plain[:, :9], other[:, :9])
        assert not torch.equal(plain[:, 9:], other[:, 9:])


def test_an_answer_is_looked_at_where_each_token_is_chosen(model):
    text = task.sentences(2, seed=1)
    asked, answers = text[:, : task.PROMPT], text[:, task.PROMPT :]
    logits, values = at_answers(model, asked, answers)
    assert logits.shape == (2, task.ANSWER, len(task.WORDS)) and values.shape == (2, task.ANSWER)
    for t in range(task.ANSWER):
        # Chosen from the prompt and the t tokens before it, with nothing else there at all.
        there, value = model(torch.cat([asked, answers[:, :t]], -1))
        torch.testing.assert_close(logits[:, t], there[:, -1])
        torch.testing.assert_close(values[:, t], value[:, -1])


def test_a_new_model_is_as_large_as_it_says_and_its_critic_says_nothing():
    fresh = TinyLM()
    assert round(sum(each.numel() for each in fresh.parameters()), -3) == 59_000
    assert (fresh(task.prompts(3, seed=0))[1] == 0).all()


# --- the rollout ---


def test_a_sampled_answer_ends_with_its_full_stop(model):
    answers = sample(model, task.prompts(200, seed=0))
    mask = task.answer_mask(answers)
    assert answers.shape == (200, task.ANSWER)
    assert (answers[~mask] == task.PAD).all()
    assert (~mask).any() and (answers == task.STOP).any(-1).any()
    assert ((answers == task.STOP).sum(-1) <= 1).all()


def test_samples_follow_the_policy(model):
    # 1000 first words for one prompt: a frequency is off by less than 5 standard deviations, 5 sqrt(p / 1000).
    asked = task.prompts(1, seed=0).expand(1000, -1)
    first = sample(model, asked)[:, 0]
    probs = model(asked[:1])[0][0, -1].softmax(-1)
    found = torch.bincount(first, minlength=len(task.WORDS)) / 1000
    assert ((found - probs).abs() < 5 * (probs / 1000).sqrt()).all()


def test_a_rollout_knows_what_the_policy_thought(model):
    other = TinyLM()
    rollout = roll_out(model, other, task.prompts(8, seed=0))
    for each, known in ((model, rollout.logprobs), (other, rollout.ref_logprobs)):
        logits, _ = at_answers(each, rollout.prompts, rollout.answers)
        expected = logits.log_softmax(-1).gather(-1, rollout.answers.unsqueeze(-1)).squeeze(-1)
        torch.testing.assert_close(known, torch.where(rollout.mask, expected, 0.0))
    assert not any(each.requires_grad for each in rollout)


def rollout_by_hand():
    """Two tokens that count, of three."""
    return Rollout(
        prompts=torch.zeros(1, task.PROMPT, dtype=torch.int64),
        answers=torch.zeros(1, 3, dtype=torch.int64),
        mask=torch.tensor([[True, True, False]]),
        logprobs=torch.tensor([[-1.0, -0.5, math.nan]]),
        ref_logprobs=torch.tensor([[-2.0, -1.5, 0.0]]),
        values=torch.tensor([[0.5, 1.0, 7.0]]),
        scores=torch.tensor([3.0]),
    )


def test_the_kl_of_an_answer_by_hand():
    # Log-ratios of 1 and 1; the padding counts for nothing.
    assert rollout_by_hand().kl() == 2.0


# --- the steps ---


def test_advantages_and_returns_by_hand():
    # Rewards with beta 0.5: -0.5 and 3 - 0.5 = 2.5. With gamma = lambda = 1 the returns are what is still to
    # come: 2.0 and 2.5; the advantages are these less the values: 1.5 and 1.5, which whitening makes 0.
    batch = with_advantages(rollout_by_hand(), Settings(beta=0.5, lam=1.0))
    assert batch.returns.tolist() == [[2.0, 2.5, 0.0]]
    assert batch.advantages.tolist() == [[0.0, 0.0, 0.0]]
    # With lambda = 0: -0.5 + 1 - 0.5 = 0 and 2.5 - 1 = 1.5. Their mean is 0.75 and their deviation, by n - 1,
    # 1.5 / sqrt(2), so they become -1 / sqrt(2) and 1 / sqrt(2). The returns: 0 + 0.5 and 1.5 + 1.
    batch = with_advantages(rollout_by_hand(), Settings(beta=0.5, lam=0.0))
    assert batch.returns.tolist() == [[0.5, 2.5, 0.0]]
    assert batch.advantages[0].tolist() == pytest.approx([-(0.5**0.5), 0.5**0.5, 0.0], rel=1e-6)


def test_the_first_step_is_along_the_policy_gradient(model):
    # At the old policy the ratio is 1, so the gradient of the clipped loss is that of -A times the
    # log-probability, averaged over the counted tokens; the critic and the entropy are left out.
    settings = Settings(value_coef=0.0, max_norm=1e9)
    rollout = roll_out(model, TinyLM(), task.prompts(8, seed=0))
    batch = with_advantages(rollout, settings)
    step(model, torch.optim.SGD(model.parameters(), lr=0.0), batch, torch.arange(8), settings)
    found = [None if each.grad is None else each.grad.clone() for each in model.parameters()]
    logits, _ = at_answers(model, rollout.prompts, rollout.answers)
    logprobs = logits.log_softmax(-1).gather(-1, rollout.answers.unsqueeze(-1)).squeeze(-1)
    loss = -(batch.advantages * logprobs)[rollout.mask].mean()
    expected = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    for slope, wanted in zip(found, expected, strict=True):
        if wanted is not None:
            torch.testing.assert_close(slope, wanted, rtol=1e-3, atol=1e-5)


def steps_without_advantages(model, settings):
    """Take four steps in which only the critic and the entropy count; yield the batch and the entropy before."""
    rollout = roll_out(model, model, task.prompts(16, seed=0))
    batch = with_advantages(rollout, settings)
    batch = batch._replace(advantages=torch.zeros_like(batch.advantages))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for _ in range(4):
        yield batch, step(model, optimizer, batch, torch.arange(16), settings)


def test_the_critic_comes_nearer_to_the_returns(model):
    errors = []
    for batch, _ in steps_without_advantages(model, Settings(value_coef=1.0)):
        _, values = at_answers(model, batch.rollout.prompts, batch.rollout.answers)
        errors.append(((values - batch.returns) ** 2)[batch.rollout.mask].mean().item())
    assert errors == sorted(errors, reverse=True) and errors[-1] < errors[0]


def test_a_bonus_for_entropy_raises_it(model):
    settings = Settings(value_coef=0.0, entropy_coef=1.0)
    entropies = [entropy for _, entropy in steps_without_advantages(model, settings)]
    assert entropies == sorted(entropies) and entropies[-1] > entropies[0]


def test_the_reference_stands_still_and_the_policy_moves():
    with reproducible(1):
        policy = pretrained(seed=1, steps=20)
        before = [each.clone() for each in policy.parameters()]
        seen = list(train(policy, seed=2, settings=Settings(iterations=3)))
    # The first samples are those of the reference itself.
    assert seen[0].kl == 0.0
    assert seen[2].kl != 0.0
    assert any(not torch.equal(old, new) for old, new in zip(before, policy.parameters(), strict=True))


# --- the experiment ---


def test_the_claim_by_hand():
    # Gains of 1, 2 and 3: mean 2, sample standard deviation 1. Twice the spread is not exceeded.
    assert claim([0, 0, 0], [1, 2, 3]) == Claim(2.0, 1.0, False)
    assert claim([-1, -1, -1], [1, 2, 3]) == Claim(3.0, 1.0, True)
    # What falls does not learn, however evenly.
    assert not claim([3.0, 3.1], [1.0, 1.0]).holds


def test_a_run_leaves_the_random_state_and_the_threads():
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    with pytest.raises(KeyError), reproducible(1):
        torch.rand(1)
        raise KeyError
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_the_same_seed_gives_the_same_run(monkeypatch):
    monkeypatch.setattr(experiment, "QUESTIONS", 32)
    settings = Settings(iterations=2, batch=32, minibatch=16)
    first = run(4, settings, text_steps=10)
    random.random(), torch.rand(1)
    assert run(4, settings, text_steps=10) == first
    assert run(5, settings, text_steps=10) != first


def test_a_short_run_learns():
    short = run(0, Settings(iterations=8), text_steps=100)
    curves = short["iterations"]
    assert {len(curve) for curve in curves.values()} == {8}
    assert all(math.isfinite(each) for curve in curves.values() for each in curve)
    # The answers of the reference earn 0 on average; an eighth of the committed gain would be too little.
    assert abs(short["before"]["score"]) < 0.3
    assert short["after"]["score"] > short["before"]["score"] + 0.5
    assert 0 < short["after"]["kl"] < 10


@pytest.mark.slow
def test_the_full_run_learns_and_agrees_with_the_committed_one():
    found, known = experiment.results(SEEDS, Settings()), committed("leash-0.5")
    assert found["claim"]["holds"]
    for run_, before in zip(found["runs"], known["runs"], strict=True):
        # Another machine, or a sum in another order, rounds otherwise, and the samples then go their own way: as
        # far as seeds differ.
        assert run_["after"]["score"] == pytest.approx(before["after"]["score"], abs=1.0)
        assert run_["after"]["kl"] == pytest.approx(before["after"]["kl"], abs=2.0)


# --- what is committed ---


@pytest.mark.parametrize("leash", LEASHES)
def test_the_committed_verdict_follows_from_the_committed_runs(leash):
    known = committed(leash)
    runs = known["runs"]
    assert [each["seed"] for each in runs] == list(SEEDS)
    assert set(known["versions"]) == {"python", "torch", "machine"}
    assert known["settings"] == Settings(beta=float(leash.removeprefix("leash-")))._asdict()
    gains = [each["after"]["score"] - each["before"]["score"] for each in runs]
    gain = sum(gains) / 3
    spread = (sum((each - gain) ** 2 for each in gains) / 2) ** 0.5
    assert known["claim"] == {
        "gain": pytest.approx(gain, abs=1e-4),
        "spread": pytest.approx(spread, abs=1e-4),
        "holds": True,
    }
    assert gain > 2 * spread
    assert all(
        math.isfinite(each) for run_ in runs for curve in run_["iterations"].values() for each in curve
    )


@pytest.mark.parametrize("leash", LEASHES)
def test_the_plots_and_the_page_are_those_of_the_committed_results(leash):
    from lab.tiny_lm.__main__ import plots, summary

    known = committed(leash)
    drawn = plots(known)
    assert drawn == plots(known)
    assert drawn == {
        name: (RESULTS / leash / name).read_text(encoding="utf-8") for name in ("reward.svg", "kl.svg")
    }
    page = (ROOT / "docs" / "library" / "tiny-run.md").read_text(encoding="utf-8")
    assert summary(known).replace("| -", "| −") in page
    for name in drawn:
        assert f'--8<-- "lab/tiny_lm/results/{leash}/{name}"' in page


@pytest.mark.parametrize("name", ["train", "task", "model", "pretrain", "rollout", "experiment"])
def test_the_page_shows_the_file_itself(name):
    page = (ROOT / "docs" / "library" / "tiny-run.md").read_text(encoding="utf-8")

    # Exactly so: a formatter that takes the line for Python would break it without an error.
    assert f'\n```py title="lab/tiny_lm/{name}.py"\n--8<-- "lab/tiny_lm/{name}.py"\n```\n' in page


def test_the_page_says_what_the_results_say():
    page = (ROOT / "docs" / "library" / "tiny-run.md").read_text(encoding="utf-8")
    tight, loose = (committed(leash) for leash in LEASHES)
    assert f"> {loose['runs'][0]['after']['examples'][0]}\n" in page
    versions = tight["versions"]
    assert f"Python {versions['python']} and torch {versions['torch']} on {versions['machine']}." in page
    assert max(max(each["iterations"]["kl"]) for each in tight["runs"]) < 4 and "below 4 nats" in page
    assert len(task.WORDS) == 19 and "has 19 words" in page
    assert Settings().batch == 128 and "answers 128 prompts" in page
    assert experiment.QUESTIONS == 512 and "on 512 fresh prompts" in page


def test_the_command_writes_what_it_found(tmp_path, capsys, monkeypatch):
    from lab.tiny_lm import __main__ as command

    monkeypatch.setattr(experiment, "QUESTIONS", 32)
    monkeypatch.setattr(experiment, "pretrained", lambda *, seed, steps, bar: TinyLM())
    command.main(["--seeds", "0", "1", "--iterations", "2", "--out", str(tmp_path / "new")])
    said = capsys.readouterr()
    found = json.loads((tmp_path / "new" / "results.json").read_text(encoding="utf-8"))
    assert said.out.startswith(command.summary(found) + "\n")
    assert "seed 1, PPO" in said.err
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"results.json", "reward.svg", "kl.svg"}
    with pytest.raises(SystemExit):
        command.main(["--seeds", "1", "1"])
    assert "a seed is given twice" in capsys.readouterr().err


def test_the_laboratory_does_not_bring_the_run_with_it():
    source = ast.parse((ROOT / "lab" / "__init__.py").read_text(encoding="utf-8"))
    modules = [node.module for node in ast.walk(source) if isinstance(node, ast.ImportFrom)]
    assert modules and not any("tiny_lm" in module for module in modules)
    assert "lab.tiny_lm" in sys.modules and not hasattr(lab, "run")
