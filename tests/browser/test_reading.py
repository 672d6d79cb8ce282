"""What a reader does: follow a link into an answer, open hints, search, look at formulas and figures."""

import json

import pytest


def is_open(shown, id_: str) -> bool:
    return shown.page.evaluate("id => document.getElementById(id).closest('details').open", id_)


def in_view(shown, id_: str) -> bool:
    return shown.page.evaluate(
        "id => { const box = document.getElementById(id).getBoundingClientRect(); return box.top >= 0 && box.top < innerHeight }",
        id_,
    )


@pytest.mark.parametrize(
    "id_", ["ex-2-2-hint-1", "ex-2-2-solution", "ex-2-2-trap", "ex-2-2-computation", "ex-2-2-evidence"]
)
def test_a_link_to_a_part_opens_it(show, site, id_):
    shown = show((site / "exercises/level-2.html").as_uri() + "#" + id_)
    shown.page.wait_for_timeout(200)

    assert is_open(shown, id_)
    assert in_view(shown, id_)
    assert not is_open(shown, "ex-2-1-solution")


def test_a_link_on_the_page_opens_too_and_again_after_closing(show, site):
    shown = show(site / "exercises/level-2.html")
    shown.page.evaluate(
        "document.querySelector('h1 + p').innerHTML += '<a id=go href=\"#ex-2-3-solution\">go</a>'"
    )

    for _ in range(2):
        shown.page.evaluate("document.getElementById('ex-2-3-solution').open = false")
        shown.page.click("#go")
        shown.page.wait_for_timeout(200)
        assert is_open(shown, "ex-2-3-solution")
    assert shown.complaints == []


def test_an_odd_address_breaks_nothing(show, site):
    shown = show((site / "exercises/level-2.html").as_uri() + "#%")
    shown.page.wait_for_timeout(100)

    assert shown.complaints == []


def test_answers_start_closed_and_open_without_scripts(show, site):
    shown = show(site / "exercises/level-2.html", scripts=False)
    solution = shown.page.locator("#ex-2-1-solution")
    text = solution.locator("p").first

    assert not text.is_visible()
    solution.locator("summary").click()
    assert text.is_visible()


def test_the_keyboard_opens_a_hint(show, site):
    shown = show(site / "exercises/level-2.html")
    shown.page.locator("#ex-2-1-hint-1 summary").focus()
    shown.page.keyboard.press("Enter")

    assert is_open(shown, "ex-2-1-hint-1")


def test_the_keyboard_reaches_what_an_abbreviation_stands_for(show, site):
    page = show(site / "exercises/level-2.html").page
    link = page.locator("a.abbreviation", has_text="PPO").first
    tip = page.get_by_role("tooltip", name="Proximal Policy Optimization")

    link.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    tip.wait_for()
    assert (
        page.locator(f"#{link.get_attribute('aria-describedby')}").text_content()
        == "Proximal Policy Optimization"
    )
    page.keyboard.press("Escape")
    page.locator(".md-tooltip2--active").wait_for(state="detached")
    page.keyboard.press("Enter")
    page.wait_for_url("**/learn/glossary.html#glossary-ppo")


def test_an_abbreviation_is_explained_without_scripts(show, site):
    link = (
        show(site / "exercises/level-2.html", scripts=False)
        .page.locator("a.abbreviation", has_text="PPO")
        .first
    )

    assert link.get_attribute("title") == "Proximal Policy Optimization"


@pytest.fixture
def results(show, site):
    """What the search finds, from a page opened from disk."""

    def search(words: str):
        shown = show(site / "exercises/level-2.html")
        shown.page.locator(".md-search__input").click()
        shown.page.get_by_text("Type to start searching").wait_for()
        shown.page.keyboard.type(words)
        shown.page.locator(".md-search-result__link").first.wait_for()
        shown.page.wait_for_timeout(300)
        return shown

    return search


def test_the_search_finds_an_item_by_its_words_from_disk(results):
    shown = results("halved its probability")

    hit = shown.page.locator(".md-search-result__link[href*='#ex-2-2']")
    assert "halved its probability" in hit.inner_text()
    assert shown.complaints == []


def test_a_hit_inside_a_hint_opens_the_hint_and_no_answer(results):
    shown = results("further from zero")
    shown.page.locator(".md-search-result__link[href*='#ex-2-2']").click()
    shown.page.wait_for_selector("#ex-2-2-hint-2 mark")
    shown.page.wait_for_timeout(300)

    assert is_open(shown, "ex-2-2-hint-2")
    assert not is_open(shown, "ex-2-2-solution")


def test_formulas_are_mathml_in_our_own_font(show, site):
    shown = show(site / "learn/notation.html")
    shown.page.wait_for_timeout(300)

    assert shown.page.locator("math").count() > 40
    assert shown.page.evaluate("document.fonts.check('16px \"Noto Sans Math\"')")
    family = shown.page.evaluate("getComputedStyle(document.querySelector('math')).fontFamily")
    assert "Noto Sans Math" in family
    fraction = shown.page.locator("mfrac").first.bounding_box()
    assert fraction["height"] > 30, "a fraction is as high as its two lines"


@pytest.mark.parametrize(("width", "stacked"), [(390, True), (1280, False)])
@pytest.mark.parametrize("page", ["learn/notation.html", "exercises/level-5.html"])
def test_two_panels_stand_side_by_side_and_stack_on_a_phone(show, site, page, width, stacked):
    shown = show(site / page, width=width)
    shown.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    left, right = (shown.page.locator("figure svg").nth(n).bounding_box() for n in (0, 1))

    assert (right["y"] >= left["y"] + left["height"]) == stacked
    assert 270 <= left["width"] <= 450


def test_the_figure_says_what_it_shows_and_follows_the_scheme(show, site):
    colours = {}
    for scheme in ("light", "dark"):
        shown = show(site / "learn/notation.html", scheme=scheme)
        good, bad = shown.page.locator("figure svg").nth(0), shown.page.locator("figure svg").nth(1)
        assert "slope is 0" in good.get_attribute("aria-label")
        assert good.get_by_text("slope 0").is_visible()
        colours[scheme] = [_strokes(panel) for panel in (good, bad)]

    (good_light, bad_light), (good_dark, bad_dark) = colours["light"], colours["dark"]
    assert good_light != good_dark and bad_light != bad_dark
    assert good_light != bad_light, "the sign of the advantage has a colour of its own"


def _strokes(panel) -> set[str]:
    return set(
        panel.evaluate("svg => [...svg.querySelectorAll('path')].map(path => getComputedStyle(path).stroke)")
    )


def test_the_answer_is_not_in_the_search_index(site):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    text = " ".join(entry["text"] for entry in index["docs"])

    assert "halved its probability" in text, "questions are found"
    assert "further from zero" in text, "hints are found"
    assert "clipped_surrogate" in text, "functions are found"
    for answer in (
        "asks for nothing more",
        "fifth of a point",
        "stopped asking",
        "Answer:",
        "\\rho",
        "1 ± ε",
    ):
        assert answer not in text, answer
