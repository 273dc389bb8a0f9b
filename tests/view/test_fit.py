"""Lines are fitted by their paths first; words are never cut to make room for a path."""

from __future__ import annotations

import pytest

from segue.view.fit import display_width, shorten_path, shorten_paths, truncate

LONG = "/" + "/".join(["a-long-folder"] * 14)
PATHS = [f"{LONG}/notes.txt", f"~{LONG}/notes.txt", f".{LONG}/notes.txt", f"..{LONG}/notes.txt"]
SENTENCES = [
    "the conversation's last model can't be used: {}: unknown provider mine; there is anthropic",
    "({}) was not read",
    "can't write {}: no space left on device",
    "{}:12: expected a table, not a number",
    'read "{}", then stopped',
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("width", [1, 40, 80, 120, 400])
def test_a_sentence_keeps_its_words(sentence: str, path: str, width: int):
    line = sentence.format(path)
    fitted = shorten_paths(line, width)
    before, after = sentence.split("{}")
    assert fitted.startswith(before)
    assert fitted.endswith(after)
    short = fitted[len(before) : len(fitted) - len(after)]
    assert short.endswith("/notes.txt")
    assert short == path or short.startswith("…/")
    assert display_width(fitted) <= max(width, display_width(sentence.format("…/notes.txt")))
    assert fitted == line or display_width(line) > width


def test_as_much_of_a_path_is_kept_as_fits():
    path = "/home/me/work/project/src/main.py"
    assert [shorten_path(path, width) for width in (40, 30, 20, 12, 3)] == [
        path,
        "…/me/work/project/src/main.py",
        "…/src/main.py",
        "…/main.py",
        "…/main.py",
    ]
    assert shorten_path("/home/me/work/", 8) == "…/work"
    assert shorten_path("/a", 1) == "/a"


def test_the_longest_path_gives_way_first():
    line = f"moved {LONG}/a.txt to /home/me/b.txt"
    assert shorten_paths(line, 50) == "moved …/a-long-folder/a.txt to /home/me/b.txt"
    assert shorten_paths(line, 25) == "moved …/a.txt to …/b.txt"


@pytest.mark.parametrize(
    "line",
    [
        "see https://example.com/a/b/c/d/e/f?x=/y/z/w",
        "openrouter/anthropic/claude-sonnet-5 and anthropic/claude are models",
        "either/or and 1/2/3 of 4/5",
        "no path at all, only words that go on and on",
    ],
)
def test_other_words_are_kept(line: str):
    assert shorten_paths(line, 10) == line


@pytest.mark.parametrize("width", [12, 20, 40])
def test_a_cell_with_a_path_keeps_its_last_part(width: int):
    assert truncate("src/segue/canonical/compress/plan.py", width).endswith("plan.py"[: width - 2])
    assert truncate(f"{LONG}/notes.txt", width).endswith("/notes.txt")
    assert display_width(truncate("ein Satz über 日本語 und mehr " * 9, width)) <= width


def test_a_setting_to_be_copied_is_not_shortened() -> None:
    line = 'write_file /home/ada/work/notes.txt: the setting allow = ["write_file(/home/ada/work/notes.txt)"] allows it'
    assert shorten_paths(line, 60) == line.replace("/home/ada/work/notes.txt:", "…/notes.txt:")
