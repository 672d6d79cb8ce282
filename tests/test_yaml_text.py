import pytest

from build_tools.errors import Place
from build_tools.model import Word
from build_tools.yaml_text import Mapping, Sequence, read


def tree(text):
    node, faults = read(text, "a.md", 5)
    assert faults == []
    return node


def plain(node):
    """The node as Python, without places."""
    if isinstance(node, Mapping):
        return {key.text: plain(value) for key, value in node.entries}
    return [plain(each) for each in node.items] if isinstance(node, Sequence) else node.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 0.10", {"a": "0.10"}),
        ("a: 1e-9", {"a": "1e-9"}),
        ("a: 0x10", {"a": "0x10"}),
        ("a: 1:30", {"a": "1:30"}),
        ("a: 2024-01-01", {"a": "2024-01-01"}),
        ("a: true", {"a": "true"}),
        ("a: [true, y, n]", {"a": ["true", "y", "n"]}),
        ("a: 'yes'", {"a": "yes"}),
        ('a: "no"', {"a": "no"}),
        ("a: 'it''s'", {"a": "it's"}),
        ("a: 'x \\n y'", {"a": "x \\n y"}),
        ("a: f(x, y=2) == 0  # why", {"a": "f(x, y=2) == 0"}),
        ("a:\n  - b: 1\n    c: [2, 3]\n  - d", {"a": [{"b": "1", "c": ["2", "3"]}, "d"]}),
        ("", {}),
        ("# nothing", {}),
    ],
)
def test_scalars_stay_as_typed(text, expected):
    assert plain(tree(text)) == expected


def test_places_count_from_the_line_of_the_block():
    node = tree("a: 1\nbé: ['x', y]")

    assert node.place == Place("a.md", 5, 1)
    assert node.entries[0] == (Word("a", Place("a.md", 5, 1)), Word("1", Place("a.md", 5, 4)))
    assert node.entries[1][0].place == Place("a.md", 6, 1)
    assert node.get("bé").place == Place("a.md", 6, 5)
    assert [word.place.column for word in node.get("bé").items] == [7, 11], "text starts after its quote"


def test_whether_a_word_stood_in_quotes():
    assert [word.bare for word in tree("a: [x, 'x', \"x\"]").get("a").items] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("a: 1\na: 2", "duplicate-key", 6, 1),
        ("a: {b: 1, b: 2}", "duplicate-key", 5, 11),
        ("a: yes", "yaml-truth", 5, 4),
        ("a: [x, Off]", "yaml-truth", 5, 8),
        ("a: NULL", "yaml-truth", 5, 4),
        ("a: ~", "yaml-truth", 5, 4),
        ("a:", "yaml-empty", 5, 3),
        ("a: ''", "yaml-empty", 5, 4),
        ("a: {b:1}", "yaml-empty", 5, 8),
        ('a: "\\t"', "yaml-backslash", 5, 4),
        ('a: "one\n  two\\n"', "yaml-backslash", 5, 4),
        ("a: \x07", "yaml-control", 5, 4),
        ("a: 1\nb: x\u2028y", "yaml-control", 6, 5),
        ("a: \ufeffx", "yaml-control", 5, 4),
        ("a: &x 1", "yaml-anchor", 5, 4),
        ("a: *x", "yaml-anchor", 5, 4),
        ("a: !!int 1", "yaml-tag", 5, 4),
        ("a: !x [1]", "yaml-tag", 5, 4),
        ("a: [1\nb: 2", "yaml-syntax", 6, 2),
        ("a: b: c", "yaml-syntax", 5, 5),
        ("\ta: 1", "yaml-syntax", 5, 1),
        ("a: 1\n---\nb: 2", "yaml-syntax", 6, 1),
        ("[a, b]", "yaml-shape", 5, 1),
        ("a", "yaml-shape", 5, 1),
        ("? [a]\n: 1", "yaml-shape", 5, 3),
        ("a: [[[[[[[[1]]]]]]]]", "yaml-deep", 5, 12),
    ],
)
def test_traps(text, code, line, column):
    node, faults = read(text, "a.md", 5)

    assert node is None
    assert [(f.code, f.place.line, f.place.column) for f in faults] == [(code, line, column)]


def test_a_nest_of_aliases_costs_nothing():
    bomb = "a: &a [x, x]\n" + "".join(
        f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )

    node, faults = read(bomb, "a.md", 1)

    assert node is None
    assert [f.code for f in faults] == ["yaml-anchor"]


def test_a_very_deep_nest_is_a_fault():
    node, faults = read("a: " + "[" * 5000 + "]" * 5000, "a.md", 1)

    assert node is None
    assert len(faults) == 1


def test_all_traps_of_a_block_are_reported():
    _, faults = read('a: yes\nb:\nc: "\\t"\nc: 1', "a.md", 1)

    assert [f.code for f in faults] == ["yaml-truth", "yaml-empty", "yaml-backslash", "duplicate-key"]
