"""The import directions of the design, read from the source; and each rule with a breach that must be found."""

import ast
import shutil
import sys
from pathlib import Path

import pytest

from conftest import ROOT

# Each module of the tools may import those of the layers below its own and, where it is not a stage, of its own layer.
LAYERS = (
    ("errors",),
    ("model", "config"),
    (
        "abbreviations", "arithmetic", "atlas", "blocks", "cache", "checks", "digits", "equations", "expression", "guide", "interpret", "items", "libraries",
        "listing", "markdown_math", "markup", "names", "outcomes", "prose", "references", "schema", "snippet", "source", "svg", "tex", "tex_check", "tokens", "yaml_text",
    ),
    ("load", "evaluate", "figures", "render", "write"),
    ("site",),
    ("mkdocs_plugin", "publish"),
    ("__main__",),
)  # fmt: skip
STAGES = LAYERS[3]

# Who of the tools may import what from outside. What is not named here may be imported by all.
OUTSIDE = {
    "torch": {"interpret"},
    "matplotlib": {"figures", "svg"},
    "mkdocs": {"mkdocs_plugin", "publish"},
    "markdown": {"markdown_math"},
    "math_core": {"tex"},
    "yaml": {"yaml_text"},
    "ppo_core": set(),
    "lab": set(),
}
# What the lowest modules of ppo_core may import of it; the others may import any module, but not the package.
BELOW = {"checks": set(), "masking": {"checks"}}
# Which stage may call what of the file system: content is read in load, pages are written in write.
READS = {"read_text", "read_bytes", "rglob", "glob", "iterdir", "open"}
WRITES = {
    "write_text",
    "write_bytes",
    "mkdir",
    "unlink",
    "rmdir",
    "replace",
    "rename",
    "mkstemp",
    "rmtree",
    "open",
}


def imports(path: Path) -> set[str]:
    """Every module that the file imports, at its top and inside functions, by its full name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relative to itself"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.py")) if path.stem != "__init__"}


def tools_breaches(root: Path) -> list[str]:
    """What the tools import that they may not."""
    found = []
    known = modules(root / "build_tools")
    layer = {name: number for number, names in enumerate(LAYERS) for name in names}
    found += [f"build_tools.{name} is in no layer" for name in sorted(known.keys() - layer.keys())]
    for name, path in known.items():
        imported = imports(path)
        for other in sorted(
            {each.split(".")[1] for each in imported if each.startswith("build_tools.")} & known.keys()
        ):
            below = layer.get(other, 0) < layer.get(name, 99)
            beside = layer.get(other, 0) == layer.get(name, 99) and name not in STAGES
            if not (below or beside):
                found.append(f"build_tools.{name} imports {other}")
        for package in sorted({each.split(".")[0] for each in imported}):
            if name not in OUTSIDE.get(package, {name}):
                found.append(f"build_tools.{name} imports {package}")
    return found


def called(path: Path) -> set[str]:
    """The names of the methods and functions that the file calls."""
    calls = [
        node.func
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]
    return {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in calls}


def disk_breaches(root: Path) -> list[str]:
    """Which stages touch the disk and may not."""
    found = []
    for stage in STAGES:
        calls = called(root / "build_tools" / f"{stage}.py")
        # str.replace and os.replace look the same here; only write needs the latter, and it makes temporary files too.
        if stage not in ("load", "write"):
            found += [f"build_tools.{stage} reads with {name}" for name in sorted(calls & READS)]
        if stage != "write":
            found += [
                f"build_tools.{stage} writes with {name}"
                for name in sorted(calls & (WRITES - {"replace", "open"}))
            ]
    return found


def ppo_core_breaches(root: Path) -> list[str]:
    """ppo_core imports torch, the standard library's maths and itself: checks <- masking <- everything else."""
    found = []
    files = modules(root / "ppo_core")
    for name, path in files.items():
        for imported in sorted(imports(path)):
            package, _, rest = imported.partition(".")
            if package not in ("torch", "math", "collections", "typing", "ppo_core"):
                found.append(f"ppo_core.{name} imports {imported}")
            if package == "ppo_core" and rest.split(".")[0] not in BELOW.get(name, files):
                found.append(f"ppo_core.{name} imports {imported}")
    return found


