"""The wheel installs and works where there is nothing but torch."""

import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
LICENCES = {"licenses/LICENSE", "licenses/LICENSE-CONTENT"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of the project as it is."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True
    )
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A folder with the wheel in it, as pip installs it."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--quiet",
            "install",
            "--no-deps",
            "--no-index",
            "--target",
            folder,
            wheel,
        ],
        check=True,
    )
    return folder


@pytest.fixture(scope="module")
def torch_alone(tmp_path_factory) -> Path:
    """A folder with torch and what torch itself asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("torch_alone")
    found: dict[str, Distribution] = {}
    waiting = ["torch"]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = distribution(name)
            waiting += needed(found[name])
    for each in found.values():
        for top in {file.parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(each.locate_file(top))
    return folder


def needed(of: Distribution) -> list[str]:
    """The packages that a distribution asks for when it is installed without extras."""
    requirements = [Requirement(each) for each in of.requires or ()]
    return [each.name for each in requirements if not each.marker or each.marker.evaluate({"extra": ""})]


def python(code: str, *folders: Path) -> subprocess.CompletedProcess:
    """Runs the code where the folders and the standard library are all there is."""
    script = f"import sys; sys.path += {[str(folder) for folder in folders]}\n{code}"
    return subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True)


def test_the_wheel_has_the_types_and_the_licences(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {f"ppo_core/{path.name}" for path in (ROOT / "ppo_core").glob("*.py")}
    assert names >= modules | {"ppo_core/py.typed"}
    assert {name.split(".dist-info/")[-1] for name in names} >= LICENCES


def test_the_wheel_asks_for_torch_alone(installed):
    (folder,) = installed.glob("ppo_core-*.dist-info")
    assert needed(PathDistribution(folder)) == ["torch"]


@pytest.mark.parametrize("package", ["ppo_core", "lab"])
def test_a_package_works_beside_torch_alone(package, installed, torch_alone):
    # Every public function is there, and a loss has its gradient.
    run = python(
        f"import torch, {package}\n"
        f"print({package}.__file__)\n"
        f"print(all(callable(getattr({package}, name)) for name in {package}.__all__))\n"
        "from ppo_core import policy_loss\n"
        "x = torch.zeros(2, requires_grad=True)\n"
        "policy_loss(x, x, torch.ones(2), epsilon=0.2).sum().backward()\n"
        "print(x.grad.tolist())",
        installed,
        torch_alone,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [str(installed / package / "__init__.py"), "True", "[-1.0, -1.0]"]


def test_beside_torch_alone_nothing_else_can_be_imported(torch_alone):
    code = "from importlib.util import find_spec\nprint([name for name in {} if find_spec(name)])"
    names = ["torch", "numpy", "pytest", "matplotlib", "ppo_core"]
    assert python(code.format(names), torch_alone).stdout == "['torch']\n"
