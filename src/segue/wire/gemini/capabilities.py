"""What each generation of Gemini supports, by model version.

From the vendor's guides and error messages up to Gemini 4. An unknown model is treated as the newest.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from segue.canonical.request import Effort
from segue.models import Model

# The newest stable model of the line that the vendor's own examples and client use.
API = "gemini"
DEFAULT_MODEL = "gemini-3.8-flash"
# GEM-17: accepted as the signature of a call that Gemini did not make.
_NEWEST: tuple[int, ...] = (99,)


class Capabilities(Struct, frozen=True):
    """`call_ids`: calls and results have ids (GEM-11). `media_urls`: media may be any https URL."""

    call_ids: bool = True
    split_calls: bool = True
    """GEM-02: the calls of a reply may be in several contents."""
    signed_calls: bool = True
    """GEM-15: the first call of a reply must be signed."""
    media_in_results: bool = True
    """GEM-27: function responses may contain media."""
    server_tools: bool = True
    """GEM-24: parts of hosted tools may be sent back."""
    media_urls: bool = True
    thinking_levels: tuple[Effort, ...] = ()
    """The thinking levels; empty for models with a thinking budget or without thinking."""
    thinking_budget: tuple[int, int] | None = None
    """The minimum and maximum of the thinking budget; None for models with levels or without thinking."""
    can_disable_thinking: bool = False
    penalties: bool = False
    json_with_tools: bool = True
    """Whether a response format may be combined with function declarations."""


@lru_cache(maxsize=128)
def capabilities_of(model: Model) -> Capabilities:
    version = model.version if model.family == "gemini" and model.version else _NEWEST
    if version >= (3,):
        return Capabilities(thinking_levels=_thinking_levels(model.line, version))
    thinks = version >= (2, 5)
    return Capabilities(
        call_ids=False,
        split_calls=False,
        signed_calls=False,
        media_in_results=False,
        server_tools=False,
        media_urls=thinks,
        thinking_budget=_thinking_budget(model.line) if thinks else None,
        can_disable_thinking=thinks and model.line != "pro",
        penalties=not thinks,
        json_with_tools=False,
    )


def _thinking_levels(line: str, version: tuple[int, ...]) -> tuple[Effort, ...]:
    if line == "pro" and version < (3, 1):
        return ("low", "high")
    if line in ("flash", "flash-lite") and version < (3, 7):
        return ("minimal", "low", "medium", "high")
    return ("low", "medium", "high")


def _thinking_budget(line: str) -> tuple[int, int]:
    match line:
        case "pro":
            return 128, 32_768
        case "flash-lite":
            return 512, 24_576
        case _:
            return 1, 24_576
