"""The authoring guide is true: its tables are those of the schema, and its examples are items that hold."""

import re

from build_tools.guide import TABLES, renewed
from build_tools.site import check
from conftest import ROOT

GUIDE = (ROOT / "content" / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^````markdown example\n(.*?)^````$", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_tables_are_those_of_the_schema():
    assert renewed(GUIDE) == GUIDE, "run: python -m build_tools.guide content/README.md"
    assert {f"<!-- table: {name} -->" for name in TABLES} <= set(GUIDE.split("\n"))


def test_a_stale_table_is_noticed():
    stale = GUIDE.replace("| `answer` |", "| `answers` |")

    assert stale != GUIDE
    assert renewed(stale) == GUIDE


def test_each_example_is_content_that_holds(project):
    assert len(EXAMPLES) == 2
    config = project({f"example-{number}.md": text for number, text in enumerate(EXAMPLES)})

    result = check(config, use_cache=False)

    assert [document.kind for document in result.bank.documents] == ["exercise", "page"]
    assert result.counts() == {
        "pages": 2,
        "items": 1,
        "values": 4,
        "checks": 1,
        "figures": 1,
        "equations generated": 1,
        "equations typed and true": 0,
        "equations refused": 0,
    }


def test_the_guide_names_every_word_of_the_language():
    from build_tools.expression import MATHS

    for word in MATHS:
        assert re.search(rf"`[^`]*\b{word}\b[^`]*`", GUIDE), word
