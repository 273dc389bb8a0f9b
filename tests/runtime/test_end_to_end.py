"""End to end over real HTTP and strict providers: one script gives one history on every API."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from segue._conversation import Conversation
from segue.bridge.providers import Endpoint
from segue.runtime.events import CallEnded, Event, ReplyReceived
from segue.runtime.tool_types import Tool
from tests.each import for_each
from tests.runtime import bodies
from tests.runtime.harness import APIS, ECHO, FAIL, TEXT_PARAMETERS, Harness, endpoint_of, open_harness
from tests.runtime.session_checks import LogWithChildren, find_invalid_bodies, find_problems, summarize_history

# ------------------------------------------------------------------------------------------------ one script, ten ways

SCRIPT = """
think  What is there to hear?
say    I listen.
call   echo {"words": "one"}
call   fail {"words": "two"}
call   echo {"words": "one"}
call   nobody {"words": "three"}
call   echo {"word": "four"}
call   slow {"words": "five"}
---
call   echo {"words": "ünï 💡 \\"quoted\\" \\\\ back"}
---
say    Done: {echo}.
---
error  503 Busy.
---
say    I will not fin
call   echo {"words": "never"}
cut
---
think  Again.
call   echo {"words": "six"}
---
say    This is as long as
end    length
"""


async def _never(arguments: Any, context: Any) -> str:
    await asyncio.Event().wait()
    return "never"


SLOW = Tool("slow", "Takes too long.", TEXT_PARAMETERS, _never, blocking=False, timeout=0.01)


def _run_script(api: str, folder: Path) -> tuple[list[Any], list[Any], list[Any]]:
    async def play() -> tuple[list[Any], list[Any], list[Any]]:
        conversation_log = LogWithChildren(Conversation(system="Be brief.", reasoning={"effort": "low"}))
        async with open_harness({api: SCRIPT}, folder, log=conversation_log, tools=(ECHO, FAIL, SLOW)) as harness:
            ends = [await harness.session.ask(words) for words in ("Go.", "And?")]
            assert find_problems(harness) == []
            assert find_invalid_bodies(conversation_log) == []
            outcomes = [(event.tool, event.outcome, event.text) for event in harness.events_of(CallEnded)]
            return (
                summarize_history(conversation_log.messages),
                sorted(outcomes),
                [(end.outcome, end.text, end.turns, end.finish) for end in ends],
            )

    return asyncio.run(play())


def test_the_same_script_writes_the_same_history_at_every_provider(tmp_path: Path) -> None:
    histories = {api: _run_script(api, tmp_path) for api in APIS}
    history, outcomes, ends = histories["openai-chat"]
    assert ends == [
        ("answered", 'Done: heard ünï 💡 "quoted" \\ back.', 3, "stop"),
        ("answered", "This is as long as", 2, "length"),
    ]
    assert [line[1] for line in history if line[0] == "tool"] == [
        "complete",
        "error",
        "complete",
        *["error"] * 3,
        *["complete"] * 2,
    ]
    assert ("slow", "timed-out", "timed out after 0.01 seconds") in outcomes
    for api, played in histories.items():
        assert played == (history, outcomes, ends), api


@for_each("api", [api for api in APIS if api != "gemini"])
def test_truncated_call_gets_an_outcome_that_reaches_the_model(api: str, tmp_path: Path) -> None:
    """The limit of tokens came in the middle of a call: nothing runs, and the exchange is not over with half a call."""
    script = 'say    I write.\ncall   echo {"words": "a long te\nend    length\n---\nsay    Shorter, then.'

    async def play() -> None:
        async with open_harness({api: script}, tmp_path, log=LogWithChildren()) as harness:
            ended = await harness.session.ask("Go.")
            assert ended.text == "Shorter, then."
            [line] = [line for line in summarize_history(harness.session.log.messages) if line[0] == "tool"]
            assert line[1] == "error"
            assert harness.rejections == []

    asyncio.run(play())


# ------------------------------------------------------------------------------------------------ switching, every turn

CALLS = """
think  Two at once.
say    I listen.
call   echo {{"words": "{api} one"}}
call   fail {{"words": "{api} two"}}
call   echo {{"words": "{api} one"}}
"""


class Tour:
    """Goes on to the next endpoint after every reply that calls something."""

    def __init__(self) -> None:
        self.stage: Harness | None = None
        self.stops: list[Endpoint] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, ReplyReceived) and event.calls and self.stops:
            assert self.stage is not None
            self.stage.session.switch(self.stops.pop(0))


def _request_all_stops(harness: Harness, tour: Tour, stops: list[Endpoint], words: str = "Go.") -> Any:
    tour.stage = harness
    harness.session.switch(stops[0])
    tour.stops = stops[1:]
    return harness.session.ask(words)


def test_switching_at_every_turn_through_all_providers_and_back(tmp_path: Path) -> None:
    """In one task, with parallel calls, errors, thinking; then one with a call that is cancelled; then once more."""
    there_and_back = [*APIS, *reversed(APIS)]
    done = "say    Done."
    waits = 'call   wait {"words": "for ever"}\ncall   echo {"words": "not for ever"}'
    scripts: dict[str, str | None] = {}
    for api in APIS:
        calls = CALLS.format(api=api)
        first = [calls, done if api == APIS[0] else calls]
        scripts[api] = "\n---\n".join([*first, *([waits] if api == "kimi" else []), *first])

    async def play() -> None:
        tour = Tour()

        def listen(event: Event) -> None:
            tour(event)
            if isinstance(event, CallEnded) and event.text == "heard not for ever":
                asyncio.get_running_loop().call_soon(harness.session.cancel)

        conversation_log = LogWithChildren(Conversation(reasoning={"effort": "low"}))
        async with open_harness(scripts, tmp_path, log=conversation_log, listen=listen) as harness:
            stops = [endpoint_of(harness.providers[api]) for api in there_and_back]
            assert (await _request_all_stops(harness, tour, stops)).text == "Done."
            assert (
                await _request_all_stops(harness, tour, [endpoint_of(harness.providers["kimi"])])
            ).outcome == "cancelled"
            assert (await _request_all_stops(harness, tour, stops)).text == "Done."
            asked = [event.provider for event in harness.events_of(ReplyReceived)]
            assert asked == [*there_and_back, "kimi", *there_and_back]
            assert find_problems(harness) == []
            assert find_invalid_bodies(conversation_log) == []
            wanted = [
                text
                for api in there_and_back[:-1]
                for text in (f"heard {api} one", f"no {api} two", f"heard {api} one")
            ]
            cancelled = ["[cancelled before it finished]", "heard not for ever"]
            assert harness.results == [*wanted, *cancelled, *wanted]
            # Every request has the history up to its time.
            for api, provider in harness.providers.items():
                for request in provider.requests:
                    assert request.body is not None
                    result_values = [result.value for result in bodies.results(api, request.body)]
                    assert result_values == harness.results[: len(result_values)], f"{api} {request.number}"

    asyncio.run(play())


# ------------------------------------------------------------------------------------------------------------------- K2


@for_each("model", ["kimi-k2-0905-preview", "kimi-k2-thinking", "kimi-k2-0711-preview"])
def test_many_rounds_of_k2_tool_calls(model: str, tmp_path: Path) -> None:
    """Ids are functions.name:index all through, counted over the whole conversation; the model is never confused."""
    rounds = [
        f'call   echo {{"words": "{n}"}}\ncall   fail {{"words": "{n}"}}\ncall   echo {{"words": "{n}"}}'
        for n in range(4)
    ]
    script = "\n---\n".join([*rounds, "say    Done.", *rounds, "say    Done."])

    async def play() -> None:
        async with open_harness({"kimi": script}, tmp_path, models={"kimi": model}, log=LogWithChildren()) as harness:
            for _ in range(2):
                assert (await harness.session.ask("Go.")).text == "Done."
            assert find_problems(harness) == []
            requests = harness.providers["kimi"].requests
            assert [request.confused for request in requests] == [False] * 10
            for number, request in enumerate(requests):
                assert request.body is not None
                count = 3 * (number if number < 5 else number - 1)
                names = ["echo", "fail", "echo"] * 8
                ids = [f"functions.{name}:{index}" for index, name in enumerate(names[:count])]
                assert [call.id for call in bodies.calls("kimi", request.body)] == ids
                assert [result.id for result in bodies.results("kimi", request.body)] == ids

    asyncio.run(play())


PAIRS = [
    ("openai-chat", "kimi"),
    ("openai-responses", "kimi"),
    ("kimi", "openai-chat"),
    ("kimi", "openai-responses"),
    ("kimi", "anthropic"),
    ("anthropic", "kimi"),
    ("mistral", "kimi"),
    ("kimi", "mistral"),
    ("kimi", "gemini"),
    ("bedrock", "kimi"),
]


@for_each("here, there", PAIRS, ids=" to ".join)
def test_k2_in_mid_task(here: str, there: str, tmp_path: Path) -> None:
    """Four rounds here, four there, four here again, all in one exchange."""
    calls = ['call   echo {"words": "a"}\ncall   echo {"words": "b"}', 'call   fail {"words": "c"}'] * 2
    scripts = {here: "\n---\n".join([*calls, *calls, "say    Done: {echo}."]), there: "\n---\n".join(calls)}

    async def play() -> None:
        tour = Tour()
        async with open_harness(scripts, tmp_path, log=LogWithChildren(), listen=tour) as harness:
            one, other = (endpoint_of(harness.providers[api]) for api in (here, there))
            ended = await _request_all_stops(harness, tour, [one] * 4 + [other] * 4 + [one] * 5)
            assert (ended.outcome, ended.text) == ("answered", "Done: heard b.")
            assert [event.provider for event in harness.events_of(ReplyReceived)] == [here] * 4 + [there] * 4 + [
                here
            ] * 5
            assert harness.results == ["heard a", "heard b", "no c"] * 6
            assert find_problems(harness) == []
            own = harness.providers["kimi"].requests[-1].body
            assert own is not None
            indexes = [int((call.id or "").rpartition(":")[2]) for call in bodies.calls("kimi", own)]
            assert indexes == list(range(len(indexes)))

    asyncio.run(play())


# --------------------------------------------------------------------------------------------------- formats in prose

WRITTEN = {
    "hermes": '<tool_call>\n       {"name": "echo", "arguments": {"words": "WORD"} }\n       </tool_call>',
    "xml": (
        "<tool_call>\n       <function=echo>\n       <parameter=words>\n       WORD\n       </parameter>\n"
        "       </function>\n       </tool_call>"
    ),
    "llama": '{"name": "echo", "parameters": {"words": "WORD"} }',
    "gemma": '<|tool_call>call:echo{words:<|"|>WORD<|"|>}<tool_call|>',
    "deepseek-text": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>echo\n       ```json\n"
        '       {"words": "WORD"}\n       ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    ),
    "kimi-text": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.echo:INDEX<|tool_call_argument_begin|>"
        '{"words": "WORD"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    "mistral-text": '[TOOL_CALLS][{"name": "echo", "arguments": {"words": "WORD"} }]',
}
ON = [
    *(("openai-chat", name) for name in WRITTEN),
    ("qwen", "hermes"),
    ("qwen", "xml"),
    ("kimi", "kimi-text"),
    ("mistral", "mistral-text"),
    ("deepseek", "deepseek-text"),
]


@for_each("api, tool_format", ON, ids=" ".join)
def test_tool_calls_in_prose_switched_in_mid_task_to_native_and_back(
    api: str, tool_format: str, tmp_path: Path
) -> None:
    """Prose, native, prose, another provider, prose: each call is run once, and the history is that of native calls."""

    def written(word: str, index: int) -> str:
        return "say    " + WRITTEN[tool_format].replace("WORD", word).replace("INDEX", str(index))

    native = 'call   echo {"words": "two"}'
    script = "\n---\n".join([written("one", 0), native, written("three", 2), written("five", 4), "say    Done."])
    elsewhere = 'call   echo {"words": "four"}\n---\nsay    Done.'

    async def play() -> None:
        tour = Tour()
        async with open_harness(
            {api: script, "anthropic": elsewhere}, tmp_path, log=LogWithChildren(), listen=tour
        ) as harness:
            plain = endpoint_of(harness.providers[api])
            prose = endpoint_of(harness.providers[api], tool_format=tool_format)
            away = endpoint_of(harness.providers["anthropic"])
            ended = await _request_all_stops(harness, tour, [prose, plain, prose, away, prose, prose])
            assert (ended.outcome, ended.text) == ("answered", "Done.")
            assert harness.results == [f"heard {word}" for word in ("one", "two", "three", "four", "five")]
            assert find_problems(harness) == []
            called = [line for line in summarize_history(harness.session.log.messages) if line[1] == "calls"]
            assert called == [
                ("ai", "calls", "echo", {"words": word}) for word in ("one", "two", "three", "four", "five")
            ]
            texts = [
                line[1]
                for line in summarize_history(harness.session.log.messages)
                if line[0] == "ai" and len(line) == 2
            ]
            assert texts == ["Done."]
            one, two, three, five, last = (request.body for request in harness.providers[api].requests)
            assert two is not None
            assert [result.value for result in bodies.results(api, two)] == ["heard one"]
            for body, words in (
                (one, []),
                (three, ["one", "two"]),
                (five, ["one", "two", "three", "four"]),
                (last, ["one", "two", "three", "four", "five"]),
            ):
                assert body is not None
                assert "tools" not in body
                assert {message["role"] for message in body["messages"]} <= {"system", "user", "assistant"}
                assert not any(message.get("tool_calls") for message in body["messages"])
                text = json.dumps([message["content"] for message in body["messages"][1:]], ensure_ascii=False)
                places = [text.index(f"heard {word}") for word in words]
                assert places == sorted(places)
                assert text.count("heard ") == len(words)

    asyncio.run(play())
