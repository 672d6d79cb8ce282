"""Makes an environment with the oldest torch that pyproject.toml admits: python scripts/oldest.py FOLDER.

Beside torch and what torch brings, it has what the tests of the library need. There is no NumPy: the library must do
without.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
# What tests/library imports beside torch.
TOOLS = ("hypothesis", "mpmath", "pytest")


def floor() -> str:
    """The oldest torch that the package admits, as its requirement names it: 2.6."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (requirement,) = project["dependencies"]
    found = re.fullmatch(r"torch>=(\d+\.\d+)", requirement)
    if found is None:
        sys.exit(f"pyproject.toml requires {requirement}; scripts/oldest.py expects torch>= and two numbers")
    return found[1]


def requirements() -> list[str]:
    """What is installed: the first release of that torch, and the tools as constraints.txt pins them."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [f"torch=={floor()}.0", *(pin for pin in pins if pin.split("==")[0] in TOOLS)]


def main() -> int:
    folder = Path(sys.argv[1])
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"Making {folder} ...", flush=True)
        subprocess.check_call([sys.executable, "-m", "venv", str(folder)])
    wanted = requirements()
    print(f"Installing {wanted[0]}; this takes some minutes the first time ...", flush=True)
    subprocess.check_call(
        [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *wanted]
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
