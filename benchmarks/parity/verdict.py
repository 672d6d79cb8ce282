"""What became of a difference: theirs, ours and the right answer."""

from benchmarks.parity.compare import differ
from benchmarks.parity.differences import Difference
from benchmarks.parity.ours import missing, our_names
from benchmarks.parity.run import by_hand, plain, result

ERROR = "an error"


def ours_and_right(row: Difference) -> tuple[dict, object]:
    """Our result and the right answer; `ERROR` where raising is right."""
    return result(row.ours, our_names()), plain(by_hand(row.right))


def our_fault(row: Difference) -> str | None:
    """Say how ours misses the right answer; None: it does not."""
    ours, right = ours_and_right(row)
    if right == ERROR:
        return None if "error" in ours else f"ours should raise and gives {ours['value']}"
    if "error" in ours:
        return f"ours raises: {ours['error']}"
    found = differ(right, ours["value"], row.tolerance, floor=0.0)
    return found and f"right is {right}, ours {ours['value']}"


def verdict(row: Difference, theirs: dict) -> dict:
    """Theirs beside ours; a `fault` if ours is not right, or if there is no difference any more."""
    waits = missing(row.ours)
    if waits:
        return {"theirs": theirs, "waits": waits, "fault": None}
    ours, right = ours_and_right(row)
    fault = our_fault(row)
    if not fault and "value" in theirs and right != ERROR:
        if differ(right, theirs["value"], row.tolerance, floor=0.0) is None:
            fault = f"theirs gives the right answer now, {theirs['value']}"
    if not fault and "error" in theirs and right == ERROR:
        fault = f"theirs raises now: {theirs['error']}"
    return {"theirs": theirs, "ours": ours, "right": right, "fault": fault}
