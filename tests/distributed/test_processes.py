"""Two and four processes compute what one does: each claim of claims.py, on real process groups (gloo, CPU).

All claims run in one launch. A launch that hangs is ended and has failed.
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
SIZES = (2, 4)
# Seconds. On a machine at rest a launch takes a tenth of it.
LIMIT = 240


def launch(folder: Path, names: list[str], limit: float = LIMIT) -> dict[int, list[dict[str, str]]]:
    """Run claims on both numbers of ranks; return what came of them, rank by rank."""
    sizes = ",".join(map(str, SIZES))
    command = [sys.executable, "-m", "distributed.launch", str(folder), sizes, *names]
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
    silence = {"failure": said.decode(errors="replace")}

    def outcome(path: Path) -> dict[str, str]:
        return json.loads(path.read_text()) if path.exists() else silence

    return {size: [outcome(folder / f"{size}/{rank}.json") for rank in range(size)] for size in SIZES}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What came of all claims on the ranks of one launch."""
    return launch(tmp_path_factory.mktemp("ranks"), list(CLAIMS))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("claim", CLAIMS)
def test_holds_on_every_rank(claim, size, outcomes):
    ranks = outcomes[size]
    failures = "\n\n".join(
        f"rank {n}: {each['failure']}" for n, each in enumerate(ranks) if "failure" in each
    )
    assert [each.get(claim) for each in ranks] == ["holds"] * size, failures


def test_a_claim_that_fails_is_seen(tmp_path):
    # There is no claim of this name.
    for ranks in launch(tmp_path, ["no_such_claim"]).values():
        # A rank may see the others go before it comes to its own fault.
        assert all(each["failure"] for each in ranks)
        assert any("KeyError" in each["failure"] for each in ranks)


def test_a_launch_that_hangs_is_ended(tmp_path):
    # After a tenth of a second nothing has begun.
    for ranks in launch(tmp_path, ["whitening"], limit=0.1).values():
        assert all(each["failure"].endswith("ended after 0.1 seconds") for each in ranks)
