"""The readers of the acceptance tests find violations."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import segue
from tests.bodies import chat
from tests.runtime import bodies
from tests.runtime.harness import APIS

TOOLS = [chat.tool(name, parameters={"type": "object"}) for name in ("a", "b")]


def _body(api: str) -> dict[str, Any]:
    given = chat.body(
        chat.user("Go."),
        chat.assistant_calls(chat.call("call_a", "a"), chat.call("call_b", "b"), content="I do."),
        chat.result("call_a", "one"),
        chat.result("call_b", "two"),
        chat.assistant("Done."),
        chat.user("On."),
        model="gpt-4.1",
        tools=TOOLS,
    )
    return copy.deepcopy(segue.convert(given, source="openai-chat", target=api).body)


def _result_containers(api: str, body: dict[str, Any]) -> list[Any]:
    """The messages, or the parts of the messages, that hold results."""
    if api in bodies.CHAT:
        return body["messages"]
    if api in bodies.RESPONSES:
        return body["input"]
    [holder] = {part.at for part in bodies.results(api, body)}
    return body["contents"][holder]["parts"] if api == "gemini" else body["messages"][holder]["content"]


def _places(api: str, body: dict[str, Any]) -> list[int]:
    if api in (*bodies.CHAT, *bodies.RESPONSES):
        return [part.at for part in bodies.results(api, body)]
    return [0, 1]


@pytest.mark.parametrize("api", APIS)
def test_valid_body_has_no_violation(api: str) -> None:
    body = _body(api)
    assert [part.name for part in bodies.calls(api, body)] == ["a", "b"]
    assert [part.value for part in bodies.results(api, body)] == ["one", "two"]
    assert [part.value for part in bodies.parts(api, body) if part.kind == "text" and part.value != "[continued]"][
        -1
    ] == "On."
    assert bodies.find_violations(api, body) == []


@pytest.mark.parametrize("api", APIS)
def test_a_result_that_lacks_is_seen(api: str) -> None:
    body = _body(api)
    del _result_containers(api, body)[_places(api, body)[1]]
    assert bodies.unpaired_ids(api, body)
    assert bodies.misplaced_results(api, body)


@pytest.mark.parametrize("api", APIS)
def test_repeated_result_is_found(api: str) -> None:
    body = _body(api)
    containers, at = _result_containers(api, body), _places(api, body)[1]
    containers.insert(at, containers[at])
    assert bodies.unpaired_ids(api, body)
    assert bodies.repeated_ids(api, body)


@pytest.mark.parametrize("api", APIS)
def test_results_that_are_out_of_order_are_seen(api: str) -> None:
    body = _body(api)
    containers, (one, two) = _result_containers(api, body), _places(api, body)
    containers[one], containers[two] = containers[two], containers[one]
    assert bodies.misplaced_results(api, body)


@pytest.mark.parametrize(("api", "found"), [("mistral", "call_a"), ("kimi", "functions.b:0")])
def test_invalid_id_is_found(api: str, found: str) -> None:
    body = _body(api)
    body["messages"][1]["tool_calls"][0]["id"] = found
    assert bodies.invalid_ids(api, body)
