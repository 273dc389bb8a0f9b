"""The chat view on constructed events: sanitized, in order, at any width."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from segue.canonical.request import Usage
from segue.cli.chat_ui.approvals import format_choices, format_question, parse_answer
from segue.cli.chat_ui.event_view import EventView
from segue.cli.chat_ui.formatter import MarkdownFormatter
from segue.cli.chat_ui.styles import Row, display_width, format_table, rows_to_text, truncate, wrap
from segue.cli.chat_ui.usage import UsageTotals, format_footer
from segue.runtime import events
from segue.runtime.tool_types import AllowRules, ApprovalDecision, ApprovalRequest, ApprovalScope, Denial
from segue.view.sanitize import sanitize, sanitize_line

MODEL: dict[str, Any] = {"provider": "anthropic", "model": "claude-sonnet-5"}
SCOPE = ApprovalScope("git *", ("shell(git *)",))
ATTACKS = [
    "\x1b[2J",
    "\x1b]52;c;aGk=\x07",
    "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
    "\x9b31m",
    "\x9d0;title\x9c",
    "a\rb",
    "\x08\x08",
    "\x0b\x0c",
    "\u202egnp.exe",
    "\u2066x\u2069",
    "\u200e\u061c",
    "\ud800",
    "\U000e0041",
    "\u2028",
    "\x7f",
    "\x00",
]


class Page:
    """A view, and what it has pushed."""

    def __init__(self, width: int = 80) -> None:
        self.rows: list[Row] = []
        self.now = 0.0
        self.view = EventView(self.rows.extend, width=lambda: width, clock=lambda: self.now)

    def handle(self, *emitted: events.Event) -> Page:
        for event in emitted:
            self.view.on_event(event)
        return self

    @property
    def text(self) -> str:
        return rows_to_text(self.rows)

    @property
    def live(self) -> str:
        return rows_to_text(self.view.live_rows(12))


def harmless_text(text: str) -> bool:
    return all(char.isprintable() or char in "\n\t" for char in text)


def queued(id: str, tool: str = "shell", shown: str = "", task: str | None = None) -> events.CallQueued:
    return events.CallQueued(id=id, tool=tool, arguments={}, summary=shown, task=task)


def ended(id: str, outcome: Any = "complete", text: str = "ok", **more: Any) -> events.CallEnded:
    return events.CallEnded(id=id, tool="shell", outcome=outcome, text=text, seconds=1.5, **more)


# --------------------------------------------------------------------------------------------------------- harmless


@given(st.text())
def test_nothing_but_printable_text_line_ends_and_tabs_passes(text: str):
    assert harmless_text(sanitize(text))
    assert "\n" not in sanitize_line(text)
    assert harmless_text(sanitize_line(text))


@given(st.text(), st.integers(0, 20))
def test_split_input_is_sanitized_alike(text: str, place: int):
    assert harmless_text(sanitize(text[:place]) + sanitize(text[place:]))


@given(st.text(st.characters(categories=["L", "N", "P", "S", "M"], include_characters=" \n\t")))
def test_ordinary_text_stays_as_it_is(text: str):
    assert sanitize(text) == text


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("width", [40, 200])
def test_no_event_drives_the_terminal(attack: str, width: int):
    page = Page(width)
    page.view.shows_details = page.view.shows_reasoning = True
    one = {"provider": attack, "model": attack}
    page.handle(
        events.ExchangeStarted(text=attack),
        events.RequestSent(**one, api=attack, number=1, messages=1, findings=(attack,)),
        events.RetryScheduled(**one, why=attack, seconds=1.0, attempt=1),
        events.ModelSwitched(**one, why=attack),
        events.ReasoningDelta(text=f"hm {attack} hm"),
    )
    live = page.live
    page.handle(
        events.TextDelta(text=f"so {attack} so `{attack}`\n```\n{attack}\n"),
        events.StreamBroken(**one, why=attack, will_retry=True),
        queued("1", tool=attack, shown=attack),
        events.CallQueued(id="2", tool="t", arguments={"a": attack}),
        events.CallStarted(id="1", tool=attack),
        events.CallProgress(id="1", tool=attack, text=attack),
        queued("3", tool=attack, shown=attack, task="1"),
        events.TextDelta(task="1", text=attack),
    )
    live += page.live
    page.handle(
        ended("1", "error", attack),
        events.LateResult(id="1", tool=attack),
        events.ConversationCompressed(strategy=attack, before=2, after=1),
        events.ExchangeEnded(outcome="failed", text=attack, turns=1, usage=Usage(), seconds=1.0),
    )
    asked = rows_to_text(format_question(ApprovalRequest(attack, attack, attack, f"@@\n+{attack}\n-{attack}"), width))
    below = rows_to_text([format_footer(width, model=attack, usage=UsageTotals())])
    for text in (live, page.text, asked, below):
        assert harmless_text(text)


# ------------------------------------------------------------------------------------------------------------- prose


TEXTS = """Let me **look at it** with `a tool`, see *.py and **kwargs.

