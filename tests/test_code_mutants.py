"""Every arithmetic detail of the library and the laboratory is changed; something must notice each time.

First the content: a value with other digits, a check that fails. What the content does not see, the tests of the
library must. What neither sees must stand in EQUIVALENT, with the reason why no test could.
"""

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tqdm import tqdm

from build_tools.evaluate import evaluate_item
from build_tools.load import load
from build_tools.model import Item
from equivalent_mutants import EQUIVALENT
from mutants import Mutant, Target, all_mutants, applied, public, reached

ROOT = Path(__file__).parent.parent
# The tests of the library and its doctests. What test_library_surface runs it runs in processes of its own, which
# hold no mutant.
TESTS = (
    "ppo_core",
    "lab",
    "tests/library",
    "tests/lab",
    "tests/test_killers.py",
    "--ignore=tests/library/test_library_surface.py",
)
# The short version tries every 9th mutant of four modules, with their own tests and that for stray gradients.
SAMPLE = 9
SAMPLED = ("surrogates", "kl", "values", "aggregation")
MANY = 100
KILLED = 0.95  # of the mutants of the library, at least; the others are listed with their reasons


@pytest.fixture(scope="module")
def items(config) -> list[Item]:
    bank, faults = load(config.root)
    assert not faults
    return [item for document in bank.documents for item in document.items]


@pytest.fixture(scope="module")
def called(items, functions) -> dict[str, list[str]]:
    """The public functions that each item calls."""
    return {item.id: list(evaluate_item(item, functions)[0].functions) for item in items}


@pytest.fixture(scope="module")
def everything(functions) -> list[Mutant]:
    # The fixture `functions` has imported the packages, perhaps anew.
    return all_mutants(public())


def items_by_target(items: list[Item], called: Mapping, functions: Mapping) -> dict[Target, list[Item]]:
    """The items that can notice a change of the target: those that rest on it."""
    found: dict[Target, list[Item]] = {}
    for item in items:
        for target in reached(functions[name].call for name in called[item.id]):
            found.setdefault(target, []).append(item)
    return found


def content_notices(mutant: Mutant, items: list[Item], functions: Mapping) -> bool:
    with applied(mutant):
        for item in items:
            try:
                if evaluate_item(item, functions)[1]:
                    return True
            except Exception:  # the mutant may raise what no library function does; the build would stop
                return True
    return False


def killers(numbers: list[int], tests: tuple[str, ...], tell=lambda: None) -> dict[int, str | None]:
    """The test that fails under each of the mutants, or None; calls `tell` after each of them."""
    # Each runner runs all tests once without a mutant, so a second is worth it for many mutants only.
    count = (os.cpu_count() or 1) if len(numbers) > MANY else 1
    with ThreadPoolExecutor(count) as pool:
        parts = list(pool.map(lambda first: _killers(numbers[first::count], tests, tell), range(count)))
    return {number: killer for part in parts for number, killer in part.items()}


def _killers(numbers: list[int], tests: tuple[str, ...], tell) -> dict[int, str | None]:
    found: dict[int | str, str | None] = {}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            [sys.executable, Path(__file__).with_name("mutant_runner.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
        ) as run,
    ):
        run.stdin.write(json.dumps({"mutants": numbers, "tests": tests}))
        run.stdin.close()
        for line in run.stdout:
            number, killer = json.loads(line)
            found[number] = killer
            tell()
        errors.seek(0)
        assert run.wait() == 0, errors.read()
    failing = found.pop("none")
    assert failing is None, f"{failing} fails without any mutant"
    return found


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="each mutant runs in a forked process")


