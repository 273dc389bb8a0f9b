"""Each compression strategy: dropped, kept, reported and protected messages."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import pytest

from segue.canonical.blocks import (
    Block,
    Media,
    Message,
    Native,
    Opaque,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResponse,
    text_of,
)
from segue.canonical.compress import STRATEGIES, CompressionResult, compress
from segue.canonical.history import History
from segue.canonical.placeholders import REMOVED
from segue.errors import InputError


def human(text: str, **fields: Any) -> Message:
    return Message("human", (Text(text),), **fields)


def ai(*blocks: Block | str) -> Message:
    return Message("ai", tuple(Text(block) if isinstance(block, str) else block for block in blocks))


def call(call_id: str, name: str = "read_file", **arguments: Any) -> ToolCall:
    return ToolCall(name, arguments, call_id)


def result(call_id: str, content: str | Block | None = None, **fields: Any) -> Message:
    blocks = (Text(content),) if isinstance(content, str) else () if content is None else (content,)
    return Message("tool", (ToolResponse(call_id, content=blocks, **fields),))


def length(message: Message) -> int:
    """Characters of text, and 1000 for a picture: numbers that a test can be read by."""
    return sum(_length(block) for block in message.blocks)


def _length(block: Block) -> int:
    match block:
        case Text() | Thinking():
            return len(block.text)
        case ToolResponse():
            structured = 0 if not isinstance(block.structured, dict) else len(str(block.structured))
            return structured + sum(_length(inner) for inner in block.content or ())
        case Media():
            return 1000
        case _:
            return 10


def compress_twice(messages: Sequence[Message], strategy: str, budget: int, **more: Any) -> CompressionResult:
    """Compressed; and once more, which changes nothing."""
    made = compress(messages, strategy, budget, count=length, **more)
    assert made.tokens == sum(map(length, made.messages)) <= made.before == sum(map(length, messages))
    assert made.reached == (made.tokens <= budget) == (not made.reason)
    again = compress(made.messages, strategy, budget, count=length, **more)
    assert (again.messages, again.changes) == (made.messages, ())
    return made


def result_texts(made: CompressionResult) -> list[str]:
    """The text of each result."""
    return [text_of(b.content) for message in made.messages for b in message.blocks if isinstance(b, ToolResponse)]


def reads(*texts: str) -> list[Message]:
    """One exchange with a call for each result."""
    turns = (m for i, text in enumerate(texts) for m in (ai(call(f"c{i}", path=f"{i}.txt")), result(f"c{i}", text)))
    return [human("go"), *turns, ai("done")]


def exchanges(count: int, *, start: int = 0) -> list[Message]:
    """Exchanges of 100 tokens each: words, a call and its result, an answer."""
    return [
        message
        for i in range(start, start + count)
        for message in (human(f"ask {i}".ljust(20)), ai(call(f"c{i}")), result(f"c{i}", "x" * 50), ai("a" * 20))
    ]


# ---------------------------------------------------------------------------------------------------------- in general


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_fitting_history_is_unchanged(strategy: str):
    messages = exchanges(3)
    made = compress_twice(messages, strategy, 300)
    assert all(one is other for one, other in zip(made.messages, messages, strict=True))
    assert (made.reached, made.changes, made.tokens) == (True, (), 300)


@pytest.mark.parametrize(("strategy", "budget", "path"), [("zip", 1, "strategy"), ("dense", -1, "budget")])
def test_contradictory_arguments_are_rejected(strategy: str, budget: int, path: str):
    with pytest.raises(InputError) as caught:
        compress([], strategy, budget, count=length)
    assert caught.value.path == path


@pytest.mark.parametrize("count", [lambda _: -1, lambda _: 1.5, lambda _: None])
def test_a_counter_must_count(count: Any):
    with pytest.raises(InputError, match="tokens"):
        compress(exchanges(1), "dense", 1, count=count)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pinned_messages_system_text_and_open_turns_stay(strategy: str):
    thinking = Thinking("hm", signature="c2ln", origin=Origin("anthropic"))
    open_turn = ai(thinking, "both", call("o1", path="x"), call("o2", path="y"))
    kept = [
        Message("system", (Text("s" * 90),)),
        human("never forget " * 9, pinned=True),
        open_turn,
        result("o1", "one"),
    ]
    messages = [kept[0], *exchanges(2), kept[1], ai("fine"), *kept[2:], human("meanwhile"), *exchanges(2, start=2)]
    made = compress_twice(messages, strategy, 1, summarise=lambda _: "s")
    assert not made.reached
    assert [message for message in made.messages if message in kept] == kept
    assert "1 pinned message, 1 pending call" in made.reason


def test_a_pinned_call_keeps_its_results_and_a_pinned_result_its_call():
    for pinned in (1, 2):
        messages = exchanges(3)
        messages[pinned] = Message(messages[pinned].speaker, messages[pinned].blocks, pinned=True)
        made = compress_twice(messages, "drop-oldest", 1)
        assert made.messages[:2] == tuple(messages[1:3])


def test_a_late_result_goes_with_its_call_and_not_before():
    late = [human("a" * 50), ai(call("late")), human("b" * 50), result("late", "x" * 50), ai("ok"), human("c" * 50)]
    made = compress_twice(late, "drop-oldest", 170)
    assert made.messages == tuple(late[1:])
    made = compress_twice(late, "drop-oldest", 100)
    assert made.messages == (late[5],)


def test_reasoning_stays_with_what_was_made_with_it():
    """OpenAI's items are messages of their own where something else stood between them on the wire."""
    turn = [ai(Thinking("", signature="rs_1")), ai(call("p")), result("p", "r")]
    turn[1] = Message("ai", turn[1].blocks, pinned=True)
    made = compress_twice([human("x" * 99), *turn, human("y")], "drop-oldest", 30)
    assert made.messages == (*turn, human("y"))