# Head
- one `two` three
```py
x = 1  # **no**
```
end"""


def format_text(fragments: Iterable[str], width: int = 60) -> list[Row]:
    made = MarkdownFormatter(lambda: width)
    rows: list[Row] = []
    for piece in fragments:
        rows += made.feed(piece)
        made.partial  # noqa: B018  looking changes nothing
    return rows + made.close()


FRAGMENTS = [
    "a",
    "b ",
    "**",
    "`",
    "```",
    "\n",
    "\n```\n",
    "**b**",
    "`c` ",
    "- ",
    "+ ",
    "_ ",
    "# ",
    "日本",
    "> ",
    "| x |",
    "1. ",
    "\t",
]


@given(st.lists(st.sampled_from([*FRAGMENTS, "word " * 30, "x" * 50]), max_size=40).map("".join), st.integers(10, 60))
@example("\t\t\t1. ", 10)
@example("- - - - - - - - \n", 10)
def test_rows_do_not_depend_on_deltas(text: str, width: int):
    assert format_text([text], width) == format_text(text, width) == format_text([text[:7], text[7:]], width)


@given(st.text("ab* `\n#-日", max_size=120), st.integers(10, 40))
def test_no_letter_is_lost(text: str, width: int):
    shown = rows_to_text(format_text(text, width))
    for letter in "ab日":
        assert shown.count(letter) == text.count(letter)


def test_markdown_is_marked_lightly():
    rows = format_text([TEXTS])
    fragments = {text: style for row in rows for style, text in row}
    assert fragments["look at it"] == "class:bold"
    assert fragments["a tool"] == "class:code"
    assert fragments["# **no**"] == "class:comment"
    assert fragments["Head"] == "class:head"
    assert "*.py and **kwargs." in rows_to_text(rows)


def test_code_is_coloured_by_its_language():
    rows = format_text(['```python\ndef f():\n    """A\n    b"""\n    return 1\n```\n```\ndef g\n```\n'])
    fragments = {text: style for row in rows for style, text in row}
    assert fragments["def"] == "class:keyword"
    assert fragments["f"] == "class:name"
    assert fragments['    b"""'] == "class:string"
    assert fragments["1"] == "class:number"
    assert fragments["def g"] == "class:block"
    assert rows_to_text(rows).count("def") == 2


def test_table_is_drawn():
    text = "| name | count |\n|---|--:|\n| `apple` | 3 |\n| a long name that does not fit | 12 |\nAfter.\n"
    rows = format_text(list(text), 30)
    shown = rows_to_text(rows).splitlines()
    assert shown[0].split("│")[0].strip() == "name"
    assert set(shown[1]) == {"─", "┼"}
    assert shown[2].split("│")[0].strip() == "apple"
    assert shown[2].endswith("    3")
    assert all(display_width(line) <= 30 for line in shown)
    assert shown[-1] == "After."


def test_lines_that_are_no_table_stay_as_they_are():
    assert rows_to_text(format_text(["| a | b |\n| c | d |\n"])) == "| a | b |\n| c | d |\n"


def test_rows_fit_and_lists_hang():
    rows = format_text(["- " + "word " * 40], 40)
    assert all(display_width(row) <= 40 for row in rows)
    assert all(rows_to_text([row]).startswith("  word") for row in rows[1:])


def test_a_long_word_is_left_whole():
    address = "https://example.com/" + "x" * 80
    assert address in rows_to_text(format_text([f"see {address} now"], 40))


def test_wide_characters_are_counted_as_two():
    assert all(display_width(row) <= 21 for row in format_text(["日本語" * 20], 21))


# -------------------------------------------------------------------------------------------------------------- calls


