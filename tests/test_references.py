import pytest

from build_tools.load import load

PAGE = "---\nkind: page\ntitle: Page\n---\n[here](#part) [sub](#sub)\n\n## Part {#part}\nText.\n\n### Deeper {: #sub .x}\n\n```\n## no heading {#no}\n```\n"
CARDS = """\
---
kind: exercise
title: Cards
level: 1
---
## A card {#card}
```yaml
topics: [a]
values:
  y: 1 + 1 = 2
%s```
### Question
%s
### Hint
One.
### Hint
Two.
### Solution
{=y}
"""
ERRATA = "---\nkind: erratum\ntitle: Errata\n---\n## Wrong {#wrong}\n### Claim\nOne.\n### Correction\nTwo.\n"


@pytest.fixture
def faults(project):
    """The faults of a project of three pages, with the given keys and question in the second."""

    def find(keys: str = "", question: str = "Text.", page: str = PAGE) -> list[tuple[str, str]]:
        config = project(
            {"learn/page.md": page, "deep/cards.md": CARDS % (keys, question), "errata.md": ERRATA}
        )
        (config.root / "docs").mkdir(exist_ok=True)
        (config.root / "docs" / "about.md").write_text("# About\n", encoding="utf-8")
        return [(fault.code, fault.message) for fault in load(config.root)[1]]

    return find


@pytest.mark.parametrize(
    "target",
    [
        "../learn/page.md",
        "../learn/page.md#part",
        "../learn/page.md#sub",
        "../errata.md#wrong",
        "cards.md#card",
        "#card",
        "#card-hint-1",
        "#card-hint-2",
        "#card-solution",
        "#card-computation",
        "../about.md",
        "../about.md#anything",
        "https://example.org/#x",
        "mailto:a@example.org",
        '../learn/page.md "A title"',
        "<../learn/page.md>",
    ],
)
def test_links_that_lead_somewhere(faults, target):
    assert faults(question=f"[there]({target}) ![image]({target})") == []


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("page.md", "unknown-link", 'there is no page "deep/page.md"'),
        ("../learn/page.md#prt", "unknown-link", '"prt" is not an id on learn/page.md; did you mean "part"?'),
        ("../learn/page.md#no", "unknown-link", '"no" is not an id on learn/page.md'),
        ("../learn/page.md#card", "unknown-link", '"card" is not on learn/page.md but on deep/cards.md'),
        ("#card-hint-3", "unknown-link", '"card-hint-3" is not an id on deep/cards.md'),
        ("#card-trap", "unknown-link", '"card-trap" is not an id on deep/cards.md'),
        ("#card-evidence", "unknown-link", '"card-evidence" is not an id on deep/cards.md'),
        ("../../pyproject.toml", "unknown-link", 'there is no page "../pyproject.toml"'),
        ("/learn/page.md", "bad-link", '"/learn/page.md" must be'),
        ("//example.org", "bad-link", '"//example.org" must be'),
        ("javascript:alert", "bad-link", '"javascript:alert" must be'),
        ("JavaScript:alert", "bad-link", '"JavaScript:alert" must be'),
        ("data:text/html,x", "bad-link", '"data:text/html,x" must be'),
        ("file:///etc/passwd", "bad-link", '"file:///etc/passwd" must be'),
    ],
)
@pytest.mark.parametrize(
    "form", ["[there]({})", "![image]({})", "a <a href='{}'>b</a>", "[there][1]\n\n[1]: {}"]
)
def test_links_that_lead_nowhere(faults, target, code, message, form):
    found = faults(question=form.format(target))

    assert [each for each, _ in found] == [code]
    assert found[0][1].startswith(message)


@pytest.mark.parametrize("form", ["[there]()", "![image]( )", "a <a href=''>b</a>"])
def test_a_link_needs_a_target(faults, form):
    assert [code for code, _ in faults(question=form)] == ["bad-link"]


@pytest.mark.parametrize(
    "text",
    [
        "`[a](nowhere.md)`",
        "```\n[a](nowhere.md)\n```",
        "$[a](b)$",
        r"\[a](nowhere.md)",
        "[a] (b)",
        "[^1]\n\n[^1]: A note.",
    ],
)
def test_what_is_no_link(faults, text):
    assert faults(question=text) == []


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("see: [learn/page.md]", None),
        ("see: [learn/page.md#sub, errata.md#wrong]", None),
        ("see: [about.md]", None),
        ("see: [page.md]", 'there is no page "page.md"'),
        ("see: ['#part']", 'there is no page ""'),
        ("see: [/etc/passwd]", 'there is no page "/etc/passwd"'),
        ("see: [../pyproject.toml]", 'there is no page "../pyproject.toml"'),
        ("see: [https://example.org]", 'there is no page "https://example.org"'),
        ("errata: [wrong]", None),
        ("errata: [card]", '"card" is not an entry of the errata page; did you'),
        ("errata: [part]", '"part" is not an entry of the errata page'),
        ("errata: [wrng]", '"wrng" is not an entry of the errata page; did you mean "wrong"?'),
    ],
)
def test_keys_that_refer(faults, key, message):
    found = faults(keys=key + "\n")

    assert [code for code, _ in found] == ([] if message is None else ["unknown-link"])
    assert message is None or found[0][1].startswith(message[:25])


@pytest.mark.parametrize(
    ("word", "good"), [("card", True), ("wrong", True), ("part", False), ("nothing", False)]
)
def test_what_may_be_embedded(faults, word, good):
    page = PAGE.replace("Text.", f"```yaml\nembed: {word}\n```\n", 1)

    assert [code for code, _ in faults(page=page)] == ([] if good else ["unknown-link"])


@pytest.mark.parametrize(
    "broken",
    [
        PAGE.replace("kind: page", "kind: pag"),
        PAGE.replace("kind: page", "kind: 'page"),
        PAGE.replace("title: Page", ""),
        PAGE.replace("Text.", "$\\nosuch$", 1),
        PAGE.replace("## Part", "## Pa*rt*"),
    ],
)
def test_a_fault_breeds_no_others(faults, broken):
    found = faults(keys="see: [learn/page.md#part]\n", question="[there](../learn/page.md#part)", page=broken)

    assert len(found) == 1
    assert found[0][0] != "unknown-link"
