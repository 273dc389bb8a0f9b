"""The benchmark's transcripts take the express lane, for every pair of wires that have one, and come out as by the long
way."""

from __future__ import annotations

import msgspec
import pytest

import segue
from benchmarks._transcripts import RENDERERS, body
from segue.fast import FastConversion, convert_regular
from segue.pipeline import ConvertJob, convert_request
from segue.wire.registry import WIRES

LANES = [name for name, wire in WIRES.items() if wire.fast_path is not None]
BODIES = {api: body(api, 120) for api in RENDERERS}


def test_every_fast_path_is_measured():
    assert set(RENDERERS) == set(LANES)


@pytest.mark.parametrize("target", LANES)
@pytest.mark.parametrize("source", LANES)
def test_transcript_uses_the_fast_path(source: str, target: str):
    asked = ConvertJob(target=WIRES[target], source=WIRES[source], base_wire=WIRES[target])
    quick = convert_regular(BODIES[source], asked)
    assert isinstance(quick, FastConversion)
    carried = convert_request(msgspec.json.decode(BODIES[source]), asked)
    assert quick.data == msgspec.json.encode(carried.rendered.body)
    assert quick.report.to_dict() == carried.rendered.report.to_dict()


@pytest.mark.parametrize("source", LANES)
def test_lazy_report_is_the_same_on_both_paths(source: str):
    given = BODIES[source]
    target = "anthropic" if source != "anthropic" else "openai-chat"
    # The fast path converts a second body.
    _, quick = (segue.convert(given, source=source, target=target) for _ in range(2))
    slow = segue.convert(msgspec.json.decode(given), source=source, target=target)
    assert quick.body == slow.body
    reply = {
        "anthropic": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "grep", "input": {"path": "a"}}],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
        "openai-chat": {
            "id": "c",
            "object": "chat.completion",
            "model": "gpt-4.1",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Done."}}],
        },
    }[target]
    assert quick.reply(reply) == slow.reply(reply)
    assert segue.convert(given, target=target).data == quick.data


@pytest.mark.parametrize("value", [b'{"t":"\xff"}', b'{"t":1e400}', b'{"t":' + b"9" * 5_000 + b"}"])
def test_a_dropped_field_must_be_valid_where_a_template_exists(value: bytes) -> None:
    def request(metadata: bytes) -> bytes:
        item = b'{"role":"user","content":"hi"}'
        return b'{"model":"gpt-5","input":[%b],"client_metadata":%b}' % (b",".join([item] * 30), metadata)

    for _ in range(3):
        segue.convert(request(b'{"t":1}'), source="openai-responses", target="anthropic")
    with pytest.raises(segue.InputError):
        segue.convert(request(value), source="openai-responses", target="anthropic")
