"""Make the environment with the peers: python benchmarks/parity/environment.py FOLDER

It is never the project's own: the peers pin old releases of what the project uses new ones of.
"""

import subprocess
import sys
from pathlib import Path

LIST = Path(__file__).parent / "peers.txt"
SECTION = "# With their dependencies:"


def main() -> int:
    folder = Path(sys.argv[1])
    python = folder / "bin" / "python"
    alone, whole = (_requirements(part) for part in LIST.read_text(encoding="utf-8").split(SECTION))
    if not python.exists():
        print(f"Making {folder} ...", flush=True)
        subprocess.check_call([sys.executable, "-m", "venv", str(folder)])
    print("Installing what benchmarks/parity/peers.txt names; this takes some minutes ...", flush=True)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    # First torch alone, so that nothing else chooses another.
    torch = [name for name in whole if name.startswith("torch==")]
    for names in (torch, ["--no-deps", *alone], whole):
        # That packages miss what they ask for is meant, and pip says it at length: it is heard when it fails.
        done = subprocess.run([*pip, *names], capture_output=True, text=True)
        if done.returncode:
            print(done.stdout + done.stderr)
            return done.returncode
    return 0


def _requirements(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


if __name__ == "__main__":
    sys.exit(main())
