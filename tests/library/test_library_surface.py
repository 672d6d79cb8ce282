"""What the packages show and what they bring with them: names, docstrings, imports, plain-float twins."""

import ast
import inspect
import logging
import subprocess
import sys
from pathlib import Path

import griffe
import pytest
from torch import Tensor
from torch.distributed import ProcessGroup

import lab
import ppo_core
import reference

ROOT = Path(ppo_core.__file__).parents[1]
FUNCTIONS = [
    pytest.param(getattr(package, name), id=f"{package.__name__}.{name}")
    for package in (ppo_core, lab)
    for name in package.__all__
]
SECTIONS = ["Args:", "Returns:", "Raises:", "Gradient:", "Source:", "Examples:"]


def test_the_public_names():
    assert ppo_core.__all__ == [
        "adapt_beta",
        "aggregate",
        "approximate_kl",
        "batch_count",
        "cispo_loss",
        "clip_fractions",
        "clip_ratio",
        "clipped_surrogate",
        "clipped_value_loss",
        "discounted_returns",
        "dpo_loss",
        "effective_sample_size",
        "entropy",
        "explained_variance",
        "full_kl",
        "gae",
        "global_sum",
        "group_centred",
        "group_relative",
        "hidden_logprobs",
        "hidden_policy_loss",
        "implicit_reward",
        "kl_k1",
        "kl_k2",
        "kl_k3",
        "kl_loss",
        "kl_penalty",
        "leave_one_out",
        "log_ratio",
        "logit_statistics",
        "masked_mean",
        "masked_sum",
        "masked_weights",
        "policy_loss",
        "ppo_objective",
        "preference_probability",
        "ratio",
        "ratio_quantiles",
        "reinforce_plus_plus",
        "reward_model_loss",
        "sequence_ids_from_lengths",
        "sequence_policy_loss",
        "sequence_ratio",
        "shaped_rewards",
        "sharded_logprobs",
        "surrogate",
        "token_logprobs",
        "truncated_weights",
        "undo_mean_over_ranks",
        "value_loss",
        "whiten",
    ]
    assert lab.__all__ == [
        "answer_gradient",
        "answer_value",
        "best_baseline",
        "dpo_minimiser",
        "entropy_gradient",
        "exact_policy_gradient",
        "expected_reward",
        "gae_bias",
        "gae_gradient",
        "gae_variance",
        "kl_divergence",
        "kl_gradient",
        "kl_objective",
        "kl_regularised_optimum",
        "policy_gradient_mean",
        "policy_gradient_variance",
        "precision_ratio",
        "proxy_and_true",
        "ratio_after_steps",
        "repeated_steps",
        "sampled_kl_gradient",
        "sequence_ratio_estimate",
        "temperature_ratio",
        "token_ratio_estimate",
    ]


@pytest.mark.parametrize("package", [ppo_core, lab], ids=lambda package: package.__name__)
def test_a_public_name_is_never_also_a_module(package):
    # `package.name` would be the one or the other, depending on who looks: Python or the documentation.
    modules = {path.stem for path in Path(package.__file__).parent.glob("*.py")}
    assert modules.isdisjoint(package.__all__)


# --- signatures ---


@pytest.mark.parametrize("function", FUNCTIONS)
def test_tensors_come_first_and_hyper_parameters_are_named(function):
    for parameter in inspect.signature(function).parameters.values():
        # A bias is a tensor that a model may lack; it stands where torch's own functions have it. So does the
        # group of a function that is about nothing else.
        second = parameter.name == "bias" or function.__name__ in ("global_sum", "undo_mean_over_ranks")
        tensor = parameter.annotation is Tensor or second
        assert parameter.kind is (parameter.POSITIONAL_OR_KEYWORD if tensor else parameter.KEYWORD_ONLY)
        assert tensor or parameter.annotation in (
            float,
            int,
            str,
            float | None,
            int | None,
            float | Tensor | None,
            Tensor | None,
            ProcessGroup | None,
        )


@pytest.mark.parametrize("function", FUNCTIONS)
def test_there_is_a_plain_float_twin(function):
    twin = getattr(reference, function.__name__)
    assert list(inspect.signature(twin).parameters) == list(inspect.signature(function).parameters)


def test_the_twins_know_nothing_of_the_library():
    modules = Path(reference.__file__).parent.rglob("*.py")
    imported = {name for path in modules for name in imports(path)}
    assert {name.partition(".")[0] for name in imported} == {"math", "reference"}


# --- docstrings ---


def docstring_faults(doc):
    """List what a public docstring lacks: one sentence, an equation, the sections in order, an example."""
    faults = []
    summary, *rest = (doc or "").split("\n\n")
    if not (summary.endswith(".") and summary.count(".") == 1):
        faults.append("one sentence first")
    if "$" not in "".join(rest):
        faults.append("equation")
    lines = [line.strip() for line in (doc or "").splitlines()]
    if [line for line in lines if line in SECTIONS] != SECTIONS:
        faults.append("sections")
    if not any(line.startswith(">>> ") for line in lines):
        faults.append("example")
    return faults


