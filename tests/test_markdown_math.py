import json
import re
import subprocess
import sys

import markdown
import pytest

from build_tools.tex import TexError

EXTENSIONS = [
    "admonition",
    "attr_list",
    "build_tools.markdown_math",
    "def_list",
    "footnotes",
    "md_in_html",
    "pymdownx.blocks.details",
    "pymdownx.superfences",
    "tables",
    "toc",
]


def render(text: str) -> str:
    """The HTML, each formula shortened to its TeX: [x] inline, [[x]] display, {[x].} what must not break."""
    html = markdown.markdown(text, extensions=EXTENSIONS)
    html = re.sub(r'<x-math class="display"[^>]*>(.*?)</x-math>', r"[[\1]]", html, flags=re.S)
    html = re.sub(r"<x-math [^>]*>(.*?)</x-math>", r"[\1]", html, flags=re.S)
    html = re.sub(r"<math.*?<annotation[^>]*>(.*?)</annotation></semantics></math>", r"\1", html, flags=re.S)
    assert "math" not in html
    return re.sub(r'<span class="nobreak">(.*?)</span>', r"{\1}", html)


def test_markup():
    html = markdown.markdown("$x$ and\n$$y$$", extensions=EXTENSIONS)
    tex = '<annotation encoding="application/x-tex">{0}</annotation></semantics></math></x-math>'
    assert html == (
        "<p><x-math data-search-exclude><math><semantics><mi>x</mi>" + tex.format("x") + " and\n"
        '<x-math class="display" data-search-exclude role="group" aria-label="Formula" tabindex="0">'
        '<math display="block"><semantics><mi>y</mi>' + tex.format("y") + "</p>"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*a $b_c*d_e$ f*", "<p><em>a [b_c*d_e] f</em></p>"),
        ("$\\{1,\\,2\\}$ $a\\_b$", "<p>[\\{1,\\,2\\}] [a\\_b]</p>"),
        ("$5 and $6, \\$7", "<p>$5 and $6, $7</p>"),
        ("`$x$`", "<p><code>$x$</code></p>"),
        ("## Title\n$x$", '<h2 id="title">Title</h2>\n<p>[x]</p>'),
        ("[a $x$](y.html)", '<p><a href="y.html">a [x]</a></p>'),
        ("Is it ($x$), $y$?", "<p>Is it {([x]),} {[y]?}</p>"),
        ("**$x$.** $a$,$b$ $$c$$.", "<p><strong>{[x].}</strong> {[a],}[b] [[c]].</p>"),
        ("> $$\n> a\n> $$", "<blockquote>\n<p>[[\n  a\n  ]]</p>\n</blockquote>"),
        (
            '!!! note "T"\n\n    $x$',
            '<div class="admonition note">\n<p class="admonition-title">T</p>\n<p>[x]</p>\n</div>',
        ),
        ("term $t$\n:   is $d$", "<dl>\n<dt>term [t]</dt>\n<dd>is [d]</dd>\n</dl>"),
        (
            "- a\n\n    $$\n    x\n    - \\frac{a_1}{b_1}\n    $$",
            "<ul>\n<li>\n<p>a</p>\n<p>[[\n    x\n    - \\frac{a_1}{b_1}\n    ]]</p>\n</li>\n</ul>",
        ),
        ('<p id="a">raw $x$</p>', '<p id="a">raw [x]</p>'),
        ('<div id="a" markdown="1">*in* $x_1$</div>', '<div id="a">\n<p><em>in</em> [x_1]</p>\n</div>'),
        ("<!-- $\\nope$ -->", "<!-- $\\nope$ -->"),
    ],
)
def test_in_every_slot(text, expected):
    assert render(text) == expected


def test_in_a_table_the_bar_does_not_split_a_cell():
    html = render("| a | b |\n|---|---|\n| $p(a | b)$ | $|x|$ |")
    assert "<td>[p(a | b)]</td>\n<td>[|x|]</td>" in html


def test_in_details_and_their_ids_stay_in_the_tree():
    md = markdown.Markdown(extensions=EXTENSIONS)
    seen = []

    class Ids(markdown.treeprocessors.Treeprocessor):
        def run(self, root):
            seen.extend(element.get("id") for element in root.iter() if element.get("id"))

    md.treeprocessors.register(Ids(md), "ids", 5)
    html = md.convert(
        "/// details | Hint $h$\n    attrs: {id: ex-1-hint-1, class: hint}\nIn $x_1$\n\n$$\ny\n$$\n///\n\n"
        '<details id="ex-1-solution" markdown>\n<summary>S</summary>\n\nAgain $x_2$\n\n</details>'
    )
    assert seen == ["ex-1-hint-1", "ex-1-solution"]
    assert html.count("<math") == 4


def test_fenced_code_keeps_its_dollars():
    html = markdown.markdown("```text\n$x$\n```\n\n$y$", extensions=EXTENSIONS)
    assert "$x$" in html and html.count("<math") == 1


def test_bad_tex_is_named():
    with pytest.raises(TexError, match=r"bad TeX 'a \\nope', character 3: Unknown command"):
        markdown.markdown("See $a \\nope$.", extensions=EXTENSIONS)


def test_headings_hold_no_maths():
    with pytest.raises(TexError, match="headings hold no maths"):
        markdown.markdown("## The $x$ case", extensions=EXTENSIONS)


def test_a_second_page_starts_afresh():
    md = markdown.Markdown(extensions=EXTENSIONS)
    first = md.convert("$x$")
    assert md.reset().convert("$x$") == first


def test_it_needs_no_site_generator():
    code = (
        "import json, sys, markdown; markdown.markdown('$x$', extensions=['build_tools.markdown_math']);"
        "print(json.dumps([n for n in ('mkdocs', 'material', 'torch', 'matplotlib') if n in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
