"""A Matplotlib figure as inline SVG that takes its colours and its font from the page."""

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping

import matplotlib
from matplotlib.figure import Figure

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
SHAPES = ("path", "use", "text", "rect", "circle", "ellipse", "line", "polygon", "polyline")
COLOURED = ("fill", "stroke", "stop-color", "flood-color", "color")
REFERENCE = re.compile(r"url\(#([^)]+)\)")
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def to_svg(figure: Figure, *, alt: str, key: str, colours: Mapping[str, str]) -> str:
    """Return the figure as one line of SVG, the same bytes on every run.

    Args:
        figure: drawn in the colours that `colours` names, and in no others.
        alt: what the figure shows, in words, for those who do not see it.
        key: a slug, a different one for each SVG of a page; the ids inside start with it.
        colours: for each colour, `#rrggbb` in lower case, the CSS expression that replaces it.

    Raises:
        ValueError: an empty `alt`, a `key` that is no slug, a colour that `colours` lacks, or a raster image,
            which no colour scheme can change.
    """
    if not alt.strip():
        raise ValueError("alt is empty: say in words what the figure shows")
    if not SLUG.fullmatch(key):
        raise ValueError(f"key {key!r} is no slug: use lower-case letters, digits and single hyphens")
    drawn = _without_layout(ET.fromstring(_draw(figure, key)))
    _theme(drawn, colours, fill=None)
    _rename_ids(drawn, key)
    root = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": "panel",
            "role": "img",
            "aria-label": " ".join(alt.split()),
            "viewBox": drawn.attrib["viewBox"],
            # Matplotlib says these two in a style sheet for "*", which would reach the whole page.
            "stroke-linejoin": "round",
            "stroke-linecap": "butt",
        },
    )
    root.extend(_without_bare_groups(drawn))
    return ET.tostring(root, encoding="unicode")


def _draw(figure: Figure, key: str) -> str:
    """Return the SVG that Matplotlib writes, whatever the settings of this machine."""
    written = io.StringIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": key, "svg.fonttype": "none"})
        figure.savefig(written, format="svg", facecolor="none", edgecolor="none", metadata={"Date": None})
    return written.getvalue()


def _without_layout(drawn: ET.Element) -> ET.Element:
    """Drop namespaces and the white space between elements, which HTML does not need."""
    for element in drawn.iter():
        element.tag = element.tag.removeprefix(SVG)
        element.tail = None
        if element.tag != "text":
            element.text = None
        if "d" in element.attrib:
            element.set("d", " ".join(element.attrib["d"].split()))
        if HREF in element.attrib:
            element.set("href", element.attrib.pop(HREF))
    return drawn


def _theme(parent: ET.Element, colours: Mapping[str, str], fill: str | None) -> None:
    """Replace the colours and fonts of all that `parent` holds; drop what draws nothing.

    `fill` is what the parent's children inherit. No fill at all means black: Matplotlib leaves it out.
    """
    for child in list(parent):
        if child.tag == "image":
            raise ValueError("the figure holds a raster image, which cannot follow the colour scheme")
        if child.tag in ("metadata", "style"):
            parent.remove(child)
            continue
        if child.tag == "clipPath":
            continue
        style = _declarations(child)
        own_fill = style.get("fill", fill)
        # A shape in <defs> takes its fill from the place that uses it.
        if own_fill is None and child.tag in SHAPES and parent.tag != "defs":
            own_fill = style["fill"] = "#000000"
        if own_fill == "none" and child.tag == "path" and "stroke" not in style:
            parent.remove(child)
            continue
        for name, value in style.items():
            if name in COLOURED:
                style[name] = _colour(value, colours)
            elif name == "font-family":
                style[name] = "inherit"
        if style:
            child.set("style", "; ".join(f"{name}: {value}" for name, value in style.items()))
        _theme(child, colours, own_fill)


def _declarations(element: ET.Element) -> dict[str, str]:
    """Take the colour attributes off the element; return them with its style, which wins.

    >>> _declarations(ET.fromstring('<path stroke="#b0176b" style="fill: none; stroke-width: 2"/>'))
    {'stroke': '#b0176b', 'fill': 'none', 'stroke-width': '2'}
    """
    found = {name: element.attrib.pop(name) for name in COLOURED if name in element.attrib}
    for part in element.get("style", "").split(";"):
        name, colon, value = part.partition(":")
        if colon:
            found[name.strip()] = value.strip()
    return found


def _colour(value: str, colours: Mapping[str, str]) -> str:
    """Return the CSS expression for a colour; `none` and references stay."""
    if value == "none" or REFERENCE.fullmatch(value):
        return value
    if value.lower() not in colours:
        raise ValueError(
            f"the figure uses the colour {value}, which does not follow the colour scheme: "
            f"use one of {', '.join(sorted(colours))}"
        )
    return colours[value.lower()]


def _rename_ids(drawn: ET.Element, key: str) -> None:
    """Keep the ids that something refers to, numbered and led by the key; drop the others."""
    used = set()
    for element in drawn.iter():
        used.add(element.get("href", "").removeprefix("#"))
        for value in element.attrib.values():
            used.update(REFERENCE.findall(value))
    new = {}
    for element in drawn.iter():
        old = element.attrib.pop("id", None)
        if old in used:
            # "svg" keeps the ids apart from those of the items themselves, such as "ex-2-1".
            new[old] = f"{key}-svg-{len(new) + 1}"
            element.set("id", new[old])
    for element in drawn.iter():
        for name, value in element.attrib.items():
            if name == "href" and value.startswith("#"):
                element.set(name, "#" + new[value[1:]])
            else:
                element.set(name, REFERENCE.sub(lambda match: f"url(#{new[match[1]]})", value))


def _without_bare_groups(parent: ET.Element) -> list[ET.Element]:
    """Return the children, with groups that say nothing replaced by what they hold."""
    kept = []
    for child in list(parent):
        inside = _without_bare_groups(child)
        if child.tag in ("g", "defs") and not child.attrib and (child.tag == "g" or not inside):
            kept.extend(inside)
        else:
            child[:] = inside
            kept.append(child)
    return kept
