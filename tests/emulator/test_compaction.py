"""Compaction at the emulated providers, whole and streamed, read by the vendors' SDKs.

What is made, what is taken back, what is known and billed afterwards, and what is refused.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from anthropic import types as errors

from segue import emulator
from segue.canonical.blocks import Text, calls_of
from segue.canonical.request import Request
from segue.emulator import Emulator
from segue.emulator.client import post
from segue.emulator.steps import ReplySteps
from tests.bodies import Body
from tests.bodies.anthropic import assistant, call, result, text, tool, user
from tests.bodies.responses import call as call_item
from tests.bodies.responses import result as result_item

FACT = "The codeword is HERON."
ASK: Body = {"role": "user", "content": "What did I say so far?"}
TALK = [{"role": "user", "content": FACT}, {"role": "assistant", "content": "Noted."}]
LONG: Body = {"role": "user", "content": f"{FACT} {'filler ' * 40_000}"}
TRIGGER: Body = {"type": "compaction_trigger"}
ON_DEMAND: Any = {"type": "summarize"}
BETAS = ["compact-2026-01-12", "compact-2026-09-04"]
BETA_HEADER = {"anthropic-beta": ",".join(BETAS)}


def threshold(**fields: Any) -> Any:
    trigger = {"type": "input_tokens", "value": 50_000}
    return {"edits": [{"type": "compact_20260112", "trigger": trigger, **fields}]}


@pytest.fixture
def gpt() -> Iterator[Emulator]:
    with emulator.start("openai-responses") as running:
        yield running


@pytest.fixture
def claude() -> Iterator[Emulator]:
    with emulator.start("anthropic") as running:
        yield running


# --------------------------------------------------------------------------------------------------------------- OpenAI


def openai_client(running: Emulator, key: str = "a-key") -> openai.OpenAI:
    return openai.OpenAI(base_url=running.base_url, api_key=key, max_retries=0)


def compact_on_trigger(running: Emulator, *history: Any, key: str = "a-key") -> Body:
    reply = openai_client(running, key).responses.create(model="gpt-5", input=[*history, TRIGGER])
    (item,) = reply.output
    assert item.type == "compaction"
    return item.model_dump(exclude_none=True)


def test_trigger_gives_one_opaque_item(gpt: Emulator) -> None:
    item = compact_on_trigger(gpt, *TALK)
    assert item.keys() == {"id", "type", "encrypted_content"}
    assert item["id"].startswith("cmp_")
    assert item["encrypted_content"].startswith("gAAAAA")
    assert not gpt.requests[-1].text
    client = openai_client(gpt)
    reply = client.responses.create(model="gpt-5", input=[item, ASK])
    assert FACT in reply.output_text
    # The model of the same account makes no difference, nor does a missing id.
    bare = {key: value for key, value in item.items() if key != "id"}
    assert FACT in client.responses.create(model="gpt-4.1", input=[bare, ASK]).output_text


def test_trigger_in_a_stream(gpt: Emulator) -> None:
    client = openai_client(gpt)
    given: Any = [*TALK, TRIGGER]
    events: list[Any] = list(client.responses.create(model="gpt-5", input=given, stream=True))
    assert [event.type.removeprefix("response.") for event in events] == [
        *("created", "in_progress", "output_item.added", "compaction.compacting", "output_item.done", "completed")
    ]
    assert [event.sequence_number for event in events] == list(range(6))
    completed = events[-1]
    (item,) = completed.response.output
    assert [event.item.id for event in events[2:5:2]] == [item.id] * 2
    assert (events[3].item_id, events[3].output_index) == (item.id, 0)
    assert completed.response.usage.output_tokens > 0


def test_content_can_not_be_read(gpt: Emulator) -> None:
    sealed = compact_on_trigger(gpt, *TALK)["encrypted_content"]
    data = base64.urlsafe_b64decode(sealed.removeprefix("gAAAAABp"))
    assert b"HERON" not in data
    for start in range(len(data)):
        with pytest.raises(zlib.error):
            zlib.decompress(data[start:])


def test_item_of_another_account_or_endpoint_and_changed_ones(gpt: Emulator) -> None:
    item = compact_on_trigger(gpt, *TALK)
    sealed: str = item["encrypted_content"]
    middle = len(sealed) // 2
    undecodable = "The encrypted content for item {} could not be verified. Reason: Encrypted content could not be "
    undecodable += "decrypted or parsed."
    moved = "The encrypted content for item cmp_other could not be verified. Reason: Encrypted content item_id did not "
    moved += "match the target item id."
    changed = sealed[:middle] + ("A" if sealed[middle] != "A" else "B") + sealed[middle + 1 :]
    with emulator.start("openai-responses", seed=1) as other:
        for running, key, sent, words in (
            (gpt, "a-key", {**item, "encrypted_content": changed}, undecodable.format(item["id"])),
            (gpt, "a-key", {**item, "encrypted_content": sealed[:-12]}, undecodable.format(item["id"])),
            (gpt, "another-key", item, undecodable.format(item["id"])),
            (other, "a-key", item, undecodable.format(item["id"])),
            (gpt, "a-key", {**item, "id": "cmp_other"}, moved),
        ):
            with pytest.raises(openai.BadRequestError) as raised:
                openai_client(running, key).responses.create(model="gpt-5", input=[sent, ASK])
            assert (raised.value.code, raised.value.body["message"]) == ("invalid_encrypted_content", words)  # type: ignore[index]


@pytest.mark.parametrize("streamed", [False, True])
def test_threshold_compacts_in_front_of_the_answer(gpt: Emulator, streamed: bool) -> None:
    client, management = openai_client(gpt), [{"type": "compaction", "compact_threshold": 1000}]

    def ask(*items: Any) -> Any:
        made = client.responses.create(
            model="gpt-4.1",
            input=[*items],
            context_management=management,
            stream=streamed,  # type: ignore[call-overload]
        )
        if not streamed:
            return made
        events = list(made)
        assert [event.sequence_number for event in events] == list(range(len(events)))
        added = [event.output_index for event in events if event.type == "response.output_item.added"]
        assert added == list(range(len(events[-1].response.output)))
        assert "response.compaction.compacting" not in {event.type for event in events}
        return events[-1].response

    first = ask(LONG)
    assert [item.type for item in first.output] == ["compaction", "message"]
    assert first.output_text
    output = [item.model_dump(exclude_none=True) for item in first.output]
    # What is before the item may stay or go; it is billed if it is there, and does not compact again.
    whole, pruned = ask(LONG, *output, ASK), ask(*output, ASK)
    for reply in (whole, pruned):
        assert [item.type for item in reply.output] == ["message"]
        assert FACT in reply.output_text
    assert whole.usage.input_tokens > 50_000 > 1000 > pruned.usage.input_tokens


def test_standalone_compaction(gpt: Emulator) -> None:
    client = openai_client(gpt)
    made = client.responses.compact(model="gpt-5", input=[*TALK, {"role": "user", "content": "Go on."}])
    assert made.object == "response.compaction"
    assert [item.type for item in made.output] == ["message", "message", "compaction"]
    assert made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens
    # The SDK's type of an output has no parts of a user.
    window: Any = [item.model_dump(exclude_none=True, warnings=False) for item in made.output]
    reply = client.responses.create(model="gpt-5", input=[*window, ASK])
    # Each message once: that in the window and that in the item are the same.
    assert reply.output_text.count(FACT) == 1
    with pytest.raises(openai.BadRequestError, match="not found"):
        client.responses.create(model="gpt-5", input="q", previous_response_id=made.id)
    for body, words in (
        ({"input": "q"}, "Missing required parameter: 'model'."),
        ({"model": "gpt-5", "input": "q", "include": []}, "Unknown parameter: 'include'."),
        ({"model": "gpt-5", "input": "q", "stream": True}, "Unknown parameter: 'stream'."),
    ):
        with pytest.raises(openai.BadRequestError) as raised:
            client.post("/responses/compact", body=body, cast_to=object)
        assert raised.value.body["message"] == words  # type: ignore[index]


def test_calls_in_a_compaction_stay_with_their_results(gpt: Emulator) -> None:
    """The model continues the turn in which it was compacted, and a second compaction contains the first."""
    seen: list[Request] = []

    def script(request: Request) -> ReplySteps | None:
        seen.append(request)
        return None

    with emulator.start("openai-responses", script=script) as running:
        history = [{"role": "user", "content": "Call f."}, call_item(), result_item()]
        item = compact_on_trigger(running, *TALK, *history)
        item = compact_on_trigger(running, TALK[0], {"role": "developer", "content": "New."}, item, ASK)
        tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
        body = {"model": "gpt-5", "tools": tools, "input": [TALK[0], item]}
        assert post(running, body, key="a-key").status == 200
    said = [block.text for message in seen[-1].messages for block in message.blocks if isinstance(block, Text)]
    assert said.count(FACT) == 1
    assert "New." in said
    assert [block.name for message in seen[-1].messages for block in calls_of(message)] == ["f"]


def test_stored_response_with_a_compaction_goes_on(gpt: Emulator) -> None:
    client = openai_client(gpt)
    made = client.responses.create(model="gpt-5", input=[*TALK, TRIGGER])
    reply = client.responses.create(model="gpt-5", previous_response_id=made.id, input=[ASK])
    assert FACT in reply.output_text


# ------------------------------------------------------------------------------------------------------------ Anthropic


def anthropic_client(running: Emulator, key: str = "a-key") -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=running.base_url, api_key=key, max_retries=0)


def ask_claude(running: Emulator, *messages: Any, key: str = "a-key", streamed: bool = False, **more: Any) -> Any:
    client = anthropic_client(running, key)
    arguments: Any = {"model": "claude-opus-4-6", "max_tokens": 4096, "betas": BETAS, "messages": [*messages], **more}
    if not streamed:
        return client.beta.messages.create(**arguments)
    with client.beta.messages.stream(**arguments) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("streamed", [False, True])
def test_on_demand_gives_a_signed_block_alone(claude: Emulator, streamed: bool) -> None:
    made = ask_claude(claude, *TALK, compaction=ON_DEMAND, streamed=streamed)
    (block,) = made.content
    assert (block.type, made.stop_reason) == ("compaction", "compaction")
    assert FACT in block.content
    assert block.signature
    assert (made.usage.input_tokens, made.usage.output_tokens) == (0, 0)
    (iteration,) = made.usage.iterations
    assert iteration.type == "compaction"
    assert iteration.input_tokens > 0 < iteration.output_tokens
    sent: Any = {"role": "assistant", "content": [block.to_dict()]}
    reply = ask_claude(claude, sent, ASK)
    assert FACT in reply.content[0].text
    again = ask_claude(claude, sent, {"role": "user", "content": "And OTTER."}, compaction=ON_DEMAND)
    assert all(word in again.content[0].content for word in ("HERON", "OTTER"))


def read_events(running: Emulator, body: Body) -> list[Body]:
    sent = post(running, {**body, "stream": True}, stream=True, headers=BETA_HEADER)
    return [json.loads(line[6:]) for line in sent.data.decode().splitlines() if line.startswith("data: ")]


def test_signed_block_streams_whole_and_a_threshold_in_one_delta(claude: Emulator) -> None:
    body: Body = {"model": "claude-opus-4-6", "max_tokens": 4096}
    events = read_events(claude, {**body, "messages": TALK, "compaction": ON_DEMAND})
    assert [event["type"] for event in events] == [
        *("message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop")
    ]
    assert events[1]["content_block"].keys() == {"type", "content", "signature", "tool_changes"}
    events = read_events(claude, {**body, "messages": [LONG], "context_management": threshold()})
    start, delta, stop = events[1:4]
    assert start["content_block"] == {"type": "compaction", "content": None}
    assert delta["delta"].keys() == {"type", "content", "encrypted_content"}
    assert FACT in delta["delta"]["content"]
    assert (start["index"], stop["index"], events[4]["index"]) == (0, 0, 1)


@pytest.mark.parametrize("streamed", [False, True])
def test_threshold_of_claude(claude: Emulator, streamed: bool) -> None:
    assert [block.type for block in ask_claude(claude, TALK[0], context_management=threshold()).content] == ["text"]
    made = ask_claude(claude, LONG, context_management=threshold(), streamed=streamed)
    assert [block.type for block in made.content] == ["compaction", "text"]
    assert made.stop_reason == "end_turn"
    compacted, answered = made.usage.iterations
    assert (compacted.type, answered.type) == ("compaction", "message")
    assert compacted.input_tokens > 50_000 > made.usage.input_tokens == answered.input_tokens
    sent: Any = {"role": "assistant", "content": [block.to_dict() for block in made.content]}
    # What is in front of the block is ignored and not billed.
    whole, pruned = (ask_claude(claude, *before, sent, ASK, context_management=threshold()) for before in ([LONG], []))
    for reply in (whole, pruned):
        assert [block.type for block in reply.content] == ["text"]
        assert FACT in reply.content[0].text
    assert whole.usage.input_tokens == pruned.usage.input_tokens < 5000


@pytest.mark.parametrize("streamed", [False, True])
def test_pause_after_compaction(claude: Emulator, streamed: bool) -> None:
    management = threshold(pause_after_compaction=True)
    made = ask_claude(claude, LONG, context_management=management, streamed=streamed)
    assert ([block.type for block in made.content], made.stop_reason) == (["compaction"], "compaction")
    sent: Any = {"role": "assistant", "content": [block.to_dict() for block in made.content]}
    reply = ask_claude(claude, LONG, sent, context_management=management)
    assert reply.stop_reason == "end_turn"


def test_summary_that_is_cut_off_is_no_block(claude: Emulator) -> None:
    made = ask_claude(claude, LONG, compaction=ON_DEMAND, max_tokens=5)
    assert (made.content, made.stop_reason) == ([], "max_tokens")
    assert made.usage.iterations[0].output_tokens == 5


CODES = {
    "changed": errors.CompactionContentMismatchError,
    "truncated": errors.CompactionSignatureInvalidError,
    "tool changes": errors.CompactionToolChangesMismatchError,
    "of another account": errors.CompactionSignatureInvalidError,
    "misplaced": errors.CompactionBlockMisplacedError,
    "two": errors.CompactionBlockAmbiguousError,
    "an open call": errors.CompactionIncompleteTurnError,
    "nothing": errors.CompactionNothingToSummarizeError,
}


@pytest.mark.parametrize("case", CODES)
def test_error_codes_of_claude(claude: Emulator, case: str) -> None:
    key = "another-key" if case == "of another account" else "a-key"
    block = ask_claude(claude, *TALK, compaction=ON_DEMAND).content[0].to_dict()
    removed = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "f"}}
    sent: Any = {
        "changed": [assistant({**block, "content": "So far."}), ASK],
        "truncated": [assistant({**block, "signature": block["signature"][:-8]}), ASK],
        "tool changes": [assistant({**block, "tool_changes": [removed]}), ASK],
        "of another account": [assistant(block), ASK],
        "misplaced": [*TALK, assistant(block), ASK],
        "two": [assistant(block, block), ASK],
        "an open call": [user(text()), assistant(call())],
        "nothing": [],
    }[case]
    more: Body = {"compaction": ON_DEMAND, "tools": [tool()]} if case in ("an open call", "nothing") else {}
    with pytest.raises(CODES[case]):
        ask_claude(claude, *sent, key=key, **more)


def test_instructions_are_bounded(claude: Emulator) -> None:
    for length in (16_384, 16_385):
        instructions: Any = {**ON_DEMAND, "instructions": "i" * length}
        if length == 16_384:
            assert ask_claude(claude, *TALK, compaction=instructions).stop_reason == "compaction"
            continue
        with pytest.raises(anthropic.BadRequestError, match="String should have at most 16384 characters"):
            ask_claude(claude, *TALK, compaction=instructions)


def test_headers_of_the_betas(claude: Emulator) -> None:
    block = ask_claude(claude, *TALK, compaction=ON_DEMAND).content[0].to_dict()
    for more, words in (
        ({"messages": TALK, "compaction": ON_DEMAND}, "requires anthropic-beta: compact-2026-09-04"),
        ({"messages": TALK, "context_management": threshold()}, "context_management: Extra inputs are not permitted"),
        ({"messages": [assistant(block), ASK]}, "Input tag 'compaction' found using 'type' does not match"),
    ):
        sent = post(claude, {"model": "claude-opus-4-6", "max_tokens": 99, **more}, key="a-key")
        assert sent.status == 400
        assert words in sent.body["error"]["message"]
    counted = anthropic_client(claude).beta.messages.count_tokens(
        model="claude-opus-4-6", messages=TALK, compaction=ON_DEMAND
    )
    assert counted.input_tokens > 0


def test_calls_after_a_compaction(claude: Emulator) -> None:
    """A compaction in the middle of a tool loop: the calls after it and their results are known."""
    made = ask_claude(claude, LONG, assistant(call()), user(result()), tools=[tool()], context_management=threshold())
    assert [block.type for block in made.content] == ["compaction", "text"]
    assert "called f" in made.content[0].content
    sent: Any = [assistant(made.content[0].to_dict(), call("b")), user(result("b"))]
    assert ask_claude(claude, LONG, *sent, tools=[tool()]).content[0].type == "text"


# --------------------------------------------------------------------------------------------------------------- others


@pytest.mark.parametrize(
    ("api", "more"),
    [
        ("openai-chat", {"context_management": [{"type": "compaction"}]}),
        ("openai-chat", {"compaction": ON_DEMAND}),
        ("openai-responses", {"compaction": ON_DEMAND}),
        ("anthropic", {"context_management": [{"type": "compaction", "compact_threshold": 1000}]}),
        ("mistral", {"compaction": ON_DEMAND}),
        ("gemini", {"compaction": ON_DEMAND}),
        ("azure-foundry", {"input": [*TALK, TRIGGER]}),
    ],
)
def test_other_apis_refuse_the_fields(api: str, more: Body) -> None:
    least: Body = {
        "gemini": {"contents": [{"role": "user", "parts": [{"text": "q"}]}]},
        "azure-foundry": {},
        "openai-responses": {"model": "gpt-5", "input": "q"},
        "anthropic": {"model": "claude-opus-4-6", "max_tokens": 9, "messages": TALK[:1]},
    }.get(api, {"messages": TALK[:1], "model": "gpt-4.1" if api == "openai-chat" else "mistral-large-latest"})
    with emulator.start(api) as running:
        assert post(running, {**least, **more}).status in (400, 422)
