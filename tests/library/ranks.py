"""The ranks of a process group as threads of one process: quick, and with the code of this process.

The collectives are real, gloo's. What only whole processes can show (a launcher, `DistributedDataParallel`,
FSDP) is in tests/distributed.
"""

import os
import threading
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import ProcessGroup

# Seconds. A rank that waits for one that failed gives up; so does the test.
PATIENCE = 20
# The groups of each number of ranks. They are used again, for each has threads and sockets of its own, and none ends
# before the tests do: torch 2.6 can hang or abort where a group ends soon after its last collective.
_groups = {}
_out_of_step = []


def on_ranks(count, function):
    """Call `function(rank, group)` on every rank at the same time; return the results, rank by rank."""
    results, failures = [None] * count, []
    key = os.getpid(), count  # no thread survives a fork
    groups = _groups.setdefault(key, [None] * count)
    store = dist.HashStore()

    def work(rank):
        try:
            groups[rank] = groups[rank] or _group(store, rank, count)
            results[rank] = function(rank, groups[rank])
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
    if failures or any(thread.is_alive() for thread in threads):
        _out_of_step.append(_groups.pop(key))
    if failures:
        # The others failed because this one was missing.
        raise failures[0]
    assert not any(thread.is_alive() for thread in threads), "a rank hangs"
    return results


def _group(store, rank, count):
    """Make a group as torch.distributed.init_process_group does, but one for each thread."""
    backend = dist.ProcessGroupGloo(store, rank, count, timeout=timedelta(seconds=PATIENCE))
    group = ProcessGroup(dist.PrefixStore("group", store), rank, count)
    for device in ("cpu", *(["cuda"] if torch.cuda.is_available() else [])):
        group._register_backend(torch.device(device), ProcessGroup.BackendType.GLOO, backend)
    group._set_default_backend(ProcessGroup.BackendType.GLOO)
    return group


def sizes(whole, ranks):
    """List ways to divide a whole over ranks: all unevenly, and some leave a rank with nothing."""
    uneven = [whole - ranks + 1, *[1] * (ranks - 1)]
    if ranks == 1:
        return [uneven]
    first_empty = [0, whole - ranks + 2, *[1] * (ranks - 2)]
    one_has_all = [0] * (ranks - 1) + [whole]
    return [uneven, first_empty, one_has_all]
