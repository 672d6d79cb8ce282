"""Two and four processes compute what one does: each claim of claims.py, on real process groups (gloo, CPU).

All claims of a number of ranks run in one launch. A launch that hangs is ended and has failed.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from distributed.claims import CLAIMS

TESTS = Path(__file__).parents[1]
# Seconds. On a machine at rest a launch takes a tenth of it.
LIMIT = 150


def launch(size: int, folder: Path, names: list[str], limit: float = LIMIT) -> list[dict[str, str]]:
    """Run claims on so many ranks; return what came of them, rank by rank."""
    command = [sys.executable, "-m", "distributed.launch", str(size), str(folder), *names]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)]),
        "OMP_NUM_THREADS": "1",
    }
    # In a session of its own, so that no rank outlives a launch that is ended.
    process = subprocess.Popen(
        command, env=environment, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        said, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        said += f"\nended after {limit} seconds".encode()
    outcomes = []
    for rank in range(size):
        path = folder / f"{rank}.json"
        outcomes.append(
            json.loads(path.read_text()) if path.exists() else {"failure": said.decode(errors="replace")}
        )
    return outcomes


@pytest.fixture(scope="module", params=[2, 4], ids=["2 processes", "4 processes"])
def outcomes(request, tmp_path_factory):
    """What came of all claims on the ranks of one launch."""
    return launch(request.param, tmp_path_factory.mktemp("ranks"), list(CLAIMS))


@pytest.mark.parametrize("claim", CLAIMS)
def test_holds_on_every_rank(claim, outcomes):
    failures = "\n\n".join(
        f"rank {n}: {each['failure']}" for n, each in enumerate(outcomes) if "failure" in each
    )
    assert [each.get(claim) for each in outcomes] == ["holds"] * len(outcomes), failures


def test_a_claim_that_fails_and_one_that_hangs_are_seen(tmp_path):
    # There is no claim of this name.
    for outcome in launch(2, tmp_path, ["no_such_claim"]):
        assert "KeyError" in outcome["failure"]
    (tmp_path / "hang").mkdir()
    for outcome in launch(2, tmp_path / "hang", ["whitening"], limit=0.1):
        assert outcome["failure"].endswith("ended after 0.1 seconds")