@pytest.mark.parametrize("function", FUNCTIONS)
def test_docstring_is_whole(function):
    assert docstring_faults(function.__doc__) == []
    for parameter in inspect.signature(function).parameters:
        assert f"\n        {parameter}: " in function.__doc__


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (
            ("Divide the new probability of each token by the old one.", "Divide. Twice."),
            "one sentence first",
        ),
        (("$", ""), "equation"),
        (("Raises:", "Errors:"), "sections"),
        (("Gradient:", "Source:"), "sections"),
        ((">>>", ">>"), "example"),
    ],
)
def test_a_poor_docstring_is_seen(change, fault):
    assert docstring_faults(ppo_core.ratio.__doc__.replace(*change)) == [fault]
    assert docstring_faults(None) == ["one sentence first", "equation", "sections", "example"]


def griffe_warnings(package, folder, caplog):
    """Read a package as the documentation does; return its docstring warnings and the sections found."""
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        module = griffe.load(
            package, search_paths=[folder], docstring_parser="google", allow_inspection=False
        )
        members = [module[name] for name in module.exports]
        functions = [member.final_target if member.is_alias else member for member in members]
        sections = {
            f.name: [section.kind.value for section in f.docstring.parse("google")] for f in functions
        }
    return [record.getMessage() for record in caplog.records], sections


@pytest.mark.parametrize("package", [ppo_core, lab], ids=lambda package: package.__name__)
def test_the_documentation_reads_the_docstrings(package, caplog):
    warnings, sections = griffe_warnings(package.__name__, ROOT, caplog)
    assert warnings == []
    expected = ["text", "parameters", "returns", "raises", "admonition", "admonition", "examples"]
    assert sections == dict.fromkeys(package.__all__, expected)


def test_a_docstring_that_the_documentation_cannot_read_is_seen(tmp_path, caplog):
    (tmp_path / "poor.py").write_text(
        '__all__ = ["f"]\ndef f(x: int):\n    """Do.\n\n    Args:\n        y: No.\n    """\n'
    )
    warnings, _ = griffe_warnings("poor", tmp_path, caplog)
    assert any("'y' does not appear" in warning for warning in warnings)


# --- imports ---


def imports(path):
    """Return what a file imports, as dotted names; what comes from a package of ours counts as a module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = node.module in ("ppo_core", "lab")
            found |= {f"{node.module}.{alias.name}" for alias in node.names} if package else {node.module}
    return found


def wrong_directions(folder):
    """List the imports against the order: checks before masking before everything else, and no circle."""
    rank = {"checks": 0, "masking": 1, "ratios": 2, "surrogates": 3, "policy": 4, "kl": 4, "rewards": 5}
    rank |= {
        "pieces": 1,
        "closed_form": 2,
        "objective_terms": 3,
        "aggregation": 2,
        "recurrence": 2,
        "returns": 3,
        "groups": 2,
        "whitening": 4,
        "packing": 1,
        "sequence_policies": 5,
        "cispo": 3,
        "importance": 3,
        "kl_losses": 5,
        "distributions": 5,
        "controllers": 3,
        "distributed": 1,
        "sharded": 4,
        "values": 2,
        "logit_rows": 2,
        "entropies": 3,
        "unembedding": 2,
        "hidden": 4,
        "known_gradients": 0,
        "hidden_losses": 5,
        "preferences": 3,
        "objectives": 5,
        "diagnostics": 5,
    }
    rank |= {"__init__": 6}
    wrong = []
    for path in sorted(folder.glob("*.py")):
        for name in sorted(imports(path)):
            package, _, module = name.partition(".")
            if package == "ppo_core" and rank[module] >= rank[path.stem]:
                wrong.append(f"{path.stem} imports {module}")
    return wrong


def test_imports_inside_the_library_have_one_direction():
    folder = Path(ppo_core.__file__).parent
    assert sum(len(imports(path)) for path in folder.glob("*.py")) > 20
    assert wrong_directions(folder) == []


def test_an_import_against_the_direction_is_seen(tmp_path):
    (tmp_path / "checks.py").write_text("from ppo_core.masking import counted\n")
    (tmp_path / "masking.py").write_text("from ppo_core import kl, checks\n")
    assert wrong_directions(tmp_path) == ["checks imports masking", "masking imports kl"]


def brought_in(package, folder):
    """Return the packages that an import loads, beyond itself, torch and the standard library."""
    script = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); import torch; before = set(sys.modules); "
        f"import {package}; print(*sorted({{name.partition('.')[0] for name in set(sys.modules) - before}}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=folder
    )
    assert package in done.stdout.split()
    return set(done.stdout.split()) - {package, "torch"} - sys.stdlib_module_names


def test_the_library_brings_nothing_but_torch():
    assert brought_in("ppo_core", ROOT) == set()


def test_lab_brings_nothing_but_the_library():
    assert brought_in("lab", ROOT) == {"ppo_core"}


def test_a_foreign_import_is_seen(tmp_path):
    (tmp_path / "greedy.py").write_text("import json, foreign\n")
    (tmp_path / "foreign.py").touch()
    assert brought_in("greedy", tmp_path) == {"foreign"}