def test_parallel_calls_are_printed_in_call_order():
    page = Page().handle(queued("1", shown="make"), queued("2", tool="grep"), queued("3", tool="glob"))
    page.handle(events.CallStarted(id="1", tool="shell"), events.CallStarted(id="2", tool="grep"))
    page.now = 3.0
    page.handle(events.CallProgress(id="1", tool="shell", text="one\ntwo"))
    live = page.live.splitlines()
    assert live[0] == "  ⟳ shell  make  3 s  two"
    assert live[1] == "  ⟳ grep  3 s"
    assert live[2] == "  ◌ glob  queued"
    page.handle(ended("2", text="a\nb"))
    assert page.text == ""
    assert "✓ grep  2 lines, 1.5 s" in page.live
    page.handle(ended("1", "error", "exit code 2\nmore"))
    shell = ["  ✗ shell  make  1.5 s", "    exit code 2", "    more"]
    assert page.text.splitlines() == [*shell, "  ✓ grep  2 lines, 1.5 s", "    a", "    b"]
    page.handle(ended("3", "cancelled"))
    assert page.text.splitlines()[-1] == "  – glob  cancelled"
    assert page.live == ""


def test_subagent_calls_are_nested():
    page = Page().handle(queued("t", tool="task", shown="look"), events.CallStarted(id="t", tool="task"))
    page.handle(queued("1", tool="grep", shown="port", task="t"), events.CallStarted(id="1", tool="grep", task="t"))
    page.handle(events.TextDelta(task="t", text="Found it."))
    assert page.live.splitlines() == ["  ⟳ task  look  0 s  Found it.", "    ⟳ grep  port  0 s"]
    page.handle(ended("1", task="t"))
    assert page.text == ""
    page.handle(ended("t"))
    assert page.text.splitlines() == ["  ✓ task  look  1.5 s", "    ✓ grep  port  1.5 s", "      ok", "    ok"]


def test_first_and_last_lines_of_an_output_are_shown_and_a_key_shows_all():
    lines = [f"line {number}" for number in range(1, 31)]
    page = Page().handle(events.ExchangeStarted(text="go"), queued("1"), events.CallStarted(id="1", tool="shell"))
    page.handle(ended("1", text="\n".join(lines)), queued("2"), events.CallStarted(id="2", tool="shell"))
    page.handle(ended("2", "error", "exit code 1\n" + "\n".join(lines)))
    shown = [line.strip() for line in page.text.splitlines()]
    first, second = shown.index("line 1"), shown.index("exit code 1")
    assert shown[first : first + 6] == [*lines[:3], "… 25 more lines, Ctrl-O shows all", *lines[-2:]]
    assert shown[second + 1 :] == [*lines[:9], "… 16 more lines, Ctrl-O shows all", *lines[-5:]]
    before = len(page.text)
    assert page.view.print_outputs()
    assert [line.strip() for line in page.text[before:].splitlines()].count("line 15") == 2
    # A turn without calls leaves them; the next call replaces them.
    page.handle(events.ExchangeStarted(text="again"))
    assert page.view.print_outputs()
    page.handle(queued("3"), events.CallStarted(id="3", tool="shell"))
    assert not page.view.print_outputs()


def test_the_key_that_shows_all_shows_the_ends_of_long_lines():
    words = [f"word{number}" for number in range(40)]
    page = Page(60).handle(queued("1"), events.CallStarted(id="1", tool="shell"), ended("1", text=" ".join(words)))
    assert "…" in page.text
    page.rows.clear()
    assert page.view.print_outputs()
    assert page.text.split()[-40:] == words


def test_what_a_failed_command_printed_is_shown_as_it_is():
    words = " ".join(f"word{number}" for number in range(60))
    page = Page().handle(queued("1"), events.CallStarted(id="1", tool="shell"))
    page.handle(ended("1", "error", f"{words}\nmore"))
    assert "word0" in page.text
    assert "word59" not in page.text, "it is no reason, which is wrapped"


def test_no_line_is_hidden_for_a_line_that_says_so():
    for count in (1, 5, 6):
        page = Page().handle(queued("1"), events.CallStarted(id="1", tool="shell"))
        page.handle(ended("1", text="\n".join(f"line {number}" for number in range(count))))
        assert page.text.count("line ") == count
        assert "more line" not in page.text


