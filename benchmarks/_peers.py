"""Other libraries that convert a tool conversation to another API, as functions from bytes to bytes.

Each is called as its own code calls it. Its result is encoded twice: with `json`, as the vendors' SDKs and httpx do,
and with msgspec. Bodies are decoded with msgspec. A peer that is not installed, or has changed its functions, is left
out.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from _transcripts import Turn, body, session

Work = Callable[[], object]

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
MODEL = "claude-sonnet-4-5"


def _encode_as_sdk(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def peers(messages: int) -> Iterator[tuple[str, str, Work, Work]]:
    """Yield name and version, the conversion, and the work with either encoder: Chat to Anthropic where possible."""
    for make in (_litellm, _rosetta, _pydantic_ai, _langchain):
        try:
            package, what, made = make(messages)
            works = [lambda write=write, made=made: write(made()) for write in (_encode_as_sdk, _encode)]
            works[0]()
        except (ImportError, AttributeError, TypeError) as error:
            print(f"(left out: {make.__name__.strip('_')}: {error})")
            continue
        yield f"{package} {importlib.metadata.version(package)}", what, works[0], works[1]


def convert_functions() -> dict[str, Callable[[bytes], bytes]]:
    """Return the peers that convert any Chat body to Anthropic, all with msgspec as their JSON library."""
    functions: dict[str, Callable[[bytes], bytes]] = {}
    for make in (_litellm_function, _rosetta_function):
        try:
            package, function = make()
        except (ImportError, AttributeError) as error:
            print(f"(left out: {make.__name__.strip('_').removesuffix('_function')}: {error})")
            continue
        functions[package] = lambda data, function=function: _encode(function(_decode(data)))
    return functions


def _litellm_function() -> tuple[str, Callable[[Any], object]]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    from litellm.llms.anthropic.chat.transformation import AnthropicConfig

    config = AnthropicConfig()

    def convert(body: Any) -> object:
        params = {key: body[key] for key in ("tools", "temperature") if key in body} | {"max_tokens": 4096}
        options = config.map_openai_params(params, {}, MODEL, True)
        return config.transform_request(MODEL, body["messages"], options, {}, {})

    return "litellm", convert


def _rosetta_function() -> tuple[str, Callable[[Any], object]]:
    import llm_rosetta

    return "llm-rosetta", lambda body: llm_rosetta.convert(body, "anthropic", "openai_chat")


def _litellm(messages: int) -> tuple[str, str, Work]:
    package, convert = _litellm_function()
    data = body("openai-chat", messages)
    return package, "openai-chat → anthropic", lambda: convert(_decode(data))


def _rosetta(messages: int) -> tuple[str, str, Work]:
    package, convert = _rosetta_function()
    data = body("openai-chat", messages)
    return package, "openai-chat → anthropic", lambda: convert(_decode(data))


def _langchain(messages: int) -> tuple[str, str, Work]:
    from langchain_anthropic.chat_models import _format_messages
    from langchain_core.messages import convert_to_messages

    data = body("openai-chat", messages)

    def work() -> object:
        return _format_messages(convert_to_messages(_decode(data)["messages"]), model=MODEL)

    return "langchain-anthropic", "openai-chat → anthropic, messages alone", work


def _pydantic_ai(messages: int) -> tuple[str, str, Work]:
    from pydantic_ai import messages as own
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    def as_messages(turns: list[Turn]) -> Iterator[own.ModelMessage]:
        for turn in turns:
            if turn.user_text is not None:
                yield own.ModelRequest(parts=[own.UserPromptPart(content=turn.user_text)])
                continue
            calls = [own.ToolCallPart(c.tool, c.arguments, f"call_{c.number:024}") for c in turn.calls]
            yield own.ModelResponse(parts=[*([own.TextPart(turn.text)] if turn.text else []), *calls])
            if turn.calls:
                results = [own.ToolReturnPart(c.tool, c.result, f"call_{c.number:024}") for c in turn.calls]
                yield own.ModelRequest(parts=results)

    data = own.ModelMessagesTypeAdapter.dump_json(list(as_messages(session(messages))))
    model = AnthropicModel(MODEL, provider=AnthropicProvider(api_key="none"))
    loop = asyncio.new_event_loop()

    def work() -> object:
        given = own.ModelMessagesTypeAdapter.validate_json(data)
        return loop.run_until_complete(model._map_message(given, ModelRequestParameters(), {}))

    return "pydantic-ai-slim", "its own JSON → anthropic, messages alone", work