def test_an_answer_to_a_request_for_approval_stays_with_it():
    approval = Origin("openai", raw_id="mcpr_1", family="mcp-approval")
    asked = ai(ToolCall("run", {}, "h", kind="hosted", origin=approval, awaited=False))
    answer = Message("human", (Opaque("mcp_approval_response", text="yes", origin=approval),))
    messages = [human("x" * 50), asked, answer, ai("ran"), human("y" * 50)]
    assert compress_twice(messages, "drop-oldest", 60).messages == (messages[4],)
    messages[1] = Message("ai", asked.blocks, pinned=True)
    assert compress_twice(messages, "drop-oldest", 20).messages == (*messages[1:3], messages[4])


def test_changes_list_each_message():
    made = compress_twice(exchanges(3), "drop-oldest", 250)
    assert [(note.action, note.index, note.before, note.after) for note in made.changes] == [
        ("dropped", 0, 20, 0),
        ("dropped", 1, 10, 0),
        ("dropped", 2, 50, 0),
        ("dropped", 3, 20, 0),
    ]
    assert [note.calls for note in made.changes] == [(), ("c0",), ("c0",), ()]
    assert str(made.changes[2]) == "message 3 was dropped: 50 → 0 tokens"


# ---------------------------------------------------------------------------------------------------- truncate-results


def test_old_results_are_shortened_first_head_and_tail_kept():
    text = "".join(chr(97 + i % 26) for i in range(9000))
    made = compress_twice(reads(text, text, text, text), "truncate-results", 33_000)
    first, *rest = result_texts(made)
    assert rest == [text] * 3
    head, tail = first.split("\n[… 5,000 characters left out …]\n")
    assert (head, tail) == (text[:2666], text[-1334:])
    assert [note.action for note in made.changes] == ["shortened"]
    assert made.changes[0].calls == ("c0",)


def test_step_by_step_the_newest_turns_last():
    texts = ["z" * 9000] * 4
    assert [len(text) for text in result_texts(compress_twice(reads(*texts), "truncate-results", 18_520))] == [
        233,
        233,
        9000,
        9000,
    ]
    assert result_texts(compress_twice(reads(*texts), "truncate-results", 18_200))[:2] == [REMOVED, REMOVED]
    least = compress_twice(reads(*texts), "truncate-results", 0)
    assert [len(text) for text in result_texts(least)] == [30, 30, 233, 233]
    assert least.reason == "every result is as short as possible"


