"""The keys and members in the checkers are those of the vendors' own request types."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from typing import get_args, get_type_hints

import pytest

from segue.conformance.anthropic.content import KEYS
from segue.conformance.mistral.content import CHUNKS
from segue.conformance.mistral.keys import BODY_KEYS, MESSAGE_KEYS
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


def test_tools_are_those_of_the_sdk() -> None:
    pytest.importorskip("openai")
    union = import_module("openai.types.responses.tool_param").ToolParam
    hints = (str(get_type_hints(member)["type"]) for member in get_args(union))
    assert {name for hint in hints for name in re.findall(r"'(\w+)'", hint)} == TOOL_TYPES
