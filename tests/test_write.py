import pytest

from build_tools.model import Page
from build_tools.write import write


def page(uri, text="text\n"):
    return Page(uri, f"content/{uri}", text)


def test_pages_are_written_as_they_are(tmp_path):
    folder = tmp_path / "build" / "pages"

    changed = write([page("a.md", "é\r\nb\n"), page("deep/er/b.md")], folder)

    assert (folder / "a.md").read_bytes() == "é\r\nb\n".encode()
    assert (folder / "deep" / "er" / "b.md").read_bytes() == b"text\n"
    assert sorted(changed) == [folder / "a.md", folder / "deep" / "er" / "b.md"]
    assert [path.name for path in tmp_path.iterdir()] == ["build"]


def test_only_what_changes_is_touched(tmp_path):
    write([page("a.md"), page("b.md")], tmp_path)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in tmp_path.iterdir()}

    changed = write([page("a.md"), page("b.md", "new\n")], tmp_path)

    assert changed == [tmp_path / "b.md"]
    after = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in tmp_path.iterdir()}
    assert after[tmp_path / "a.md"] == before[tmp_path / "a.md"]
    assert after[tmp_path / "b.md"] != before[tmp_path / "b.md"]
    assert (tmp_path / "b.md").read_text(encoding="utf-8") == "new\n"
    assert write([page("a.md"), page("b.md", "new\n")], tmp_path) == []


def test_what_is_no_longer_generated_goes_and_nothing_else(tmp_path):
    folder = tmp_path / "pages"
    write([page("a.md"), page("old/x.md"), page("old/er/y.md"), page("both/z.md")], folder)
    (folder / "left.tmp").write_text("from a run that was stopped", encoding="utf-8")
    (tmp_path / "beside.md").write_text("not ours", encoding="utf-8")

    changed = write([page("a.md"), page("both/w.md")], folder)

    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*")} == {
        "a.md",
        "both",
        "both/w.md",
    }
    assert {path.relative_to(folder).as_posix() for path in changed} == {
        "both/w.md",
        "both/z.md",
        "left.tmp",
        "old/er/y.md",
        "old/x.md",
    }
    assert (tmp_path / "beside.md").read_text(encoding="utf-8") == "not ours"


def test_no_pages_at_all(tmp_path):
    assert write([], tmp_path / "pages") == []
    write([page("a.md")], tmp_path / "pages")
    assert write([], tmp_path / "pages") == [tmp_path / "pages" / "a.md"]


def test_a_failed_write_leaves_the_old_page(tmp_path, monkeypatch):
    write([page("a.md")], tmp_path)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("build_tools.write.os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write([page("a.md", "new\n")], tmp_path)

    assert (tmp_path / "a.md").read_text(encoding="utf-8") == "text\n"
