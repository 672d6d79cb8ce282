"""figures: Worked -> Drawn. Calls the configured figure functions; matplotlib is imported only if something changed.

A figure function takes numbers by keyword and returns panels: a list of (matplotlib Figure, text alternative).
The module lists these functions in __all__ and names its colours in COLOURS: the colour that is drawn with, and the CSS that replaces it.
"""

import functools
import inspect
from collections.abc import Callable, Mapping

from build_tools.cache import Cache
from build_tools.errors import Fault, did_you_mean
from build_tools.libraries import LibraryError, import_fresh
from build_tools.model import Drawn, Worked


def draw(
    worked: Mapping[str, Worked], module: str | None, fingerprint: str, cache: Cache
) -> tuple[dict[str, Drawn], list[Fault]]:
    """The items with their figures, by id; and the faults of those whose figure cannot be drawn."""

    @functools.cache
    def library():
        figures = import_fresh(module, fingerprint)
        if not hasattr(figures, "__all__"):
            raise LibraryError(f'"{module}" has no __all__; list its figure functions there')
        return figures

    drawn, faults = {}, []
    for id_, each in worked.items():
        if each.item.figure is None:
            drawn[id_] = Drawn(each, ())
            continue
        panels, fault = _cached(each, module, library, cache)
        if fault is None:
            drawn[id_] = Drawn(each, panels)
        else:
            faults.append(fault)
    return drawn, faults


def _cached(
    each: Worked, module: str | None, library: Callable, cache: Cache
) -> tuple[tuple[str, ...], Fault | None]:
    call = each.item.figure
    if module is None:
        return (), Fault(
            call.name.place,
            "unknown-figure",
            "no module of figures is configured; name one in [tool.build_tools]",
        )
    # The id is part of the key because it is part of the ids inside the SVG.
    key = cache.key("figures", [each.item.id, call.name.text, dict(each.outcome.figure)])
    if (known := cache.get(key)) is not None:
        return tuple(known), None
    panels, fault = _draw(each, library())
    if fault is None:
        cache.put(key, panels)
    return panels, fault


def _draw(each: Worked, library) -> tuple[tuple[str, ...], Fault | None]:
    from build_tools.svg import to_svg

    call = each.item.figure
    name = call.name.text.replace("-", "_")
    public = {n: getattr(library, n) for n in library.__all__}
    known = {n: f for n, f in public.items() if inspect.isfunction(f)}
    if name not in known:
        nearest = did_you_mean(call.name.text, (n.replace("_", "-") for n in known))
        return (), Fault(call.name.place, "unknown-figure", f'"{call.name.text}" is not a figure; {nearest}')
    try:
        inspect.signature(known[name]).bind(**each.outcome.figure)
        return tuple(
            to_svg(figure, alt=alt, key=f"{each.item.id}-{number}", colours=library.COLOURS)
            for number, (figure, alt) in enumerate(known[name](**each.outcome.figure), 1)
        ), None
    except (TypeError, ValueError) as error:
        arguments = ", ".join(inspect.signature(known[name]).parameters)
        return (), Fault(
            call.name.place,
            "bad-figure",
            f"the figure {call.name.text} refused its arguments: {' '.join(str(error).split())}; it takes {arguments}",
        )
