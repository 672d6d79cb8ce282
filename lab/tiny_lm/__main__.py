"""Run PPO on the small model: `python -m lab.tiny_lm --seeds 0 1 2`. It takes less than two minutes."""

import argparse
import json
import time
from collections.abc import Iterable
from pathlib import Path

from tqdm import tqdm

from build_tools.svg import to_svg
from lab.drawing import COLOURS
from lab.tiny_lm.experiment import MARGIN, SEEDS, results
from lab.tiny_lm.plot import reward_and_kl
from lab.tiny_lm.train import Settings


def main(arguments: list[str] | None = None) -> None:
    """Run the seeds, say what came out, and write it down beside its plot."""
    parser = argparse.ArgumentParser(prog="python -m lab.tiny_lm", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="one run for each; 0 1 2")
    parser.add_argument("--beta", type=float, default=Settings().beta, help="strength of the leash")
    parser.add_argument("--iterations", type=int, default=Settings().iterations, help="of PPO, for each seed")
    parser.add_argument("--out", type=Path, default=Path("build/tiny-run"), help="folder for the results")
    chosen = parser.parse_args(arguments)
    if len(set(chosen.seeds)) < len(chosen.seeds):
        parser.error("a seed is given twice; its second run would be the first again, and no spread")
    settings = Settings(beta=chosen.beta, iterations=chosen.iterations)
    started, computed = time.perf_counter(), time.process_time()
    found = results(chosen.seeds, settings, bar=progress_bar)
    # On a machine that others use too, the two differ: the second is what the run costs.
    seconds, cost = time.perf_counter() - started, time.process_time() - computed
    print(summary(found))
    print(f"{seconds:.0f} seconds, {cost:.0f} of CPU time")
    for path in write(found, chosen.out):
        print(path)


def progress_bar(steps: Iterable[int], *, total: int, name: str) -> tqdm:
    """Go through the steps with a bar on the terminal."""
    return tqdm(steps, total=total, desc=name, leave=False)


def summary(found: dict) -> str:
    """Return the results as a table in Markdown, and the verdict below it when there is one."""
    rows = [
        "| seed | reward before | reward after | KL after, nats | sentences before | sentences after |",
        "|---|---|---|---|---|---|",
    ]
    for run in found["runs"]:
        before, after = run["before"], run["after"]
        rows.append(
            f"| {run['seed']} | {before['score']:.2f} | {after['score']:.2f} | {after['kl']:.2f} "
            f"| {before['grammatical']:.1%} | {after['grammatical']:.1%} |"
        )
    if verdict := found.get("claim"):
        answer = "it learns" if verdict["holds"] else "it does not count as learning"
        rows += [
            "",
            f"Gain {verdict['gain']:.2f}, spread {verdict['spread']:.2f}: "
            f"{verdict['gain'] / verdict['spread']:.1f} spreads, where {MARGIN:g} are asked for; {answer}.",
        ]
    return "\n".join(rows)


def write(found: dict, folder: Path) -> list[Path]:
    """Write the results and, drawn from them alone, the plot; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {"results.json": json.dumps(found, indent=1) + "\n"} | plots(found)
    for name, text in content.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in content]


def plots(found: dict) -> dict[str, str]:
    """Return the SVG of each panel by its file name, the same bytes on every run."""
    # The strength of the leash is in the ids, so that two runs can stand on one page.
    leash = f"{found['settings']['beta']}".replace(".", "-")
    return {
        f"{name}.svg": to_svg(figure, alt=alt, key=f"tiny-run-{name}-{leash}", colours=COLOURS) + "\n"
        for name, (figure, alt) in zip(("reward", "kl"), reward_and_kl(found), strict=True)
    }


if __name__ == "__main__":
    main()