def test_reasoning_and_a_chosen_switch_are_told_once():
    page = Page().handle(events.ExchangeStarted(text="go"))
    for _ in range(3):
        page.handle(
            events.ReasoningDelta(text="Hm."),
            events.TextDelta(text="So.\n"),
            events.ReplyReceived(**MODEL, finish="stop", text="", calls=0, seconds=1.0),
        )
    assert page.text.count("thought") == 1
    page.handle(events.ExchangeStarted(text="more"), events.ReasoningDelta(text="Hm."), events.TextDelta(text="So."))
    assert page.text.count("thought") == 2
    page.handle(events.ModelSwitched(provider="a", model="b", why="chosen"))
    assert "switched" not in page.text
    page.handle(events.ModelSwitched(provider="a", model="b", why="the one before failed"))
    assert "switched to a/b (the one before failed)" in page.text


def test_file_in_a_message_is_a_card():
    text = "Look at @a.txt\na.txt:\n````\nx\n```\ny\n````\nb.txt:\n```\nz\n```"
    page = Page().handle(events.ExchangeStarted(text=text))
    assert page.text.splitlines() == ["❯ Look at @a.txt", "  ▤ a.txt  3 lines", "  ▤ b.txt  1 line"]
    assert Page().handle(events.ExchangeStarted(text="a.txt:\n```\nx\n```")).text == "  ▤ a.txt  1 line\n"


@pytest.mark.parametrize("width", [20, 40, 60])
def test_cells_of_tables_wrap(width: int):
    words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    rows = rows_to_text(
        format_text([f"| name | text |\n|---|---|\n| a | {words} |\n| b | short |\n"], width)
    ).splitlines()
    assert " ".join(" ".join(row.partition("│")[2].split()) for row in rows[2:-1]).split() == words.split()
    assert max(map(display_width, rows)) <= width
    assert not any("…" in row for row in rows)


def test_code_fences_are_drawn():
    assert rows_to_text(format_text(["```python\nx = 1\n```\nend\n"])).splitlines() == [
        "┌ python",
        "│ x = 1",
        "└",
        "end",
    ]


@pytest.mark.parametrize("width", [30, 60, 100])
def test_tables_keep_every_word(width: int):
    rows = [("/model [PROVIDER/MODEL]", "show or switch the model " * 3), ("Ctrl-T", "show or hide")]
    formatted = rows_to_text(format_table(rows, ("class:name", ""), width))
    assert formatted.split() == " ".join(f"{name} {text}" for name, text in rows).split()
    assert max(map(display_width, formatted.splitlines())) <= width


def test_many_calls_leave_room_for_the_input():
    page = Page()
    for number in range(40):
        page.handle(queued(str(number)))
        if number % 4 == 0:
            page.handle(events.CallStarted(id=str(number), tool="shell"))
    live = page.view.live_rows(8)
    assert len(live) <= 8
    assert re.search(r"and \d+ more calls", rows_to_text(live))


def test_ended_exchange_clears_live_rows():
    page = Page().handle(events.ExchangeStarted(text="hi"), queued("1"), events.CallStarted(id="1", tool="shell"))
    page.handle(events.ExchangeEnded(outcome="cancelled", text="cancelled", turns=1, usage=Usage(), seconds=1.0))
    assert page.live == ""
    assert not page.view.is_active
    assert "cancelled" in page.text


# ----------------------------------------------------------------------------------------------------------- thoughts


def test_thoughts_are_folded_and_can_be_unfolded():
    page = Page().handle(events.ReasoningDelta(text="First this. "), events.ReasoningDelta(text="Then that."))
    page.now = 2.0
    assert page.live.startswith("✻ thinking 2 s  First this. Then that.")
    page.handle(events.TextDelta(text="Done.\n"))
    assert "thought for 2.0 s  Ctrl-T shows it" in page.text
    assert "Then that" not in page.text
    page.view.shows_reasoning = True
    assert "First this. Then that." in page.live
    page.view.shows_reasoning = False
    assert "Then that" not in page.live


# ------------------------------------------------------------------------------------------------------- looks, width


@given(st.integers(40, 200), st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=4))
def test_tables_and_texts_fit_the_width(width: int, cells: list[tuple[str, str, str]]):
    clean = [tuple(map(sanitize_line, row)) for row in cells]
    assert all(display_width(row) <= width for row in format_table(clean, ("", "", ""), width))
    for _, text, _ in cells:
        assert all(display_width(row) <= width for row in wrap(sanitize(text), width, indent="    "))
        assert display_width(truncate(sanitize_line(text), width)) <= width


