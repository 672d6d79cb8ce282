import sys

import pytest

from build_tools.cache import Cache
from build_tools.figures import draw
from build_tools.libraries import LibraryError
from build_tools.load import load
from build_tools.model import Outcome, Worked

CARD = """\
---
kind: page
title: Page
---
## Part {#part}
```yaml
given: {x: 1}
figure: %s
```
{=x}

{figure}
"""


@pytest.fixture
def worked(project):
    """One item with the given figure, as if it had been evaluated to the given numbers."""

    def make(figure, **numbers):
        bank, faults = load(project({"a.md": CARD % figure}).root)
        assert faults == []
        return {"part": Worked(bank.documents[0].items[0], Outcome({}, (), numbers, {}))}

    return make


def test_a_figure_is_drawn_with_its_numbers(worked, config, tmp_path):
    drawn, faults = draw(
        worked("{name: clipped-surrogate, A: x}", A=1.0), config.figures, "tests", Cache(None, "")
    )

    assert faults == []
    (panel,) = drawn["part"].panels
    assert panel.startswith("<svg ") and panel.endswith("</svg>")
    assert 'role="img"' in panel
    assert 'id="part-1-svg-' in panel


def test_two_panels_without_an_advantage(worked, config):
    drawn, faults = draw(worked("{name: clipped-surrogate}"), config.figures, "tests", Cache(None, ""))

    assert faults == []
    assert len(drawn["part"].panels) == 2


def test_the_cache_answers_with_the_same_panels(worked, config, tmp_path):
    item = worked("{name: clipped-surrogate, A: x}", A=1.0)
    cache = Cache(tmp_path / "cache", "x")

    first, _ = draw(item, config.figures, "tests", cache)
    again, faults = draw(item, "no_such_module", "tests", cache)

    assert faults == []
    assert first == again
    (entry,) = (tmp_path / "cache").iterdir()
    other, _ = draw(worked("{name: clipped-surrogate, A: x}", A=-1.0), config.figures, "tests", cache)
    assert other != first
    assert entry.exists()


@pytest.mark.parametrize(
    ("figure", "numbers", "code", "message"),
    [
        (
            "{name: clipped-surogate}",
            {},
            "unknown-figure",
            '"clipped-surogate" is not a figure; did you mean "clipped-surrogate"?',
        ),
        ("{name: float}", {}, "unknown-figure", '"float" is not a figure'),
        ("{name: -study}", {}, "unknown-figure", '"-study" is not a figure'),
        ("{name: lines}", {}, "unknown-figure", '"lines" is not a figure'),
        (
            "{name: clipped-surrogate}",
            {"B": 1.0},
            "bad-figure",
            "the figure clipped-surrogate refused its arguments",
        ),
        (
            "{name: clipped-surrogate}",
            {"A": 0.0},
            "bad-figure",
            "the figure clipped-surrogate refused its arguments",
        ),
        (
            "{name: clipped-surrogate}",
            {"A": (1.0, 2.0)},
            "bad-figure",
            "the figure clipped-surrogate refused its arguments",
        ),
    ],
)
def test_figures_that_cannot_be_drawn(worked, config, figure, numbers, code, message):
    drawn, (fault,) = draw(worked(figure, **numbers), config.figures, "tests", Cache(None, ""))

    assert drawn == {}
    assert (fault.code, fault.place.line, fault.place.column) == (code, 8, 16)
    assert fault.message.startswith(message)


def test_without_a_module_of_figures(worked):
    drawn, (fault,) = draw(worked("{name: clipped-surrogate}"), None, "tests", Cache(None, ""))

    assert (drawn, fault.code) == ({}, "unknown-figure")
    assert "[tool.build_tools]" in fault.message


@pytest.fixture
def small_figures(tmp_path, monkeypatch):
    """Writes a module of figures, and forgets it at the end."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda text: (tmp_path / "small_figures.py").write_text(text, encoding="utf-8")
    sys.modules.pop("small_figures", None)


@pytest.mark.parametrize("name", ["helper", "COLOURS"])
def test_only_the_functions_in_all_are_figures(worked, small_figures, name):
    small_figures(
        'COLOURS = {}\n__all__ = ["COLOURS", "listed"]\ndef listed(): return []\ndef helper(): return []\n'
    )

    drawn, faults = draw(worked("{name: listed}"), "small_figures", "tests", Cache(None, ""))
    assert (drawn["part"].panels, faults) == ((), [])

    drawn, (fault,) = draw(worked(f"{{name: {name}}}"), "small_figures", "tests", Cache(None, ""))
    assert (drawn, fault.message) == ({}, f'"{name}" is not a figure; known: listed')


def test_a_module_without_all_is_refused(worked, small_figures):
    small_figures("COLOURS = {}\n")

    with pytest.raises(LibraryError, match='"small_figures" has no __all__; list its figure functions there'):
        draw(worked("{name: listed}"), "small_figures", "tests", Cache(None, ""))
