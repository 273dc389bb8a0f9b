"""Any bytes of a caller or a provider: each exchange ends with one response, and no exception leaves the relay."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from segue.wire.limits import ReplyLimits
from tests.bridge.exchanges import (
    CALLER_APIS,
    MODELS,
    Response,
    Shell,
    endpoint,
    make_reply,
    path_of,
    request_body,
    split,
    stream_bytes,
    whole,
)
from tests.budget import examples

values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
CALL = [("call_1", "look", {"n": 1})]
KEYS = (
    *("model", "messages", "input", "contents", "tools", "system", "stream", "thread", "previous_response_id", "store"),
    *(
        "conversation",
        "role",
        "content",
        "parts",
        "type",
        "text",
        "tool_calls",
        "tool_use",
        "functionCall",
        "signature",
    ),
)


def change(draw: Any, value: Any) -> Any:
    """Return a body with some of its values replaced, removed or added."""
    if isinstance(value, dict):
        changed = {key: change(draw, inner) for key, inner in value.items() if draw(st.integers(0, 12))}
        return {**changed, draw(st.sampled_from(KEYS)): draw(values)} if draw(st.integers(0, 6)) == 0 else changed
    if isinstance(value, list):
        return [change(draw, inner) for inner in value if draw(st.integers(0, 12))]
    return draw(values) if draw(st.integers(0, 12)) == 0 else value


@st.composite
def bodies(draw: Any, caller: str) -> bytes:
    body = change(draw, {**request_body(caller), "tools": []} if caller != "bedrock" else request_body(caller))
    return json.dumps(body).encode("utf-8", "replace")


@st.composite
def damaged(draw: Any, data: bytes) -> list[bytes]:
    """Return a response with bytes removed, repeated or replaced, in chunks."""
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 60)))
        data = (
            data[:start]
            + draw(st.sampled_from([b"", data[start:end] * 2, b"\x00", b"null", b"\n\n", b'"']))
            + data[end:]
        )
    return split(data, draw(st.sampled_from([0, 1, 13, 200])))


@examples(12, items=1)
@given(st.data())
def test_any_body_gets_one_response(data: st.DataObject) -> None:
    caller, api = data.draw(st.sampled_from(CALLER_APIS)), data.draw(st.sampled_from(sorted(MODELS)))
    stream = data.draw(st.booleans())
    response = Response([stream_bytes(api)]) if stream else whole(api)
    body = data.draw(bodies(caller))
    shell = Shell(endpoint(api), endpoint(api, 1), endpoint(api, 2))
    answer = shell.run(path_of(caller, stream=stream), body, [response] * 3)
    assert answer.status in (200, 400, 404, 502)


@examples(12, items=1)
@given(st.data())
def test_any_response_of_a_provider_gets_one_response(data: st.DataObject) -> None:
    caller, api = data.draw(st.sampled_from(CALLER_APIS)), data.draw(st.sampled_from(sorted(MODELS)))
    stream, status = data.draw(st.booleans()), data.draw(st.sampled_from([200, 200, 200, 400, 500]))
    reply = make_reply(api, thought="Hm.", calls=CALL)
    sent = stream_bytes(api, reply) if stream else whole(api, reply).chunks[0]
    response = Response(data.draw(damaged(sent)), status, {"retry-after": data.draw(st.text(max_size=5))})
    shell = Shell(endpoint(api), limits=ReplyLimits(bytes=50_000))
    answer = shell.run(path_of(caller, stream=stream), request_body(caller, stream=stream), [response] * 2)
    assert answer.status in (200, 400, 401, 402, 403, 404, 408, 413, 429) or answer.status >= 500
    _ = (answer.relay.usage, answer.relay.finish, answer.relay.calls, answer.relay.report, answer.relay.error)
