"""Compactions that a caller asks for: made by the target's model where its API has none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from itertools import chain, repeat
from typing import Any

import pytest

import segue
from segue.bridge.actions import Entries, Load, Respond, ResponseHead, Send, Write
from segue.bridge.entries import EntryMemory
from segue.bridge.envelopes import EnvelopeKeys
from segue.canonical.blocks import Opaque, Text
from tests.bridge.exchanges import MODELS, NOW, Answer, Response, Shell, endpoint, make_reply, path_of, streamed, whole
from tests.bridge.test_compaction import HOME, ITEM, body_of, compacted_reply, history, said

SUMMARY = "The codeword is KESTREL-7."
TRIGGER = {"type": "compaction_trigger"}
ASKED = {"openai-responses": [TRIGGER], "anthropic": []}
FIELDS = {"openai-responses": {}, "anthropic": {"compaction": {"type": "summarize", "instructions": "Be brief."}}}
PAIRS = [(api, target) for api in HOME for target in MODELS if target != api]


def ask(shell: Shell, api: str, target: str, items: list[Any], *, stream: bool = False, **fields: Any) -> Answer:
    fields = {**FIELDS[api], **({"stream": True} if stream else {}), **fields}
    return shell.run(
        path_of(api),
        body_of(api, [*items, *ASKED[api]], **fields),
        [whole(target, make_reply(target, text=SUMMARY))] * 9,
    )


def made_by(api: str, answer: Answer) -> Any:
    """Return the only item or block of an answer, whole or streamed."""
    assert answer.status == 200, answer.data
    if not answer.data.startswith(b"event:"):
        [made] = answer.body["output" if api == "openai-responses" else "content"]
        return made
    events = [json.loads(line[6:]) for line in answer.data.decode().splitlines() if line.startswith("data: ")]
    if api == "openai-responses":
        done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        assert events[-1]["type"] == "response.completed"
        assert events[-1]["response"]["output"] == done
        [made] = done
        return made
    [start] = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    [delta] = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert delta.pop("type") == "compaction_delta"
    assert events[-2]["delta"]["stop_reason"] == "compaction"
    return {**start, **delta}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("api", "target"), PAIRS)
def test_the_targets_model_writes_it_and_every_target_gets_it_as_text(api: str, target: str, stream: bool) -> None:
    shell = Shell(endpoint(target))
    answer = ask(shell, api, target, history(api), stream=stream)
    made = made_by(api, answer)
    assert made["type"] == "compaction"
    assert (made.get("content") == SUMMARY) is (api == "anthropic")
    [sent] = answer.sent_bodies
    assert "KESTREL-7" in json.dumps(sent)
    assert "compaction" not in json.dumps(sent)
    assert answer.relay.usage is not None
    assert answer.relay.usage.output == 7
    assert segue.check(sent, target)
    if api == "anthropic" and not stream:
        assert answer.body["stop_reason"] == "compaction"
    items = [{"role": "assistant", "content": [made]} if api == "anthropic" else made, said("user", "And now?")]
    for later in MODELS:
        again = Shell(endpoint(later)).run(path_of(api), body_of(api, items), [whole(later)])
        assert again.status == 200, again.data
        text = json.dumps(again.sent_bodies[0])
        assert "summary of the conversation so far] The codeword is KESTREL-7." in text
        assert '"compaction"' not in text
        assert made.get("encrypted_content", made.get("signature")) not in text


@pytest.mark.parametrize("target", [*MODELS])
def test_compact_endpoint(target: str) -> None:
    shell = Shell(endpoint(target))
    body = {"model": "m", "input": history("openai-responses"), "instructions": "Be kind."}
    native = target == "openai-responses"
    reply = compacted_reply(target, ITEM) if native else whole(target, make_reply(target, text=SUMMARY))
    answer = shell.run("/v1/responses/compact", body, [reply])
    assert answer.status == 200, answer.data
    assert answer.body["object"] == "response.compaction"
    *users, made = answer.body["output"]
    assert users == [history("openai-responses")[0], history("openai-responses")[2]]
    assert made["type"] == "compaction"
    assert answer.body["usage"]["total_tokens"]
    if native:
        assert made == ITEM
        assert answer.sent[0].url.endswith("/v1/responses")
        assert answer.sent_bodies[0]["input"][-1] == TRIGGER
        return
    again = Shell(endpoint("kimi")).run(
        path_of("openai-responses"), body_of("openai-responses", [*users, made]), [whole("kimi")]
    )
    assert "The codeword is KESTREL-7." in json.dumps(again.sent_bodies[0])


def test_compact_without_a_model() -> None:
    answer = Shell(endpoint("kimi")).run("/v1/responses/compact", {"input": "Hi."})
    assert answer.status == 400
    assert answer.body["error"]["code"] == "missing_required_parameter"
    assert answer.body["error"]["param"] == "model"
    assert answer.sent == []


@pytest.mark.parametrize(
    "items",
    [
        [TRIGGER, said("user", "a")],
        [said("user", "a"), TRIGGER, TRIGGER],
        [said("user", "a"), TRIGGER, said("user", "b")],
    ],
)
@pytest.mark.parametrize("target", ["kimi", "openai-responses"])
def test_a_misplaced_trigger_is_rejected(target: str, items: list[Any]) -> None:
    answer = Shell(endpoint(target)).run("/v1/responses", body_of("openai-responses", items))
    assert answer.status == 400
    assert "must be the last item" in answer.body["error"]["message"]
    assert answer.sent == []


def test_nothing_to_compact() -> None:
    answer = Shell(endpoint("kimi")).run("/v1/messages", body_of("anthropic", [], **FIELDS["anthropic"]))
    assert answer.status == 400
    assert answer.body["error"]["details"]["error_code"] == "compaction_nothing_to_summarize"


@pytest.mark.parametrize("api", HOME)
@pytest.mark.parametrize("damage", ["forged", "cut", "client", "secret"])
def test_a_compaction_that_cannot_be_opened_is_never_sent(api: str, damage: str) -> None:
    made = made_by(api, ask(Shell(endpoint("kimi")), api, "kimi", history(api)))
    key = "signature" if api == "anthropic" else "encrypted_content"
    envelope = made[key]
    given = envelope[:-8] if damage == "cut" else envelope[:-2] + "AA" if damage == "forged" else envelope
    items = [{**made, key: given}, said("user", "And now?")]
    items = [{"role": "assistant", "content": [items[0]]}, items[1]] if api == "anthropic" else items
    for target in ("gemini", api):
        shell = Shell(endpoint(target), keys=EnvelopeKeys(b"x" * 32)) if damage == "secret" else Shell(endpoint(target))
        answer = shell.run(path_of(api), body_of(api, items), [whole(target)], client="other" * (damage == "client"))
        sent = json.dumps(answer.sent_bodies[0])
        assert "not available here" in sent
        assert given not in sent
        assert answer.relay.report is not None
        assert "lost" in {finding.level for finding in answer.relay.report.findings_of("dropped")}


def test_a_long_conversation_is_summarised_in_parts() -> None:
    items = [said("user", f"FACT-{number} " + "words " * 400) for number in range(40)]
    shell = Shell(endpoint("kimi", context=16_000))
    answer = ask(shell, "openai-responses", "kimi", items)
    assert made_by("openai-responses", answer)
    bodies = answer.sent_bodies
    assert len(bodies) > 2
    assert all(len(json.dumps(body)) < 3 * 16_000 for body in bodies)
    assert all(any(f"FACT-{number} " in json.dumps(body) for body in bodies) for number in range(40))
    assert all(SUMMARY in json.dumps(body) for body in bodies[1:])
    assert answer.relay.usage is not None
    assert answer.relay.usage.output == 7 * len(bodies)


@pytest.mark.parametrize("stream", [False, True])
def test_the_next_target_makes_it_if_the_first_one_fails(stream: bool) -> None:
    failed = Response([b'{"error": {"message": "No.", "type": "server_error"}}'], 500)
    shell = Shell(endpoint("kimi"), endpoint("anthropic", 1))
    body = body_of("openai-responses", [*history("openai-responses"), TRIGGER], stream=stream)
    reply = whole("anthropic", make_reply("anthropic", text=SUMMARY))
    assert made_by("openai-responses", shell.run("/v1/responses", body, [failed, reply]))
    alone = Shell(endpoint("kimi")).run("/v1/responses", body, [failed])
    assert alone.status == 500 or b"response.failed" in alone.data


@pytest.mark.parametrize("api", HOME)
def test_the_callers_own_api_makes_it_itself(api: str) -> None:
    shell = Shell(endpoint(api), cache="keep")
    body = body_of(api, [*history(api), *ASKED[api]], **FIELDS[api])
    answer = shell.run(path_of(api), body, [compacted_reply(api, HOME[api])])
    assert made_by(api, answer) == HOME[api]
    assert answer.sent_bodies[0] == body | {"model": MODELS[api]}


@pytest.mark.parametrize("by_conversation", [False, True])
@pytest.mark.parametrize("target", [*MODELS])
def test_a_response_that_compacted_can_be_continued(target: str, by_conversation: bool) -> None:
    """After it, the compaction is all that is left of the conversation."""
    shell = Shell(endpoint(target), cache="keep")
    reference: dict[str, Any] = {}
    if by_conversation:
        reference = {"conversation": shell.run("/v1/conversations", {}).body["id"]}
    body = {"model": "m", "input": [*history("openai-responses"), TRIGGER], **reference}
    reply = compacted_reply(target, ITEM) if target == "openai-responses" else None
    response = shell.run("/v1/responses", body, [reply or whole(target, make_reply(target, text=SUMMARY))]).body
    follow_up = {"model": "m", "input": "And now?", **(reference or {"previous_response_id": response["id"]})}
    answer = shell.run("/v1/responses", follow_up, [whole(target)])
    assert answer.status == 200, answer.data
    sent = json.dumps(answer.sent_bodies[0])
    assert "compaction_trigger" not in sent
    assert (ITEM["encrypted_content"] if target == "openai-responses" else SUMMARY) in sent
    assert "More." not in sent


@pytest.mark.parametrize("stream", [False, True])
def test_a_thread_goes_on_after_a_compaction(stream: bool) -> None:
    shell = Shell(endpoint("kimi"))
    answer = ask(shell, "anthropic", "kimi", history("anthropic"), stream=stream, thread={"type": "create"})
    reply = segue.assemble(answer.data, "anthropic") if stream else None
    thread = {"type": "continue", "previous_message_id": answer.body["id"] if reply is None else reply.id}
    body = body_of("anthropic", [said("user", "And now?")], thread=thread)
    [sent] = shell.run(path_of("anthropic"), body, [whole("kimi")]).sent_bodies
    assert [SUMMARY in json.dumps(sent), "More." in json.dumps(sent)] == [True, False]


def above(api: str, *, pauses: bool = False) -> dict[str, Any]:
    if api == "openai-responses":
        return {"context_management": [{"type": "compaction", "compact_threshold": 1_000}]}
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 1_000}}
    return {"context_management": {"edits": [{**edit, **({"pause_after_compaction": True} if pauses else {})}]}}


def read_streamed(api: str, answer: Answer) -> list[Any]:
    """Return the items or blocks of an answer, whole or streamed."""
    assert answer.status == 200, answer.data
    if not answer.data.startswith(b"event:"):
        return list(answer.body["output" if api == "openai-responses" else "content"])
    reply = segue.assemble(answer.data, api)
    return [dict(block.native.fragment) if block.native else {} for block in reply.blocks]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("api", "target"), PAIRS)
def test_above_the_threshold_the_compaction_comes_before_the_answer(api: str, target: str, stream: bool) -> None:
    items = [*history(api), said("assistant", "words " * 2_000), said("user", "LAST QUESTION")]
    summary, reply = (make_reply(target, text=text) for text in (SUMMARY, "The answer."))
    shell = Shell(endpoint(target))
    body = body_of(api, items, **above(api), stream=stream)
    answer = shell.run(
        path_of(api), body, [whole(target, summary), streamed(target, reply) if stream else whole(target, reply)]
    )
    made, text = read_streamed(api, answer)
    assert made["type"] == "compaction"
    assert "The answer." in json.dumps(text)
    sent = json.dumps(answer.sent_bodies[1])
    assert SUMMARY in sent
    assert "LAST QUESTION" in sent
    assert "words" not in sent
    assert answer.relay.report is not None
    assert not [one for one in answer.relay.report.findings if one.subject == "context_management"]
    # Sent back whole, the messages before it are left out, and nothing is compacted again.
    replied = [{"role": "assistant", "content": [made, text]}] if api == "anthropic" else [made, text]
    later = body_of(api, [*items, *replied, said("user", "Next.")], **above(api))
    again = shell.run(path_of(api), later, [whole(target)])
    [sent_again] = again.sent_bodies
    assert "words" not in json.dumps(sent_again)
    assert all(part in json.dumps(sent_again) for part in (SUMMARY, "The answer.", "Next."))


@pytest.mark.parametrize("api", HOME)
def test_below_the_threshold_nothing_is_compacted(api: str) -> None:
    answer = Shell(endpoint("kimi")).run(path_of(api), body_of(api, history(api), **above(api)), [whole("kimi")])
    assert "compaction" not in json.dumps(read_streamed(api, answer))
    assert len(answer.sent) == 1


def test_a_pause_after_the_compaction() -> None:
    items = [said("user", "words " * 2_000)]
    reply = whole("kimi", make_reply("kimi", text=SUMMARY))
    answer = Shell(endpoint("kimi")).run(
        "/v1/messages", body_of("anthropic", items, **above("anthropic", pauses=True)), [reply]
    )
    assert made_by("anthropic", answer)["content"] == SUMMARY
    assert answer.body["stop_reason"] == "compaction"


@pytest.mark.parametrize("api", HOME)
def test_without_a_summary_the_whole_conversation_is_sent(api: str) -> None:
    failed = Response([b'{"error": {"message": "No.", "type": "server_error"}}'], 500)
    items = [said("user", "words " * 2_000)]
    answer = Shell(endpoint("kimi")).run(path_of(api), body_of(api, items, **above(api)), [failed, whole("kimi")])
    assert "Hello back." in json.dumps(read_streamed(api, answer))
    assert "words" in json.dumps(answer.sent_bodies[1])


# ---------------------------------------------------------------------------------------------------------------- time


class Clock:
    """A clock that the replies of a provider move on."""

    def __init__(self) -> None:
        self.now = NOW

    def replies(self, seconds: float, *responses: Response) -> Iterator[Response]:
        """Yield responses, each after so many seconds; the last one again and again."""
        for response in chain(responses, repeat(responses[-1])):
            self.now += timedelta(seconds=seconds)
            yield response


LONG = [said("user", f"FACT-{number} " + "words " * 400) for number in range(60)]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", HOME)
def test_all_parts_of_a_summary_have_one_limit_of_time(api: str, stream: bool) -> None:
    """The request that waits for the summary is sent with the newest messages then."""
    memory, clock = EntryMemory(), Clock()
    Shell(endpoint(api), memory=memory).run(path_of(api), body_of(api, LONG), [compacted_reply(api, HOME[api])])
    made = HOME[api]
    items = [{"role": "assistant", "content": [made]} if api == "anthropic" else made, said("user", "And now?")]
    shell = Shell(endpoint("kimi", context=16_000), memory=memory, now=lambda: clock.now)
    part = whole("kimi", make_reply("kimi", text=SUMMARY))
    reply = streamed("kimi") if stream else whole("kimi")
    answer = shell.run(path_of(api), body_of(api, items, stream=stream), clock.replies(50, part, part, part, reply))
    assert answer.status == 200, answer.data
    assert [request.first_byte for request in answer.sent] == [120, 70, 20, None]
    sent = json.dumps(answer.sent_bodies[-1])
    assert "FACT-59 " in sent
    assert "FACT-0 " not in sent
    assert "not available here" in sent
    assert answer.relay.report is not None
    assert "lost" in {finding.level for finding in answer.relay.report.findings_of("dropped")}


@pytest.mark.parametrize("stream", [False, True])
def test_a_compaction_that_takes_too_long_is_a_time_out(stream: bool) -> None:
    """All targets have one limit together, and none is asked after it."""
    clock = Clock()
    shell = Shell(*(endpoint("kimi", number, context=16_000) for number in range(3)), now=lambda: clock.now)
    body = body_of("openai-responses", [*LONG, TRIGGER], stream=stream)
    failed = Response([b'{"error": {"message": "No.", "type": "server_error"}}'], 500)
    part = whole("kimi", make_reply("kimi", text=SUMMARY))
    answer = shell.run("/v1/responses", body, clock.replies(50, failed, part))
    assert [request.first_byte for request in answer.sent] == [120, 70, 20]
    assert "within 120 s" in answer.data.decode()
    assert stream or answer.status == 504


def test_a_failed_part_is_not_sent_again_without_reasoning() -> None:
    """A summary has no reasoning, and the body of the caller is not what its model is asked for."""
    refused = Response([b'{"error": {"message": "thinking is not valid", "type": "invalid_request_error"}}'], 400)
    part = whole("kimi", make_reply("kimi", text=SUMMARY))
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
    items = [said("user", "a"), {"role": "assistant", "content": [thought, {"type": "text", "text": "b"}]}]
    body = body_of("anthropic", [*items, said("user", "c")], **FIELDS["anthropic"])
    answer = Shell(endpoint("kimi")).run("/v1/messages", body, [refused, part])
    assert (answer.status, len(answer.sent)) == (400, 1)


@pytest.mark.parametrize("case", ["history", "threshold", "request"])
@pytest.mark.parametrize("api", HOME)
def test_a_streaming_caller_gets_keep_alives_while_a_summary_is_made(api: str, case: str) -> None:
    memory, target = EntryMemory(), endpoint("kimi", context=16_000)
    Shell(endpoint(api), memory=memory).run(path_of(api), body_of(api, LONG), [compacted_reply(api, HOME[api])])
    made = HOME[api]
    kept = [{"role": "assistant", "content": [made]} if api == "anthropic" else made, said("user", "And now?")]
    fields = {"history": {}, "threshold": above(api), "request": FIELDS[api]}[case]
    items = {"history": kept, "threshold": LONG, "request": [*LONG, *ASKED[api]]}[case]
    relay = Shell(target, memory=memory).open(path_of(api), body_of(api, items, stream=True, **fields))
    actions, number, data = list(relay.actions), 0, b""
    heads: list[Respond] = []
    while actions:
        action = actions.pop(0)
        if isinstance(action, Load):
            actions += relay.feed(Entries(memory.load(action.keys)))
        elif isinstance(action, Send):
            number += 1
            is_final = json.loads(b"".join(action.request.body)).get("stream") is True
            pings = relay.keep_alive()
            assert any(isinstance(ping, Write) and ping.data for ping in pings)
            response = streamed("kimi") if is_final else whole("kimi", make_reply("kimi", text=SUMMARY))
            actions += [*pings, *relay.feed(ResponseHead(200, {})), *relay.feed(b"".join(response.chunks))]
            actions += relay.close()
        elif isinstance(action, Respond):
            heads.append(action)
        elif isinstance(action, Write):
            data += action.data
    assert (len(heads), number > 2) == (1, True)
    reply = segue.assemble(data, api)
    assert reply.finish == ("pause" if (api, case) == ("anthropic", "request") else "stop")
    assert [block.text for block in reply.blocks if isinstance(block, Text)] == ["Hello back."] * (case != "request")
    assert any(isinstance(block, Opaque) for block in reply.blocks) is (case != "history")
