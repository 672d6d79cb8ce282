"""Makes the virtual environment that everything runs in: python3 scripts/setup.py [FOLDER].

Runs before anything is installed, on any Python 3, so that a Python that is too old is told so.
"""

import os
import subprocess
import sys

OLDEST = (3, 11, 5)


def main():
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:3]))
        print(
            "Python 3.11.5 or newer is needed; this is " + found + ". With make: make site PYTHON=python3.12"
        )
        return 1
    folder = sys.argv[1] if len(sys.argv) > 1 else ".venv"
    python = os.path.join(folder, "Scripts" if os.name == "nt" else "bin", "python")
    if not os.path.exists(python):
        print("Making " + folder + " ...", flush=True)
        subprocess.check_call([sys.executable, "-m", "venv", folder])
    print("Installing what constraints.txt pins; this takes a minute or two the first time ...", flush=True)
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    subprocess.check_call([*pip, "-c", "constraints.txt", "-e", ".[site,test]"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