def lab_breaches(root: Path) -> list[str]:
    """lab imports ppo_core and torch, and matplotlib (whose arrays are numpy's) only to draw; what is run may show."""
    found = []
    for path in sorted((root / "lab").rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        packages = {name.split(".")[0] for name in imports(path)}
        allowed = {"torch", "ppo_core", "lab", *sys.stdlib_module_names}
        if module == "lab.drawing":
            allowed |= {"matplotlib", "numpy"}
        elif module.startswith("lab.figures."):
            allowed.add("matplotlib")
        elif module == "lab.tiny_lm.__main__":
            allowed |= {"tqdm", "build_tools"}  # the progress bar, and a figure as SVG
        found += [f"{module} imports {name}" for name in sorted(packages - allowed)]
    return found


def breaches(root: Path) -> list[str]:
    return [
        each
        for check in (tools_breaches, disk_breaches, ppo_core_breaches, lab_breaches)
        for each in check(root)
    ]


def test_the_directions_hold():
    assert breaches(ROOT) == []


def test_every_module_has_a_layer_and_every_layer_its_modules():
    assert {name for names in LAYERS for name in names} == set(modules(ROOT / "build_tools"))
    assert len(modules(ROOT / "ppo_core")) >= 7
    assert len(modules(ROOT / "lab")) >= 4


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("build_tools", "ppo_core", "lab"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize(
    ("module", "line", "breach"),
    [
        ("build_tools/errors", "from build_tools.model import Word", "build_tools.errors imports model"),
        ("build_tools/errors", "from build_tools import digits", "build_tools.errors imports digits"),
        ("build_tools/model", "import build_tools.prose", "build_tools.model imports prose"),
        ("build_tools/prose", "from build_tools.load import load", "build_tools.prose imports load"),
        (
            "build_tools/load",
            "from build_tools.evaluate import evaluate",
            "build_tools.load imports evaluate",
        ),
        ("build_tools/render", "    from build_tools import write", "build_tools.render imports write"),
        ("build_tools/write", "from build_tools.site import make", "build_tools.write imports site"),
        ("build_tools/site", "from build_tools import publish", "build_tools.site imports publish"),
        ("build_tools/publish", "import build_tools.__main__", "build_tools.publish imports __main__"),
        ("build_tools/render", "import torch", "build_tools.render imports torch"),
        ("build_tools/snippet", "    from torch import nn", "build_tools.snippet imports torch"),
        ("build_tools/evaluate", "import matplotlib.pyplot", "build_tools.evaluate imports matplotlib"),
        ("build_tools/site", "from mkdocs.plugins import BasePlugin", "build_tools.site imports mkdocs"),
        ("build_tools/render", "from markdown import Markdown", "build_tools.render imports markdown"),
        ("build_tools/prose", "import math_core", "build_tools.prose imports math_core"),
        ("build_tools/load", "import yaml", "build_tools.load imports yaml"),
        ("build_tools/interpret", "from ppo_core import ratio", "build_tools.interpret imports ppo_core"),
        ("build_tools/figures", "    import lab.figures", "build_tools.figures imports lab"),
        ("build_tools/newcomer", "import json", "build_tools.newcomer is in no layer"),
        ("build_tools/render", "    open('content/a.md')", "build_tools.render reads with open"),
        ("build_tools/evaluate", "    path.read_text()", "build_tools.evaluate reads with read_text"),
        ("build_tools/render", "    path.write_text('')", "build_tools.render writes with write_text"),
        ("build_tools/load", "    path.unlink()", "build_tools.load writes with unlink"),
        (
            "ppo_core/checks",
            "from ppo_core.masking import counted",
            "ppo_core.checks imports ppo_core.masking.counted",
        ),
        (
            "ppo_core/masking",
            "from ppo_core.ratios import ratio",
            "ppo_core.masking imports ppo_core.ratios.ratio",
        ),
        ("ppo_core/ratios", "from ppo_core import surrogate", "ppo_core.ratios imports ppo_core.surrogate"),
        ("ppo_core/ratios", "import numpy", "ppo_core.ratios imports numpy"),
        ("ppo_core/ratios", "    import lab.bandit", "ppo_core.ratios imports lab.bandit"),
        ("lab/bandit", "from build_tools import digits", "lab.bandit imports build_tools"),
        ("lab/bandit", "from matplotlib.figure import Figure", "lab.bandit imports matplotlib"),
        ("lab/figures/lines", "import numpy", "lab.figures.lines imports numpy"),
        ("lab/figures/__init__", "    import yaml", "lab.figures.__init__ imports yaml"),
        ("lab/__init__", "import matplotlib", "lab.__init__ imports matplotlib"),
        ("lab/tiny_lm/plot", "import matplotlib", "lab.tiny_lm.plot imports matplotlib"),
        ("lab/tiny_lm/train", "from tqdm import tqdm", "lab.tiny_lm.train imports tqdm"),
    ],
)
def test_a_breach_is_found(tree, module, line, breach):
    path = tree / f"{module}.py"
    source = path.read_text(encoding="utf-8") if path.exists() else ""
    # An indented line stands inside a function.
    planted = f"def planted():\n{line}\n" if line.startswith(" ") else f"{line}\n"
    path.write_text(f"{source}\n\n{planted}", encoding="utf-8")

    assert breach in breaches(tree)
