"""The composition: load -> evaluate -> figures -> render -> write. `check` is `build` without `write`."""

from dataclasses import dataclass

from build_tools.cache import Cache
from build_tools.config import Config
from build_tools.equations import Report, check_equations
from build_tools.errors import ContentError, Fault
from build_tools.evaluate import evaluate
from build_tools.figures import draw
from build_tools.libraries import fingerprint
from build_tools.load import load
from build_tools.model import Bank, Page
from build_tools.render import render
from build_tools.write import write

# Whose versions numbers and figures rest on.
_DISTRIBUTIONS = ("torch", "numpy", "matplotlib", "math-core", "PyYAML")


@dataclass(frozen=True)
class Result:
    bank: Bank
    pages: tuple[Page, ...]
    faults: tuple[Fault, ...]
    equations: Report

    def counts(self) -> dict[str, int]:
        items = [item for document in self.bank.documents for item in document.items if item.kind != "page"]
        everything = [item for document in self.bank.documents for item in document.items]
        return {
            "pages": len(self.bank.documents),
            "items": len(items),
            "values": sum(len(item.values) for item in everything),
            "checks": sum(len(item.checks) for item in everything),
            "figures": sum(item.figure is not None for item in everything),
            "equations generated": self.equations.generated,
            "equations typed and true": self.equations.true,
            "equations refused": len(self.equations.faults),
        }


def make(config: Config, *, use_cache: bool = True) -> Result:
    """Everything but the writing: all pages and all faults."""
    modules = (*config.libraries, *((config.figures,) if config.figures else ()))
    mark = fingerprint(modules, _DISTRIBUTIONS)
    cache = Cache(config.cache if use_cache else None, mark)
    bank, faults = load(config.root)
    worked, more = evaluate(bank, tuple(config.libraries), mark, cache)
    faults += more
    equations = check_equations(bank, worked)
    faults += equations.faults
    drawn, more = draw(worked, config.figures, mark, cache)
    faults += more
    if not faults:
        cache.prune()
    ordered = tuple(sorted(set(faults)))
    pages = render(bank, drawn, config.libraries, config.report, ordered)
    return Result(bank, tuple(pages), ordered, equations)


def check(config: Config, *, use_cache: bool = True) -> Result:
    """The result of a build that writes nothing; raises ContentError if anything is wrong."""
    result = make(config, use_cache=use_cache)
    if result.faults:
        raise ContentError(result.faults)
    return result


def build(config: Config, *, use_cache: bool = True) -> Result:
    """Writes the pages under build/pages; raises ContentError, and writes nothing, if anything is wrong."""
    result = check(config, use_cache=use_cache)
    write(result.pages, config.pages)
    return result
