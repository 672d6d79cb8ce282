"""The configured libraries: their public functions, and what a cache must know of them without importing them."""

import hashlib
import importlib
import importlib.util
import inspect
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType


@dataclass(frozen=True)
class LibraryFunction:
    """A public function, and which of its parameters take a plain number or a word and not a tensor."""

    call: Callable
    module: str
    signature: inspect.Signature
    numbers: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def signature_text(self) -> str:
        """How it is called: (ratio, advantages, epsilon=...)."""
        keyword_only = inspect.Parameter.KEYWORD_ONLY
        names = [
            f"{p.name}=..." if p.kind is keyword_only else p.name for p in self.signature.parameters.values()
        ]
        return f"({', '.join(names)})"


class LibraryError(Exception):
    """A configured module cannot be used."""


def folder(module: str) -> Path:
    """The folder of the package that holds `module`, found without importing it."""
    package = module.split(".")[0]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise LibraryError(
            f'there is no package "{package}"; correct [tool.build_tools] in pyproject.toml, or install it'
        )
    return Path(next(iter(spec.submodule_search_locations)))


def fingerprint(modules: Iterable[str], distributions: Iterable[str]) -> str:
    """Changes when the source of a module, the tools, or the version of a distribution changes."""
    digest = hashlib.sha256(sys.version.encode())
    for module in sorted({"build_tools", *(each.split(".")[0] for each in modules)}):
        for path in sorted(folder(module).rglob("*.py")):
            digest.update(f"{module}/{path.name}\0".encode() + path.read_bytes())
    for name in distributions:
        try:
            digest.update(f"{name}={version(name)}\0".encode())
        except PackageNotFoundError:
            digest.update(f"{name}=none\0".encode())
    return digest.hexdigest()


# What was imported, and from which sources; a long-running `serve` must see edits of the library.
_imported: dict[str, str] = {}


def import_fresh(module: str, fingerprint: str) -> ModuleType:
    """Imports `module`, again if the sources have changed since the last time."""
    package = module.split(".")[0]
    if _imported.get(package, fingerprint) != fingerprint:
        for name in [name for name in sys.modules if name == package or name.startswith(package + ".")]:
            del sys.modules[name]
        importlib.invalidate_caches()
    _imported[package] = fingerprint
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise LibraryError(
            f'"{module}" cannot be imported ({error}); correct [tool.build_tools] in pyproject.toml'
        ) from None


def public_functions(modules: Iterable[str], fingerprint: str) -> Mapping[str, LibraryFunction]:
    """The public functions of the libraries, by name."""
    found: dict[str, LibraryFunction] = {}
    for module in modules:
        library = import_fresh(module, fingerprint)
        if not hasattr(library, "__all__"):
            raise LibraryError(f'"{module}" has no __all__; list its public functions there')
        for name in library.__all__:
            function = getattr(library, name)
            if not inspect.isfunction(function):
                continue
            if name in found:
                raise LibraryError(
                    f'"{name}" is public in {found[name].module} and in {module}; rename one of them'
                )
            hints = typing.get_type_hints(function)
            signature = inspect.signature(function)
            kinds = {parameter: _kinds(hints.get(parameter)) for parameter in signature.parameters}
            found[name] = LibraryFunction(
                function,
                module,
                signature,
                numbers=tuple(
                    p for p, kind in kinds.items() if kind & {float, int} and "Tensor" not in _names(kind)
                ),
                words=tuple(p for p, kind in kinds.items() if str in kind),
            )
    return found


def _kinds(hint: object) -> set:
    return set(typing.get_args(hint)) or {hint}


def _names(kinds: set) -> set[str]:
    return {getattr(kind, "__name__", "") for kind in kinds}
