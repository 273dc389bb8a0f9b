"""Other libraries that carry a tool conversation to another API, as functions from bytes to bytes.

Each is used the way its own code does it, and its result is written twice: as its client writes it (with `json`, as
the vendors' SDKs and httpx do), and with msgspec, as if it had the quickest writer there is. All are given msgspec to
read with. One that is not installed is left out; so is one whose function is gone.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import logging
import os
from collections.abc import Callable, Iterator

import msgspec
from _transcripts import Turn, body, session

Work = Callable[[], object]

_read = msgspec.json.Decoder().decode
_quick = msgspec.json.Encoder().encode
MODEL = "claude-sonnet-4-5"


def _usual(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def peers(messages: int) -> Iterator[tuple[str, str, Work, Work]]:
    """Name and version, what is done, and the work with either writer: Chat to Anthropic where the peer can."""
    for make in (_litellm, _rosetta, _pydantic_ai, _langchain):
        try:
            package, what, made = make(messages)
            works = [lambda write=write, made=made: write(made()) for write in (_usual, _quick)]
            works[0]()
        except (ImportError, AttributeError, TypeError) as error:
            print(f"(left out: {make.__name__.strip('_')}: {error})")
            continue
        yield f"{package} {importlib.metadata.version(package)}", what, works[0], works[1]


def _litellm(messages: int) -> tuple[str, str, Work]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    from litellm.llms.anthropic.chat.transformation import AnthropicConfig

    data, config = body("openai-chat", messages), AnthropicConfig()

    def work() -> object:
        given = _read(data)
        wanted = {"tools": given["tools"], "temperature": given["temperature"], "max_tokens": 4096}
        options = config.map_openai_params(wanted, {}, MODEL, True)
        return config.transform_request(MODEL, given["messages"], options, {}, {})

    return "litellm", "openai-chat → anthropic", work


def _rosetta(messages: int) -> tuple[str, str, Work]:
    import llm_rosetta

    data = body("openai-chat", messages)

    def work() -> object:
        return llm_rosetta.convert(_read(data), "anthropic", "openai_chat")

    return "llm-rosetta", "openai-chat → anthropic", work


def _langchain(messages: int) -> tuple[str, str, Work]:
    from langchain_anthropic.chat_models import _format_messages
    from langchain_core.messages import convert_to_messages

    data = body("openai-chat", messages)

    def work() -> object:
        return _format_messages(convert_to_messages(_read(data)["messages"]), model=MODEL)

    return "langchain-anthropic", "openai-chat → anthropic, messages alone", work


def _pydantic_ai(messages: int) -> tuple[str, str, Work]:
    from pydantic_ai import messages as own
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    def spelled(turns: list[Turn]) -> Iterator[own.ModelMessage]:
        for turn in turns:
            if turn.words is not None:
                yield own.ModelRequest(parts=[own.UserPromptPart(content=turn.words)])
                continue
            calls = [own.ToolCallPart(c.tool, c.arguments, f"call_{c.number:024}") for c in turn.calls]
            yield own.ModelResponse(parts=[*([own.TextPart(turn.text)] if turn.text else []), *calls])
            if turn.calls:
                results = [own.ToolReturnPart(c.tool, c.result, f"call_{c.number:024}") for c in turn.calls]
                yield own.ModelRequest(parts=results)

    data = own.ModelMessagesTypeAdapter.dump_json(list(spelled(session(messages))))
    model = AnthropicModel(MODEL, provider=AnthropicProvider(api_key="none"))
    loop = asyncio.new_event_loop()

    def work() -> object:
        given = own.ModelMessagesTypeAdapter.validate_json(data)
        return loop.run_until_complete(model._map_message(given, ModelRequestParameters(), {}))

    return "pydantic-ai-slim", "its own JSON → anthropic, messages alone", work
