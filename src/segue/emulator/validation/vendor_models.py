"""Models that a provider does not serve because they are another vendor's. Unknown names are accepted."""

from __future__ import annotations

from segue.models import identify

__all__ = ["is_other_vendors_model"]

_SINGLE_VENDOR = frozenset({"claude", "gemini", "gpt", "grok"})
"""Model families that only their own vendor serves."""
_OWN_FAMILIES = {
    "anthropic": {"claude"},
    "openai-chat": {"gpt"},
    "openai-responses": {"gpt"},
    "gemini": {"gemini", "gemma"},
    "deepseek": {"deepseek"},
    "kimi": {"kimi"},
}
_MULTI_VENDOR_APIS = frozenset({"qwen", "mistral"})


def is_other_vendors_model(api: str, model: object) -> bool:
    """True if this model is another vendor's. Always false for clouds and servers with models of many vendors."""
    family = identify(model).family if isinstance(model, str) else ""
    if not family:
        return False
    if api in _OWN_FAMILIES:
        return family not in _OWN_FAMILIES[api]
    return api in _MULTI_VENDOR_APIS and family in _SINGLE_VENDOR
