"""Runs tests against mutants: the tests are collected once, then one forked process per mutant runs them.

    python tests/mutant_runner.py <request.json >answer.json

asks for {"functions": names of public functions, "mutants": numbers, "tests": paths and options} and answers with
{number: what killed it, or null}. Under the key "none" stands the run without a mutant, which must survive.
"""

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable

import pytest

from mutants import PACKAGES, Mutant, all_mutants, applied

SECONDS = 120  # a mutant that runs longer counts as killed


def public(names: Iterable[str]) -> list[Callable]:
    """The functions of these names, whichever package they are in."""
    packages = [importlib.import_module(package) for package in PACKAGES]
    return [getattr(package, name) for name in names for package in packages if hasattr(package, name)]


class Loop:
    """A pytest plugin that takes the place of the loop over the tests."""

    def __init__(self, request: dict):
        self.mutants = all_mutants(public(request["functions"]))
        self.numbers = request["mutants"]
        self.killers: dict[str, str | None] = {}

    def pytest_runtestloop(self, session) -> bool:
        self.killers["none"] = _in_a_fork(session, None)
        for number in self.numbers:
            self.killers[str(number)] = _in_a_fork(session, self.mutants[number])
        return True


def _in_a_fork(session, mutant: Mutant | None) -> str | None:
    """The first test that fails with the mutant in place, or None."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            signal.alarm(SECONDS)
            killer = _first_failure(session, mutant)
            os.write(writer, killer.encode())
            status = 0
        finally:
            # Without the endings of the parent: its reports, its exit handlers.
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        killer = pipe.read()
    _, status = os.waitpid(child, 0)
    return killer or (None if status == 0 else f"the process, which ended with status {status}")


def _first_failure(session, mutant: Mutant | None) -> str:
    if mutant is None:
        return _run(session, session.items)
    with applied(mutant):
        return _run(session, sorted(session.items, key=lambda item: _distance(item.nodeid, mutant)))


def _run(session, items: list) -> str:
    for item, following in zip(items, [*items[1:], None], strict=False):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return item.nodeid
    return ""


def _distance(nodeid: str, mutant: Mutant) -> int:
    """Tests that are likely to fail come first, slow ones last."""
    if "compile" in nodeid:
        return 3
    if mutant.target.name in nodeid:
        return 0
    return 1 if mutant.target.module.split(".")[-1] in nodeid else 2


def main() -> None:
    import torch

    # A forked process can use no pool of threads of its parent's.
    torch.set_num_threads(1)
    request = json.load(sys.stdin)
    loop = Loop(request)
    answer = os.dup(1)
    # What pytest prints goes where it does not mix with the answer.
    os.dup2(2, 1)
    status = pytest.main([*request["tests"], "--tb=short", "-p", "no:cacheprovider"], plugins=[loop])
    if set(loop.killers) != {"none", *map(str, loop.numbers)}:
        sys.exit(f"pytest ended with {status} before all mutants were tried")
    with os.fdopen(answer, "w") as file:
        json.dump(loop.killers, file)


if __name__ == "__main__":
    main()
