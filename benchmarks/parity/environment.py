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
    subprocess.check_call([*pip, *[name for name in whole if name.startswith("torch==")]])
    subprocess.check_call([*pip, "--no-deps", *alone])
    subprocess.check_call([*pip, *whole])
    return 0


def _requirements(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


if __name__ == "__main__":
    sys.exit(main())
