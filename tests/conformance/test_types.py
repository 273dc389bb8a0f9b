"""The rules about types and the vendors' own types: what those accept, the checker does not reject."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from segue import conformance
from segue.conformance.gemini.generation import MEMBERS
from tests.conformance.bodies_types import Q

JUNK: tuple[Any, ...] = ("hot", "0.5", "", 5, 0, 1.5, 8192.0, [], ["x"], [5], {}, {"type": "text"}, {"a": 1})


BOOLEANS = ("stream", "parallel_tool_calls", "safe_prompt", "enable_affective_dialog", "response_logprobs")


def _values(option: str) -> Iterator[Any]:
    """The values, without objects, which the SDK takes for unset ones, and 0, which pydantic takes for false.

    The types have no ranges.
    """
    ranged = option in ("temperature", "top_p")
    for value in JUNK:
        is_outside = ranged and isinstance(value, int | float) and value > 1
        if not isinstance(value, dict) and not (option in BOOLEANS and value == 0) and not is_outside:
            yield value


def _rejects(body: dict[str, Any], api: str, rule: str) -> bool:
    found = conformance.check_body(body, api)
    return any(violation.rule == rule and violation.severity == "reject" for violation in found)


@pytest.mark.parametrize(
    "option",
    [
        *("temperature", "top_p", "max_tokens", "stream", "stop", "random_seed", "presence_penalty", "n", "metadata"),
        *("frequency_penalty", "parallel_tool_calls", "prompt_mode", "safe_prompt", "model"),
    ],
)
def test_mistral_rejects_what_its_types_reject(option: str) -> None:
    pydantic = pytest.importorskip("pydantic")
    models = pytest.importorskip("mistralai.client.models")
    for value in _values(option):
        body = {"model": "mistral-large-latest", "messages": [Q], option: value}
        try:
            models.ChatCompletionRequest.model_validate(body)
        except pydantic.ValidationError:
            assert not conformance.check_body(body, "mistral") or option == "prompt_mode", value
        else:
            assert not _rejects(body, "mistral", "MIS-17"), value


@pytest.mark.parametrize("option", sorted(MEMBERS.keys() - {"thinking_config", "response_schema"}))
def test_gemini_accepts_what_its_types_accept(option: str) -> None:
    pydantic = pytest.importorskip("pydantic")
    config = pytest.importorskip("google.genai").types.GenerationConfig
    for value in _values(option):
        body = {"contents": [{"role": "user", "parts": [{"text": "q"}]}], "generationConfig": {option: value}}
        try:
            config.model_validate({option: value})
        except (pydantic.ValidationError, ValueError):
            continue
        assert not _rejects(body, "gemini", "GEM-30"), value


UNKNOWN = {
    "anthropic": {"messages": [Q], "newer": [1], "thinking": {"type": "newer"}, "tools": [{"type": "newer_20300101"}]},
    "openai-chat": {"messages": [{**Q, "newer": 1}], "newer": {}, "tool_choice": "newer"},
    "openai-responses": {"input": [{"type": "newer"}], "newer": 1, "truncation": "newer", "tools": [{"type": "newer"}]},
    "deepseek": {"messages": [Q], "newer": [1]},
    "kimi": {"messages": [{"role": "user", "content": [{"type": "newer"}]}], "newer": 5},
    "qwen": {"messages": [{"role": "user", "content": [{"type": "newer"}]}], "newer": 5},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "q"}]}], "generationConfig": {"newer": 5}},
}


@pytest.mark.parametrize("api", sorted(UNKNOWN))
def test_unknown_members_parts_and_values_are_not_wrong_types(api: str) -> None:
    verdict = conformance.check_body(UNKNOWN[api], api)
    assert verdict, str(verdict)
