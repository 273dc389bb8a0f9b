"""Answers as the real model gives them: ids, signatures, the stop sequence."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from segue.emulator import start
from segue.emulator.client import Sent, letter, post
from segue.wire.registry import WIRES
from tests.emulator.over_http import Seen, ask, body_of, reply_of

both_ways = pytest.mark.parametrize("stream", [False, True], ids=["at-once", "streamed"])


def parts_of(sent: Sent | Seen, *, stream: bool) -> list[dict[str, Any]]:
    told = [line[6:] for line in sent.data.splitlines() if line] if stream else [sent.data]
    chunks = [msgspec.json.decode(one) for one in told]
    return [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]


@both_ways
@pytest.mark.parametrize(
    ("model", "named"),
    [
        ("gemini-2.0-flash", False),
        ("gemini-2.5-pro", False),
        ("gemini-3-pro-preview", True),
        ("of-my-own", True),
        (None, True),
    ],
)
def test_ids_and_signatures_are_of_the_model_that_was_asked(model: str | None, named: bool, stream: bool) -> None:
    body = body_of("gemini", "How is the weather in Lisbon and Oslo?", model=model)
    del body["model"]
    with start("gemini") as provider:
        told = parts_of(post(provider, body, model=model, stream=stream), stream=stream)
        assert provider.requests[-1].model == (model or WIRES["gemini"].default_model)
        calls = [part for part in told if "functionCall" in part]
        assert [call["functionCall"]["args"]["city"] for call in calls] == ["Lisbon", "Oslo"]
        assert ["id" in call["functionCall"] for call in calls] == [named, named]
        assert ["thoughtSignature" in call for call in calls] == [named, False]
        assert b"skip_thought" not in msgspec.json.encode(told)
        results = [
            {"functionResponse": {**{k: v for k, v in call["functionCall"].items() if k != "args"}, "response": {}}}
            for call in calls
        ]
        more = [{"role": "model", "parts": told}, {"role": "user", "parts": results}]
        again = {**body, "contents": [*body["contents"], *more]}
        assert post(provider, again, model=model, stream=stream).status == 200


@both_ways
def test_an_id_that_a_script_names_is_said_by_any_model(stream: bool) -> None:
    with start("gemini", script='call[mine] get_weather {"city": "Lisbon"}') as provider:
        (part,) = parts_of(ask(provider, model="gemini-2.5-flash", stream=stream), stream=stream)
        assert part == {"functionCall": {"id": "mine", "name": "get_weather", "args": {"city": "Lisbon"}}}


@pytest.mark.parametrize("api", ["openai-chat", "mistral", "bedrock"])
def test_a_letter_without_a_model_goes_to_the_usual_one(api: str) -> None:
    path, data, _ = letter(api, {})
    assert ("/model/us.anthropic" in path or "/model/anthropic" in path) == (api == "bedrock")
    assert data == b"{}"


STOPS: dict[str, dict[str, Any]] = {
    "anthropic": {"stop_sequences": ["zebra", "can"]},
    "bedrock": {"inferenceConfig": {"stopSequences": ["zebra", "can"]}},
    "openai-chat": {"stop": ["zebra", "can"]},
    "gemini": {"generationConfig": {"stopSequences": ["zebra", "can"]}},
}


@both_ways
@pytest.mark.parametrize("api", STOPS)
def test_the_stop_sequence_is_told(api: str, stream: bool) -> None:
    with start(api) as provider:
        body = {key: value for key, value in body_of(api, "What is new?").items() if key not in ("tools", "toolConfig")}
        whole = reply_of(provider, ask(provider, body, stream=stream), stream=stream)
        seen = ask(provider, {**body, **STOPS[api]}, stream=stream)
        cut = reply_of(provider, seen, stream=stream)
        assert cut.text == whole.text[: whole.text.index("can")]
        assert (whole.finish, cut.finish) == ("stop", "stop")
        assert cut.stop_sequence == ("can" if api == "anthropic" else None)
        causes = {"anthropic": "stop_sequence", "bedrock": "stop_sequence", "openai-chat": "stop", "gemini": "STOP"}
        assert cut.cause == causes[api]
        assert whole.stop_sequence is None
