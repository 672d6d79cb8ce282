"""Runs tests against mutants: the tests are collected once, then one forked process per mutant runs them.

    python tests/mutant_runner.py <request.json >answer.jsonl

asks for {"mutants": numbers among all mutants of the public functions, "tests": paths and options}. Each line of the
answer is [number, what killed it, or null], as soon as it is known. The first, ["none", ...], is the run without a
mutant, which must survive. That run also finds out which tests reach which function: against a mutant run only the
tests that reach it.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

import pytest

from mutants import Mutant, all_mutants, applied, public

MARGIN = 60  # seconds; a mutant that runs so much longer than all tests without one counts as killed


class Loop:
    """A pytest plugin that takes the place of the loop over the tests."""

    def __init__(self, request: dict, answer: TextIO):
        self.mutants = all_mutants(public())
        self.numbers = request["mutants"]
        self.answer = answer
        self.complete = False

    def pytest_runtestloop(self, session) -> bool:
        started = time.monotonic()
        files = {mutant.target.path for mutant in self.mutants}
        found = _in_a_fork(lambda: _reached_by(session, files))
        without = found if isinstance(found, str) else None
        self.tell("none", without)
        if without:
            self.complete = True
            return True
        limit = MARGIN + int(time.monotonic() - started)
        for number in self.numbers:
            mutant = self.mutants[number]
            items = [item for item in session.items if _reaches(found[item.nodeid], mutant)]
            killer = _in_a_fork(lambda mutant=mutant, items=items: _killer(session, items, mutant), limit)
            self.tell(number, killer)
        self.complete = True
        return True

    def tell(self, number: int | str, killer: str | None) -> None:
        print(json.dumps([number, killer]), file=self.answer, flush=True)


def _in_a_fork(work: Callable, limit: int = 0):
    """What the work returns, done in a process of its own; how that ended if it came to no end within the limit."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            signal.alarm(limit)
            with os.fdopen(writer, "w") as pipe:
                json.dump(work(), pipe)
            status = 0
        finally:
            # Without the endings of the parent: its reports, its exit handlers.
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(answer) if status == 0 else f"the process, which ended with status {status}"


def _reached_by(session, files: set[str]) -> dict[str, list] | str:
    """The file and name of every function that each test calls, or the first test that fails."""
    found: dict[str, list] = {}
    called: set[tuple[str, str]] = set()

    def note(frame, event, _) -> None:
        if event == "call" and frame.f_code.co_filename in files:
            called.add((frame.f_code.co_filename, frame.f_code.co_qualname.partition(".<locals>")[0]))

    def before(item) -> None:
        called.clear()

    def after(item) -> None:
        found[item.nodeid] = sorted(called)

    threading.setprofile(note)
    sys.setprofile(note)
    failing = _run(session, session.items, before, after)
    return failing or found


def _reaches(called: list, mutant: Mutant) -> bool:
    """Whether a test that calls these functions runs the mutant: a number has its users in its own file."""
    target = mutant.target
    return any(path == target.path and (name == target.name or target.is_number) for path, name in called)


def _killer(session, items: list, mutant: Mutant) -> str | None:
    with applied(mutant):
        return _run(session, sorted(items, key=lambda item: _distance(item.nodeid, mutant)))


def _nothing(item) -> None:
    pass


def _run(session, items: list, before: Callable = _nothing, after: Callable = _nothing) -> str | None:
    """The first of the tests that fails."""
    for item, following in zip(items, [*items[1:], None], strict=False):
        before(item)
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        after(item)
        if session.testsfailed:
            return item.nodeid
    return None


def _distance(nodeid: str, mutant: Mutant) -> int:
    """Tests that are likely to fail come first, slow ones last."""
    if "compile" in nodeid or "inductor" in nodeid:
        return 3
    if mutant.target.name in nodeid:
        return 0
    return 1 if mutant.target.module.split(".")[-1] in nodeid else 2


def main() -> None:
    import torch

    # A forked process can use no pool of threads of its parent's.
    torch.set_num_threads(1)
    request = json.load(sys.stdin)
    loop = Loop(request, os.fdopen(os.dup(1), "w"))
    # What pytest prints goes where it does not mix with the answer.
    os.dup2(2, 1)
    status = pytest.main([*request["tests"], "--tb=short", "-p", "no:cacheprovider"], plugins=[loop])
    if not loop.complete:
        sys.exit(f"pytest ended with {status} before all mutants were tried")


if __name__ == "__main__":
    main()
