"""Runs claims on the ranks of process groups, each a process; what came of them is written to folders.

    python -m distributed.launch FOLDER SIZES CLAIM...

The folder has one for each size, and there each rank writes a file. Torch is imported once, and the ranks are forks
of this process: the import takes longer than the claims.
"""

import json
import multiprocessing
import sys
import traceback
import warnings
from datetime import timedelta
from pathlib import Path

import torch
import torch._dynamo  # FSDP and torch.compile would import it in every fork
import torch.distributed as dist

from distributed.claims import CLAIMS, World


def work(rank: int, size: int, folder: Path, names: list[str]) -> None:
    """Be one rank: run the claims up to the first that fails, and write what came of each."""
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    outcomes = {}
    try:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{folder}/store",
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=60),
        )
        for name in names:
            outcomes[name] = "began"
            CLAIMS[name](World(rank, size))
            outcomes[name] = "holds"
        dist.destroy_process_group()
    except BaseException:
        # The ranks are out of step now; to go on would say nothing.
        outcomes["failure"] = traceback.format_exc()
        raise
    finally:
        (folder / f"{rank}.json").write_text(json.dumps(outcomes))


def main(size: int, folder: Path, names: list[str]) -> None:
    folder.mkdir()
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    ranks = [
        context.Process(target=work, args=(rank, size, folder, names), daemon=True) for rank in range(size)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()


if __name__ == "__main__":
    for ranks in sys.argv[2].split(","):
        main(int(ranks), Path(sys.argv[1]) / ranks, sys.argv[3:])
