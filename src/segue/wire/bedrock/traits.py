"""What each model family on Converse supports: one row per family, by the model id.

The service passes requests on to models of many vendors, and most of its rules are theirs. An unknown model gets a
strict row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from msgspec import Struct

from segue.models import Model

__all__ = ["API", "DEFAULT_MODEL", "Traits", "traits_of"]

API = "bedrock"
DEFAULT_MODEL = "us.anthropic.claude-sonnet-5"

_NOTHING: frozenset[str] = frozenset()
_PICTURES = frozenset({"image"})
_PAPERS = frozenset({"image", "document"})


class Traits(Struct, frozen=True):
    """`user_media` are the media accepted in user messages, `result_media` those accepted in tool results."""

    shown: frozenset[str] = _PAPERS
    in_results: frozenset[str] = _NOTHING
    words_beside_results: bool = True
    server_tools: bool = False
    """True if the provider has hosted tools for the model."""
    forced_choice: bool = False
    error_flag: bool = True
    ending: Literal["prefill", "human"] = "human"
    assistant_first: bool = False
    reasoning: Literal["none", "refused"] = "none"
    top_k: str | None = None
    """Path of `top_k` in `additionalModelRequestFields`; None if the model has no such field."""
    thinks: Literal["", "nova", "gpt"] = ""
    """Which form the reasoning options have, for models other than Claude."""


@lru_cache(maxsize=128)
def traits_of(model: Model) -> Traits:
    match model.family:
        case "claude":
            return Traits(
                in_results=_PAPERS, server_tools=True, forced_choice=True, assistant_first=True, top_k="top_k"
            )
        case "nova":
            media = _NOTHING if model.line == "micro" else _PAPERS | {"video"}
            thinks = "nova" if model.at_least(2) else ""
            return Traits(
                media,
                media,
                server_tools=True,
                forced_choice=True,
                ending="prefill",
                top_k="inferenceConfig.topK",
                thinks=thinks,
            )
        case "llama":
            # BED-07; «requires the last turn in the conversation to be a user message»
            return Traits(_PAPERS if model.at_least(3, 2) else _NOTHING, words_beside_results=False)
        case "mistral":
            seeing = "pixtral" in model.name or model.generation >= 13
            return Traits(
                _PAPERS if seeing else _NOTHING, words_beside_results=False, forced_choice=model.line == "large"
            )
        case "qwen":
            # BED-06
            return Traits(_PICTURES if "vl" in model.name else _NOTHING, assistant_first=True)
        case "gpt":
            return Traits(_NOTHING, thinks="gpt")
        case "deepseek":
            return Traits(_NOTHING, reasoning="refused")
        case "palmyra":
            # BED-09
            return Traits(_NOTHING, error_flag=False)
        case "":
            return Traits(server_tools=True)
        case "gemma":
            return Traits()
        case _:
            return Traits(_NOTHING)