@pytest.mark.parametrize("width", range(40, 201, 20))
def test_footer_and_choices_fit(width: int):
    meter = UsageTotals(lambda provider, model, usage: 0.0123)
    meter.on_event(
        events.ReplyReceived(
            **MODEL,
            finish="stop",
            text="",
            calls=0,
            seconds=1.0,
            usage=Usage(input=12_000, output=300, cache_read=9_000),
        )
    )
    full: dict[str, Any] = {"tokens": 12_300, "context": 200_000, "tool_format": "hermes"}
    (row,) = [format_footer(width, model="anthropic/claude-sonnet-5", usage=meter, **full)]
    assert display_width(row) <= width
    for scopes in ((), (SCOPE,), (SCOPE, SCOPE)):
        question = ApprovalRequest("shell", "git log", "run git log", scopes=scopes)
        choices = format_choices(width, question)
        assert display_width(choices) <= width
        assert "y yes" in rows_to_text([choices])
        assert "n no" in rows_to_text([choices])
    if width >= 100:
        assert rows_to_text([row]) == (
            "  anthropic/claude-sonnet-5  ·  12.3k of 200k  ·  cache 75 %  ·  $0.0123  ·  tools hermes\n"
        )


# ---------------------------------------------------------------------------------------------------------- approvals


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("y", "once"),
        (" YES ", "once"),
        ("a", "always"),
        ("1", AllowRules(("shell(git *)",))),
        ("2", Denial("2")),
        ("0", Denial("0")),
        ("²", Denial("²")),
        ("n", "no"),
        ("no, use the other file", Denial("use the other file")),
        ("use the other file", Denial("use the other file")),
        ("yes please look at the port", Denial("yes please look at the port")),
        ("yy", Denial("yy")),
        ("", "no"),
    ],
)
def test_only_explicit_yes_approves(line: str, answer: ApprovalDecision):
    assert parse_answer(line, ApprovalRequest("shell", "git log", "", scopes=(SCOPE,))) == answer


@given(st.text())
def test_whatever_else_is_typed_is_a_no(line: str):
    yes = line.strip().lower() in ("y", "yes", "a", "always")
    answer = parse_answer(line, ApprovalRequest("shell", "git log", ""))
    assert (answer in ("once", "always")) == yes
    assert yes or answer == "no" or isinstance(answer, Denial)


def test_a_question_shows_its_diff():
    question = ApprovalRequest("edit_file", "a.py", "edit a.py", "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-old\n+new")
    styles = {text: style for row in format_question(question, 80) for style, text in row}
    assert styles["-old"] == "class:removed"
    assert styles["+new"] == "class:added"
    assert styles["edit a.py"] == "class:bold"


# -------------------------------------------------------------------------------------------------------- long paths

LONG_FOLDER = "/" + "/".join(["a-long-folder"] * 14)


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("path", [f"{LONG_FOLDER}/notes.txt", f"src{LONG_FOLDER}/notes.txt"])
def test_the_row_of_a_call_keeps_the_name_of_its_file(path: str, width: int):
    page = Page(width).handle(queued("1", "write_file", path), events.CallStarted(id="1", tool="write_file"))
    assert "/notes.txt  0 s" in page.live
    page.handle(ended("1"))
    assert "/notes.txt  1.5 s" in page.text
    assert all(display_width(row) <= width for row in page.rows)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_reason_of_a_failed_call_keeps_its_words(width: int):
    reason = f"no permission to access {LONG_FOLDER}/notes.txt: its folder belongs to another user, who may change it"
    page = Page(width).handle(queued("1", "write_file", "notes.txt"), events.CallStarted(id="1", tool="write_file"))
    page.handle(ended("1", "error", f"{reason}\nmore"))
    text = " ".join(page.text.split())
    assert "no permission to access …/" in text
    assert "/notes.txt: its folder belongs to another user, who may change it" in text
    assert all(display_width(row) <= width for row in page.rows)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_table_keeps_the_end_of_a_folder(width: int):
    rows = format_table([("1", f"{LONG_FOLDER}/project")], ("", ""), width, wraps=False)
    assert rows_to_text(rows).rstrip().endswith("/project")
    assert display_width(rows[0]) <= width
