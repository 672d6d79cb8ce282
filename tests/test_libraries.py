import sys

import pytest

from build_tools.libraries import LibraryError, fingerprint, folder, import_fresh, public_functions
from conftest import ROOT

SOURCE = """
from torch import Tensor
__all__ = ["CONSTANT", "double"]
CONSTANT = 2
def double(x: Tensor, *, by: float = 2.0, twice: int | None = None, mode: str = "a", either: Tensor | float = 1.0): return x * by
def hidden(x): return x
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package on the path, and a way to write its source; forgotten at the end."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(text: str, name: str = "small_library", module: str = "__init__") -> None:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / f"{module}.py").write_text(text, encoding="utf-8")

    yield write
    for name in [name for name in sys.modules if name.startswith(("small_library", "other_library"))]:
        del sys.modules[name]


def test_public_functions_and_which_parameters_take_numbers_or_words(package):
    package(SOURCE)

    functions = public_functions(["small_library"], "1")

    assert list(functions) == ["double"]
    double = functions["double"]
    assert (double.module, double.numbers, double.words) == ("small_library", ("by", "twice"), ("mode",))
    assert double.signature_text == "(x, by=..., twice=..., mode=..., either=...)"
    assert double.call(3) == 6.0


def test_an_edited_library_is_imported_again_only_if_the_mark_changed(package):
    package("VALUE = 1")
    assert import_fresh("small_library", "1").VALUE == 1
    package("VALUE = 22")

    assert import_fresh("small_library", "1").VALUE == 1
    assert import_fresh("small_library", "2").VALUE == 22


def test_the_mark_changes_with_any_source_and_any_version(package):
    package("VALUE = 1")
    first = fingerprint(["small_library"], ["torch"])

    assert fingerprint(["small_library"], ["torch"]) == first
    assert fingerprint(["small_library"], ["numpy"]) != first
    assert fingerprint(["small_library"], ["no-such-distribution"]) != first
    package("", module="inner")
    second = fingerprint(["small_library"], ["torch"])
    package("# a comment", module="inner")
    assert len({first, second, fingerprint(["small_library.inner"], ["torch"])}) == 3


def test_nothing_is_imported_to_find_a_package(package):
    package("raise RuntimeError")

    assert folder("small_library.inner").name == "small_library"
    assert "small_library" not in sys.modules
    assert folder("ppo_core") == ROOT / "ppo_core"


def test_what_is_no_library(package):
    package("__all__ = []\nimport no_such_module_at_all")
    with pytest.raises(
        LibraryError, match=r'"small_library" cannot be imported .*; correct \[tool.build_tools\]'
    ):
        public_functions(["small_library"], "1")
    package("VALUE = 1")
    with pytest.raises(LibraryError, match="has no __all__; list its public functions there"):
        public_functions(["small_library"], "2")
    with pytest.raises(LibraryError, match='there is no package "no_such_library"; correct'):
        folder("no_such_library")
    with pytest.raises(LibraryError, match="cannot be imported"):
        import_fresh("small_library.missing", "2")


def test_one_name_in_two_libraries(package):
    package(SOURCE)
    package(SOURCE, name="other_library")

    with pytest.raises(
        LibraryError, match='"double" is public in small_library and in other_library; rename one'
    ):
        public_functions(["small_library", "other_library"], "3")
