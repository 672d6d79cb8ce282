"""What is asked, and which sizes are measured."""

from dataclasses import dataclass

from benchmarks.losses.inputs import Size


@dataclass(frozen=True)
class Goal:
    """One number to reach.

    `kind` says which: "faster", the time of `beside` over ours, at least `bound`; "within", our time over that
    of `beside`, at most `bound`; "growth", our time over that of our own `smaller` size, at most `bound`;
    "memory", our peak beyond inputs and gradients over that of `beside`, or over the bytes of the input of that
    name, at most `bound`. A goal that is missed needs a `why`, in which {floor} is the time of `beside` over that of
    the floor.
    """

    operation: str
    size: Size
    kind: str
    beside: str
    bound: float
    ours: str = "ours"
    smaller: Size | None = None
    why: str = ""


SHORT, LONG, LONGEST = (64, 2048), (8, 16384), (8, 65536)
BATCH = (512, 2048)
LOGITS = (4, 256, 32000)
STATES, MANY_STATES = (1024, 512, 32000), (8192, 512, 32000)

CACHED = (
    "The tensors fit the last cache of the processor, so the floor is that of a cache, not of main memory. To read a "
    "token's mask and to raise its log-ratio to a ratio takes longer than to copy its numbers there."
)
TWICE_READ = (
    "The clip fractions and the mean log-ratio are functions of their own here: they read the batch again, and raise the "
    "log-ratios to ratios a second time. verl makes them while it makes the loss."
)
NEW_MEMORY = (
    "The floor itself is only {floor} times as fast: most of it is the time in which the operating system hands out "
    "the memory of the gradient, page by page, as every new gradient needs it."
)
PRODUCTS = (
    "The floor, the three matrix products alone, is only {floor} times as fast. What is left between is one pass over the "
    "logits forward and one back."
)

# Those that were beaten by far have been raised since they were set.
GOALS = (
    Goal("gae", SHORT, "faster", "verl", 60),
    Goal("gae", SHORT, "faster", "torchrl", 8),
    Goal("gae", LONG, "faster", "verl", 300),
    Goal("gae", LONG, "faster", "torchrl", 6),
    # Linear is 4; what no longer fits the caches takes longer by itself.
    Goal("gae", LONGEST, "growth", "ours", 5, smaller=LONG),
    Goal("gae_holes", SHORT, "faster", "verl", 50),
    Goal("gae_packed", SHORT, "faster", "verl", 35),
    Goal("policy", BATCH, "faster", "verl", 8),
    Goal("policy", BATCH, "faster", "verl", 25, ours="ours compiled"),
    Goal("policy", BATCH, "within", "floor", 4, ours="ours compiled", why=CACHED),
    Goal("objective", BATCH, "faster", "verl", 8, why=TWICE_READ),
    Goal("logprobs", LOGITS, "faster", "plain", 2.2),
    Goal("logprobs", LOGITS, "faster", "TRL", 4.5, why=NEW_MEMORY),
    Goal("logprobs", LOGITS, "faster", "verl", 3.5, why=NEW_MEMORY),
    Goal("logprobs", LOGITS, "within", "floor", 2),
    Goal("logprobs", LOGITS, "memory", "logits", 0.05),
    Goal("logprobs_entropies", LOGITS, "faster", "verl", 4.5),
    Goal("hidden", STATES, "faster", "Liger", 1.5, why=PRODUCTS),
    Goal("hidden", STATES, "faster", "plain", 1),
    Goal("hidden", MANY_STATES, "memory", "plain", 0.1),
)

# Beside a goal, for information.
BESIDE = {
    ("policy", BATCH): ("verl compiled",),
    ("hidden", MANY_STATES): ("Liger",),
}

# For the plots: once each.
GROWTH = (
    *(("gae", (8, steps), ("ours", "verl", "torchrl", "floor")) for steps in (256, 1024, 4096, 65536)),
    *(("policy", (rows, 2048), ("ours", "verl", "floor")) for rows in (8, 32, 128)),
    *(
        ("logprobs", (4, 256, size), ("ours", "plain", "TRL", "verl", "floor"))
        for size in (2000, 8000, 128000)
    ),
    *(("hidden", (count, 512, 32000), ("ours", "plain", "Liger", "floor")) for count in (128, 512, 2048)),
    ("hidden", (4096, 512, 32000), ("ours", "plain", "Liger")),
)
# Too long to be timed often: their memory alone.
MEMORY_ONLY = {("hidden", (4096, 512, 32000)), ("hidden", MANY_STATES)}


@dataclass(frozen=True)
class Case:
    """What is measured at one size, and in how many rounds each side."""

    operation: str
    size: Size
    rounds: dict[str, int]
    timed: bool


def cases(rounds: int) -> list[Case]:
    """All that is measured: what the goals need in several rounds, what only a plot needs in one."""
    found: dict[tuple[str, Size], dict[str, int]] = {}
    for goal in GOALS:
        for size in (goal.size, goal.smaller):
            if size:
                sides = {"ours", goal.ours, goal.beside, "floor"} - {"logits"}
                found.setdefault((goal.operation, size), {}).update(dict.fromkeys(sorted(sides), rounds))
    for key, sides in BESIDE.items():
        found[key] |= dict.fromkeys(sides, rounds)
    for operation, size, sides in GROWTH:
        found[operation, size] = dict.fromkeys(sides, 1) | found.get((operation, size), {})
    return [
        Case(
            *key,
            {side: 1 if key in MEMORY_ONLY else count for side, count in sides.items()},
            key not in MEMORY_ONLY,
        )
        for key, sides in found.items()
    ]
