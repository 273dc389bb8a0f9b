"""Models that a provider does not have, because another one makes them. A name that tells no maker is let pass."""

from __future__ import annotations

from segue.models import identify

__all__ = ["is_foreign"]

_ALONE = frozenset({"claude", "gemini", "gpt", "grok"})
"""Those that nobody else serves under their own API."""
_OWN = {
    "anthropic": {"claude"},
    "openai-chat": {"gpt"},
    "openai-responses": {"gpt"},
    "gemini": {"gemini", "gemma"},
    "deepseek": {"deepseek"},
    "kimi": {"kimi"},
}
_OTHERS_TOO = frozenset({"qwen", "mistral"})


def is_foreign(api: str, model: object) -> bool:
    """Whether this model is another vendor's. Clouds and servers, which have those of many, are not asked."""
    family = identify(model).family if isinstance(model, str) else ""
    if not family:
        return False
    if api in _OWN:
        return family not in _OWN[api]
    return api in _OTHERS_TOO and family in _ALONE
