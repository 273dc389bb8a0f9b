"""A conversation is rendered for a server profile as `convert` renders its body: the same repairs, and a valid body."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import segue
from segue.errors import InputError
from segue.wire.registry import SERVERS, WIRES
from tests.budget import examples
from tests.properties import checks
from tests.properties.bodies import build_body
from tests.properties.chaos import CHAOS
from tests.properties.generators import scenarios

ARGUMENTS = ['{"a": ', "[1]", '"x"', "5", "null", "", "{}", '{"a": 1}']
# The base API twice as often: its fragments were parsed by other rules than the profile's.
SOURCES = st.sampled_from(tuple(WIRES)) | st.just("openai-chat")


def find_rejections(body: dict[str, Any], profile: str) -> list[str]:
    verdict = segue.check(body, SERVERS[profile].name, profile=profile)
    return [str(violation) for violation in verdict if violation.severity == "reject"]


@pytest.mark.parametrize("profile", SERVERS)
@examples(2, items=len(SERVERS))
@given(data=st.data(), source=SOURCES)
def test_conversation_is_repaired_like_its_body(profile: str, data: st.DataObject, source: str) -> None:
    body = data.draw(
        CHAOS[source] if data.draw(st.booleans()) else scenarios().map(lambda one: build_body(one, source))
    )
    note(checks.dump_json(body))
    target = SERVERS[profile].name
    try:
        converted = segue.convert(body, source=source, target=target, profile=profile)
    except InputError:
        return
    rendered = segue.Conversation.from_body(body, source=source).render(target, profile=profile)
    assert not find_rejections(rendered.body, profile)
    assert checks.dump_json(rendered.body) == checks.dump_json(converted.body)


@pytest.mark.parametrize("profile", SERVERS)
@pytest.mark.parametrize("content", [None, "", "text"])
def test_reply_of_another_server_is_repaired(profile: str, content: str | None) -> None:
    """COMP-05, COMP-09, COMP-12, COMP-14, COMP-17: broken arguments and null content, as another server replied."""
    chat = segue.Conversation(tools=[{"type": "function", "function": {"name": "look", "parameters": {}}}])
    chat.add_user("begin")
    for number, arguments in enumerate(ARGUMENTS):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "look", "arguments": arguments}}
        message = {"role": "assistant", "content": content, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        reply = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        for added in chat.add_reply(reply, source="openai-chat").calls:
            chat.add_result(added, "done")
        rendered = chat.render(SERVERS[profile].name, profile=profile)
        assert not find_rejections(rendered.body, profile), checks.dump_json(rendered.body)
