"""The emulated providers by API."""

from __future__ import annotations

from segue.emulator.providers.anthropic import Anthropic
from segue.emulator.providers.base import Provider
from segue.emulator.providers.bedrock import Bedrock
from segue.emulator.providers.chat import DeepSeek, Kimi, Mistral, OpenAIChat, Qwen
from segue.emulator.providers.gemini import Gemini
from segue.emulator.providers.responses import AzureFoundry, OpenAIResponses

__all__ = ["PROVIDERS", "Provider"]

_ALL = (OpenAIChat, OpenAIResponses, Anthropic, Gemini, Bedrock, AzureFoundry, Mistral, Kimi, DeepSeek, Qwen)
PROVIDERS: dict[str, type[Provider]] = {provider.api: provider for provider in _ALL}
