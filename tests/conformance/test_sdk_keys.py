"""The keys and members in the checkers are those of the vendors' own request types."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from segue.conformance.anthropic.content import KEYS
from segue.conformance.mistral.content import CHUNKS
from segue.conformance.mistral.keys import BODY_KEYS, MESSAGE_KEYS
from segue.conformance.openai_responses.items import ITEM_SPECS
from segue.conformance.openai_responses.tools import TOOL_TYPES

_LITERAL = re.compile(r"Literal\[(.*?)\]")


def _request_types(package: str) -> Iterator[tuple[str, set[str]]]:
    """Block type and keys of every request type in the modules `…block_param`."""
    root = import_module(package)
    for module in pkgutil.iter_modules(root.__path__):
        if not module.name.endswith("block_param") or "managed_agents" in module.name:
            continue
        for name, value in vars(import_module(f"{package}.{module.name}")).items():
            if name.endswith("BlockParam") and "type" in getattr(value, "__annotations__", {}):
                named = _LITERAL.search(str(value.__annotations__["type"]))
                if named:
                    yield named[1].strip("\"'"), set(value.__annotations__)


def test_keys_are_those_of_the_sdk() -> None:
    pytest.importorskip("anthropic")
    known: dict[str, set[str]] = {}
    for package in ("anthropic.types", "anthropic.types.beta"):
        for block_type, keys in _request_types(package):
            known.setdefault(block_type, set()).update(keys)
    assert {block_type: set(keys) for block_type, keys in KEYS.items()} == {name: known.get(name) for name in KEYS}


def test_keys_and_chunks_of_mistral_are_those_of_the_sdk() -> None:
    models = pytest.importorskip("mistralai.client.models")
    assert set(models.ChatCompletionRequest.model_fields) == BODY_KEYS
    for role, keys in MESSAGE_KEYS.items():
        assert set(getattr(models, f"{role.capitalize()}Message").model_fields) == keys
    chunks = import_module("mistralai.client.models.contentchunk")
    assert vars(chunks)["_CONTENT_CHUNK_VARIANTS"].keys() == CHUNKS


def _union(union: Any) -> Iterator[tuple[str, set[str], set[str]]]:
    """Type, keys and required keys of every request type in a union."""
    for member in get_args(union):
        hints = get_type_hints(member, include_extras=True)
        for name in re.findall(r"'(\w+)'", str(hints["type"])):
            yield name, set(hints), {key for key, hint in hints.items() if "Required" in str(get_origin(hint))}


# Keys where the judge differs from the types on purpose.
_UNKNOWN_TO_THE_SERVICE = {"reasoning": {"status"}}
_BESIDES = {
    "local_shell_call_output": {"call_id"},
    "custom_tool_call": {"status"},
    "custom_tool_call_output": {"status"},
}
# Judged by rules of their own, or optional in another type of the same name.
_ELSEWHERE = {"type", "call_id", "output", "role", "content"}
_LOOSE = {"message": {"id", "status"}, "reasoning": {"id"}, "local_shell_call_output": {"id"}}


@pytest.mark.parametrize("module", ["responses.response", "beta.beta_response"])
def test_items_are_those_of_the_sdk(module: str) -> None:
    pytest.importorskip("openai")
    name = "BetaResponseInputItemParam" if module.startswith("beta") else "ResponseInputItemParam"
    keys: dict[str, set[str]] = {}
    required: dict[str, set[str]] = {}
    for item, known, needed in _union(getattr(import_module(f"openai.types.{module}_input_item_param"), name)):
        keys.setdefault(item, set()).update(known)
        required.setdefault(item, set()).update(needed)
    if module.startswith("beta"):
        assert keys.keys() == ITEM_SPECS.keys()
    for item, known in keys.items():
        shape = ITEM_SPECS[item]
        judged = (shape.keys | _UNKNOWN_TO_THE_SERVICE.get(item, set())) - _BESIDES.get(item, set())
        assert judged == known | {"agent", "id"}, item
        judged = {*shape.required, *shape.recommended.split()} - _ELSEWHERE
        assert judged == required[item] - _ELSEWHERE - _LOOSE.get(item, set()), item


def test_tools_are_those_of_the_sdk() -> None:
    pytest.importorskip("openai")
    union = import_module("openai.types.responses.tool_param").ToolParam
    assert {name for name, _, _ in _union(union)} == TOOL_TYPES
