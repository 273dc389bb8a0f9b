"""What a family of models behind Converse takes and refuses: one row for each, read off the model's id.

The service passes requests on to models of many makers, and most of its rules are theirs. A model that can't be told
gets the row of the stricter ones.
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
    """`shown` are the media that a user may send, `in_results` those that results may hold."""

    shown: frozenset[str] = _PAPERS
    in_results: frozenset[str] = _NOTHING
    words_beside_results: bool = True
    server_tools: bool = False
    """Whether the provider runs tools of its own for the model."""
    forced_choice: bool = False
    error_flag: bool = True
    ending: Literal["prefill", "human"] = "human"
    assistant_first: bool = False
    reasoning: Literal["none", "refused"] = "none"
    top_k: str | None = None
    """Where among the model's own fields `top_k` stands; None where it has no such field."""
    thinks: Literal["", "nova", "gpt"] = ""
    """In whose words reasoning is asked for, where not in Claude's."""


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