def test_shortened_result_is_shortened_again_with_total():
    text = "h" * 5000 + "t" * 5000
    once = compress_twice(reads(text, "", ""), "truncate-results", 5000)
    twice = compress_twice(once.messages, "truncate-results", 1500)
    assert "\n[… 6,000 characters left out …]\n" in result_texts(once)[0]
    assert result_texts(twice)[0] == "h" * 666 + "\n[… 9,000 characters left out …]\n" + "t" * 334


@pytest.mark.parametrize("count", [",", "9" * 5000, "٣", "1,2", ""])
def test_text_resembling_a_cut_is_text(count: str):
    text = "h" * 5000 + f"\n[… {count} characters left out …]\n" + "t" * 5000
    [first, *_] = result_texts(compress_twice(reads(text, "", ""), "truncate-results", 5000))
    assert first.startswith("h" * 600)
    assert first.endswith("t" * 300)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("count", ["9" * 5000, "٣"])
def test_text_resembling_a_summary_is_text(strategy: str, count: str):
    words = human(f"[summary of {count} earlier messages] no")
    compress_twice([words, ai("yes"), *exchanges(4)], strategy, 200, summarise=lambda messages: "so")


def test_a_shortened_result_keeps_its_state_and_claims_no_fragment():
    native = Native("anthropic", {"type": "tool_result", "content": "…", "cache_control": {"type": "ephemeral"}})
    long = (Text("e" * 9000),)
    failed = ToolResponse("f", "read_file", long, error=True, is_complete=True, native=native, origin=Origin("x"))
    messages = [human("go"), ai(call("f")), Message("tool", (failed, Text("said too")), native=native), *reads("", "")]
    made = compress_twice(messages, "truncate-results", 100)
    message = made.messages[2]
    shorter, text_block = message.blocks
    assert isinstance(shorter, ToolResponse)
    assert (shorter.error, shorter.is_complete, shorter.name, shorter.origin) == (True, True, "read_file", Origin("x"))
    assert shorter.content == (Text(REMOVED),)
    assert shorter.native == Native("anthropic", {"cache_control": {"type": "ephemeral"}}, intact=False)
    assert message.native is not None
    assert not message.native.intact
    assert text_block == Text("said too")


def test_values_and_pictures_are_shortened_too():
    value = {"rows": ["r" * 50] * 100}
    picture = Media("image", "image/png", data="aGk=")
    messages = [
        *(human("go"), ai(call("v")), result("v", structured=value), ai(call("p")), result("p", picture)),
        *reads("", "")[1:],
    ]
    made = compress_twice(messages, "truncate-results", 1200)
    assert result_texts(made)[0].startswith('{"rows":["rrr')
    assert result_texts(made)[1] == "[image left out]"
    assert result_texts(compress_twice(messages, "truncate-results", 70))[:2] == [REMOVED, "[image left out]"]


def test_short_results_and_those_of_providers_are_left():
    hosted = ToolCall("web_search", {}, "h", kind="hosted")
    found = ToolResponse("h", content=(Text("f" * 9000),), hosted=True)
    messages = [human("go"), ai(hosted, found, "so"), *reads("ok", "fine", "", "")[1:]]
    made = compress_twice(messages, "truncate-results", 1)
    assert made.messages == tuple(messages)


COUNTERS: dict[str, Any] = {
    "constant": lambda _: 7,
    "bytes": lambda message: len(repr(message).encode()),
    "growing where shortened": lambda message: (
        10_000 - len(str(message.blocks)) if len(str(message)) < 9_000 else 9_999
    ),
    "digits": lambda message: len(str(message)) % 97,
    "hash": lambda message: int.from_bytes(sha256(repr(message).encode()).digest()[:2]),
}