@needs_fork
@pytest.mark.parametrize(
    ("step", "modules", "tests"),
    [
        pytest.param(
            SAMPLE,
            tuple(f"ppo_core.{name}." for name in SAMPLED),
            (
                *(f"tests/library/test_{name}.py" for name in SAMPLED),
                "tests/library/test_every_function.py::test_no_gradient_reaches_the_other_inputs",
            ),
            id="a sample",
        ),
        pytest.param(1, ("ppo_core.", "lab."), TESTS, id="all", marks=pytest.mark.slow),
    ],
)
def test_every_mutant_is_noticed(items, called, everything, functions, capsys, step, modules, tests):
    witnesses = items_by_target(items, called, functions)
    # A mutant is known to the runner by its number among all.
    numbered = [
        (n, mutant) for n, mutant in enumerate(everything) if f"{mutant.target.module}.".startswith(modules)
    ]
    tried = dict(numbered[::step])
    with capsys.disabled(), tqdm(total=len(tried), unit="mutant", disable=None) as bar:
        by_content = {
            number
            for number, mutant in tried.items()
            if content_notices(mutant, witnesses.get(mutant.target, []), functions)
        }
        bar.update(len(by_content))
        # The long version runs the tests on the listed mutants too, so that none is listed without need.
        left = [n for n in tried if n not in by_content and (step == 1 or tried[n].key not in EQUIVALENT)]
        by_tests = killers(left, tests, bar.update)
    assert set(by_tests) == set(left)
    survivors = [tried[number] for number, killer in by_tests.items() if killer is None]
    print(
        f"{len(tried)} mutants tried: {len(by_content)} noticed by the content, "
        f"{len(left) - len(survivors)} by the tests, {len(tried) - len(left) + len(survivors) - len(by_content)} "
        "change no result"
    )
    assert by_content and left
    unknown = [str(mutant) for mutant in survivors if mutant.key not in EQUIVALENT]
    assert not unknown, "not noticed:\n" + "\n".join(unknown)
    if step == 1:
        alive, of_library = (
            sum(mutant.target.module.startswith("ppo_core.") for mutant in some)
            for some in (survivors, tried.values())
        )
        assert alive <= (1 - KILLED) * of_library
        assert {mutant.key for mutant in survivors} == set(EQUIVALENT)


def test_the_table_names_mutants_that_are_made(everything):
    assert set(EQUIVALENT) <= {mutant.key for mutant in everything}
    assert all(EQUIVALENT.values())


def test_no_function_of_the_library_is_left_out():
    written = {
        (f"ppo_core.{path.stem}", name)
        for path in (ROOT / "ppo_core").glob("*.py")
        for name in functions_of(ast.parse(path.read_text(encoding="utf-8")).body)
    }
    assert len(written) > 100
    assert written <= {(target.module, target.name) for target in reached(public())}


def functions_of(body: list[ast.stmt], prefix: str = "") -> list[str]:
    """The names of the functions and methods that are defined in the body of a module or a class."""
    found = []
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            found.append(prefix + statement.name)
        elif isinstance(statement, ast.ClassDef):
            found += functions_of(statement.body, f"{statement.name}.")
    return found


# --- the parts of this test


def known_mutant(everything: list[Mutant]) -> int:
    """The number of a mutant that the content and the tests notice."""
    changes = [(mutant.target.name, mutant.after) for mutant in everything]
    return changes.index(("clipped_surrogate", "return bounded / advantages"))


def test_without_content_the_content_notices_nothing(items, everything, functions):
    mutant = everything[known_mutant(everything)]
    assert content_notices(mutant, items, functions)
    assert not content_notices(mutant, [], functions)


@needs_fork
def test_tests_notice_only_what_they_look_at(tmp_path, everything):
    number = known_mutant(everything)
    (tmp_path / "empty").mkdir()
    assert killers([number], (str(tmp_path / "empty"),)) == {number: None}
    test = tmp_path / "test_one.py"
    test.write_text(
        "import torch, ppo_core\n\ndef test_two():\n    one, two = torch.ones(1), torch.full((1,), 2.0)\n"
        "    assert ppo_core.clipped_surrogate(one, two, epsilon=0.2).item() == 2\n",
        encoding="utf-8",
    )
    (killer,) = killers([number], (str(test),)).values()
    assert killer.endswith("test_one.py::test_two")
    test.write_text("def test_none():\n    assert False\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="test_none fails without any mutant"):
        killers([number], (str(test),))