@pytest.mark.parametrize("strategy", ["truncate-results", "dense", "drop-oldest"])
@pytest.mark.parametrize("counter", COUNTERS)
def test_a_second_run_changes_nothing_with_any_counter(strategy: str, counter: str):
    for seed in range(8):
        texts = [f"{(seed * i) % 3} " + "x" * ((seed * 977 + i * 1931) % 9000) for i in range(9)]
        calls = [call(f"c{i}", path=str(i % 2)) for i in range(9)]
        together = Message("tool", tuple(ToolResponse(f"c{i}", content=(Text(texts[i]),)) for i in range(6)))
        alone = [m for i in range(6, 9) for m in (ai(calls[i]), result(f"c{i}", texts[i]))]
        messages = [human("go"), ai(*calls[:6]), together, human("on"), *alone]
        count = COUNTERS[counter]
        for budget in (0, sum(map(count, messages)) // 2, sum(map(count, messages)) - 1):
            made = compress(messages, strategy, budget, count=count)
            again = compress(made.messages, strategy, budget, count=count)
            assert (again.messages, again.changes) == (made.messages, ())


# --------------------------------------------------------------------------------------------------------- drop-oldest


def test_a_user_message_that_begins_like_a_summary_is_kept():
    words = human("[summary of 3 earlier messages] is what I want to read")
    turns = [m for i in range(3) for m in (ai(call(f"c{i}")), result(f"c{i}", "x" * 50))]
    messages = [*exchanges(1, start=9), words, *turns]
    assert compress_twice(messages, "drop-oldest", 1).messages == (words, *turns[-2:])
    made = compress_twice(messages, "middle-out", 1, summarise=lambda _: "s")
    assert words in made.messages


def test_whole_exchanges_go_from_the_front():
    messages = exchanges(5)
    assert compress_twice(messages, "drop-oldest", 499).messages == tuple(messages[4:])
    assert compress_twice(messages, "drop-oldest", 200).messages == tuple(messages[12:])


def test_last_exchange_keeps_user_text_and_newest_turn():
    messages = reads("x" * 100, "y" * 100, "z" * 100)
    assert compress_twice(messages, "drop-oldest", 240).messages == (messages[0], *messages[3:])
    least = compress_twice(messages[:-1], "drop-oldest", 1)
    assert least.messages == (messages[0], *messages[5:7])
    assert least.reason == "the last exchange alone exceeds the budget"


def test_results_of_calls_that_the_provider_holds_stay():
    messages = [human("go"), result("elsewhere", "r" * 50), ai("a" * 50), human("b" * 50)]
    assert compress_twice(messages, "drop-oldest", 60).messages == (messages[3],)
    assert compress_twice(messages, "drop-oldest", 60, has_provider_state=True).messages == (messages[1], messages[3])
    assert compress_twice(messages, "truncate-results", 60, has_provider_state=True).messages == tuple(messages)


# ---------------------------------------------------------------------------------------------------------- middle-out


def test_the_middle_becomes_a_summary():
    seen: list[Sequence[Message]] = []

    def summarise(messages: Sequence[Message]) -> str:
        seen.append(messages)
        return " They talked. "

    messages = exchanges(4)
    made = compress_twice(messages, "middle-out", 300, summarise=summarise)
    assert [list(each) for each in seen] == [messages[4:12]]
    summary = human("[summary of 8 earlier messages] They talked.", summarised=8)
    assert made.messages == (*messages[:4], summary, *messages[12:])
    assert [note.action for note in made.changes] == ["summarised"] * 8
    # More is said, and the summary becomes part of the next.
    longer = [*made.messages, *exchanges(2, start=4)]
    made = compress_twice(longer, "middle-out", 260, summarise=lambda messages: str(len(messages)))
    assert text_of(made.messages[4].blocks) == "[summary of 16 earlier messages] 9"


def test_each_dropped_range_has_its_own_summary():
    messages = exchanges(5)
    messages[8] = human("keep me", pinned=True)
    made = compress_twice(messages, "middle-out", 280, summarise=lambda messages: str(len(messages)))
    assert made.messages[:4] == tuple(messages[:4])
    assert made.messages[-4:] == tuple(messages[16:])
    summaries = [f"[summary of {n} earlier messages] {n}" for n in (4, 7)]
    assert [text_of(message.blocks) for message in made.messages[4:-4]] == [summaries[0], "keep me", summaries[1]]


def test_one_long_exchange_has_a_middle_too():
    messages = reads("x" * 100, "y" * 100, "z" * 100)[:-1]
    made = compress_twice(messages, "middle-out", 200, summarise=lambda _: "read two files")
    assert made.messages == (
        messages[0],
        human("[summary of 4 earlier messages] read two files", summarised=4),
        *messages[5:],
    )


def test_a_late_result_is_not_summarised_without_its_call():
    messages = [
        *exchanges(2),
        *(ai(call("late"), "l" * 100), human("keep " * 9, pinned=True), result("late", "x" * 100), ai("so " * 20)),
        *exchanges(1, start=2),
    ]
    made = compress_twice(messages, "middle-out", 1, summarise=lambda _: "s")
    assert messages[8] in made.messages
    assert messages[10] in made.messages
    assert "[summary of" in str(made.messages)


def test_a_summary_that_saves_nothing_is_not_taken():
    made = compress_twice(exchanges(4), "middle-out", 300, summarise=lambda _: "word " * 100)
    assert made.messages == tuple(exchanges(4))
    assert made.reason == "a summary was not shorter than its messages"


@pytest.mark.parametrize("summarise", [None, lambda _: "", lambda _: " ", lambda _: None])
def test_empty_summary_is_rejected(summarise: Any):
    with pytest.raises(InputError) as caught:
        compress(exchanges(4), "middle-out", 300, count=length, summarise=summarise)
    assert caught.value.path == "summarise"


# --------------------------------------------------------------------------------------------------------------- dense

LONG, OTHER, THIRD = "a" * 500, "b" * 500, "c" * 500


def worked(*steps: tuple[ToolCall, str]) -> list[Message]:
    return [human("go"), *(m for made, text in steps for m in (ai(made), result(made.id, text))), ai("done")]


def test_repeated_result_is_kept_once():
    messages = worked(
        (call("1", "bash", command="date"), LONG), (call("2", "sh", x=1), OTHER), (call("3", "sh", x=2), LONG)
    )
    line = '[repeated: the same result of sh {"x":2} is further on]'
    assert result_texts(compress_twice(messages, "dense", 1)) == [line, OTHER, LONG]


def test_a_newer_listing_takes_the_place_of_an_older():
    messages = worked(*((call(str(i), "list_dir", path="src"), text) for i, text in enumerate((LONG, OTHER, THIRD))))
    line = '[superseded: a newer result of list_dir {"path":"src"} is further on]'
    assert result_texts(compress_twice(messages, "dense", 1)) == [line, line, THIRD]
    assert result_texts(compress_twice(messages, "dense", 1200)) == [line, OTHER, THIRD]


def test_a_read_is_stale_when_the_file_was_written_to_and_read_again():
    messages = worked(
        (call("1", "read_file", path="./a.py", limit=10), LONG),
        (call("2", "read_file", path="b.py"), LONG + "b"),
        (call("3", "edit_file", file_path="a.py"), "ok"),
        (call("4", "view", path="a.py"), OTHER),
    )
    line = '[stale: a.py was changed since; a newer result of view {"path":"a.py"} is further on]'
    assert result_texts(compress_twice(messages, "dense", 1)) == [line, LONG + "b", "ok", OTHER]


@pytest.mark.parametrize(
    "write",
    [
        ToolCall(
            "apply_patch", "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch", "w", kind="custom"
        ),
        call("w", "str_replace_based_edit_tool", command="str_replace", path="a.py"),
        call("w", "multiEdit", filePath="a.py"),
    ],
)
def test_writers_are_detected_by_name_and_patch(write: ToolCall):
    view = {"command": "view", "path": "a.py"}
    messages = worked(
        (call("1", "str_replace_based_edit_tool", **view, view_range=[1, 9]), LONG),
        (write, "ok"),
        (call("2", "str_replace_based_edit_tool", **view), OTHER),
    )
    assert result_texts(compress_twice(messages, "dense", 1))[0].startswith("[stale: a.py")


def test_only_mention_of_a_file_stays():
    cases = [
        # Not read again since it was written to.
        worked((call("1", path="a"), LONG), (call("2", "write", path="a"), "ok")),
        # Another part of a file that nobody wrote to.
        worked((call("1", path="a", offset=1), LONG), (call("2", path="a", offset=2), OTHER)),
        # No telling what the tool does, or it gives something else each time.
        worked((call("1", "bash", command="make"), LONG), (call("2", "bash", command="make"), OTHER)),
        worked((call("1", "get_next_page"), LONG), (call("2", "get_next_page"), OTHER)),
        # The newer one was cut.
        worked((call("1", path="a"), LONG), (call("2", path="a"), "x\n[… 9 characters left out …]\ny" + OTHER)),
        worked((call("1", path="a"), LONG), (call("2", path="a"), REMOVED)),
        # Short ones.
        worked((call("1", path="a"), "ok"), (call("2", path="a"), "ok")),
    ]
    for messages in cases:
        assert compress_twice(messages, "dense", 1).messages == tuple(messages)


def test_failed_reads_and_pinned_ones_are_no_matter():
    messages = worked((call("1", path="a"), LONG), (call("2", path="a"), OTHER))
    messages[4] = result("2", OTHER, error=True)
    assert compress_twice(messages, "dense", 1).messages == tuple(messages)
    messages = worked((call("1", path="a"), LONG), (call("2", path="a"), OTHER))
    messages[2] = Message("tool", messages[2].blocks, pinned=True)
    assert compress_twice(messages, "dense", 1).messages == tuple(messages)


# ------------------------------------------------------------------------------------------------------ write boundary


def shortened() -> tuple[History, ToolCall, tuple[Message, ...]]:
    made = call("", path="a")
    history = History([human("go"), ai(made)])
    (pending,) = history.pending
    history.add(Message("tool", (pending.respond("x" * 9000),)), *reads("", "")[1:])
    before = history.messages
    history.replace_messages(compress(before, "truncate-results", 300, count=length).messages)
    return history, pending, before


def test_ledger_keeps_shortened_and_original_results():
    history, pending, before = shortened()
    entry = history.ledger[pending.id]
    assert entry.completion is history.messages[2].blocks[0]
    assert entry.original is before[2].blocks[0]
    assert entry.state == "complete"
    history.replace_messages([message for message in history.messages if message.speaker != "tool"])
    supplied, given = history.complete_from_ledger()
    assert pending.id in given
    assert not [m for m in supplied if "x" * 1000 in str(m)], "a shortened payload came back"


def test_the_same_result_again_is_still_no_news():
    history, pending, _ = shortened()
    now = history.messages
    assert history.add(Message("tool", (pending.respond("x" * 9000),))) == ()
    assert (history.messages, history.ledger[pending.id].evidence) == (now, [])


def test_compression_can_be_undone():
    history, pending, before = shortened()
    history.replace_messages(before)
    assert history.messages == before
    assert (history.ledger[pending.id].completion, history.ledger[pending.id].original) == (before[2].blocks[0], None)


def test_a_better_result_takes_the_place_of_a_shortened_one():
    history = History([human("go"), ai(call("", path="a"))])
    (pending,) = history.pending
    history.add(Message("tool", (pending.respond("e" * 9000, error=True),)))
    history.replace_messages(compress(history.messages, "truncate-results", 1, count=length).messages)
    history.add(Message("tool", (pending.respond("real"),)))
    assert result_texts(CompressionResult(history.messages, (), 0, 0, True)) == ["real"]
    assert history.ledger[pending.id].original is None


def test_dropped_interactions_are_not_supplied_and_open_calls_can_not_be_left_out():
    history = History(exchanges(2))
    history.replace_messages(compress(history.messages, "drop-oldest", 100, count=length).messages)
    assert len(history.ledger) == 2
    assert history.complete_from_ledger() == (history.messages, [])
    history.add(ai(call("open")))
    with pytest.raises(InputError, match="has no result yet"):
        history.replace_messages(history.messages[:-1])
    with pytest.raises(InputError, match="not a tool call of this history"):
        history.replace_messages([*history.messages, ai(call("new"))])


def test_an_imported_result_before_its_call_answers_it():
    history = History([human("go"), result("early", "r"), ai(call("early"))])
    assert history.pending == []
    assert history.ledger["early"].state == "complete"
