"""`segue.detect`: a model's name → API, dialect, tool format; and the version that the rules go by."""

from __future__ import annotations

import pytest

import segue
from segue.models import parse_model

CHAT = "openai-chat"
ARN = "arn:aws:bedrock:us-east-1:123456789012:inference-profile"

# Name → wire, dialect, tool format, and the family, line and version that were read.
TABLE: list[tuple[str, str, str | None, str, str, str, tuple[int, ...]]] = [
    # K2 by word, however it is spelled; K3 by its own rule (KIM-08).
    ("kimi-k2-0711-preview", CHAT, "kimi", "kimi", "kimi", "k2", (2,)),
    ("K2-Thinking", CHAT, "kimi", "kimi", "kimi", "k2", (2,)),
    ("kimik2", CHAT, "kimi", "kimi", "kimi", "k2", (2,)),
    ("moonshotai/Kimi-K2-Instruct", CHAT, "kimi", "kimi", "kimi", "k2", (2,)),
    ("kimi-k2.5", CHAT, "kimi", "kimi", "kimi", "k2", (2, 5)),
    ("kimi-k3", CHAT, "kimi", "openai", "kimi", "k3", (3,)),
    ("moonshot-v1-8k", CHAT, "kimi", "kimi", "kimi", "moonshot", (1,)),
    ("kimi-latest", CHAT, "kimi", "kimi", "kimi", "", ()),
    # No Kimi.
    ("gpt-4o", CHAT, None, "openai", "gpt", "", (4,)),
    ("qwen3-coder-plus", CHAT, "qwen", "qwen", "qwen", "", (3,)),
    # Mistral's many names.
    ("devstral", CHAT, "mistral", "mistral", "mistral", "devstral", ()),
    ("codestral-latest", CHAT, "mistral", "mistral", "mistral", "codestral", ()),
    ("pixtral-12b-2409", CHAT, "mistral", "mistral", "mistral", "pixtral", ()),
    ("ministral-8b-latest", CHAT, "mistral", "mistral", "mistral", "ministral", ()),
    ("magistral-medium-2506", CHAT, "mistral", "mistral", "mistral", "magistral", ()),
    ("open-mixtral-8x7b", CHAT, "mistral", "mistral", "mistral", "mixtral", ()),
    ("voxtral-small-latest", CHAT, "mistral", "mistral", "mistral", "voxtral", ()),
    ("mistralai/Mistral-Large-Instruct-2411", CHAT, "mistral", "mistral", "mistral", "large", ()),
    # Vendors with an API of their own.
    ("claude-sonnet-4-5", "anthropic", None, "anthropic", "claude", "sonnet", (4, 5)),
    ("anthropic/claude-3.5-haiku", "anthropic", None, "anthropic", "claude", "haiku", (3, 5)),
    ("claude-sonnet-4@20250514", "anthropic", None, "anthropic", "claude", "sonnet", (4,)),
    ("vertex_ai/claude-opus-4-1", "anthropic", None, "anthropic", "claude", "opus", (4, 1)),
    ("models/gemini-2.5-pro", "gemini", None, "gemini", "gemini", "pro", (2, 5)),
    ("publishers/google/models/gemini-3-pro-preview", "gemini", None, "gemini", "gemini", "pro", (3,)),
    ("deepseek-chat", CHAT, "deepseek", "deepseek", "deepseek", "chat", ()),
    ("deepseek-ai/DeepSeek-V3.1", CHAT, "deepseek", "deepseek", "deepseek", "", (3, 1)),
    ("o3", CHAT, None, "openai", "gpt", "o", (3,)),
    ("gpt-5-codex", "openai-responses", None, "openai", "gpt", "", (5,)),
    ("codex-mini-latest", "openai-responses", None, "openai", "gpt", "codex", ()),
    ("o3-pro", "openai-responses", None, "openai", "gpt", "o", (3,)),
    ("o4-mini-deep-research", "openai-responses", None, "openai", "gpt", "o", (4,)),
    # Tags of Ollama, deployments of Azure, ids of Bedrock.
    ("qwen3:8b", CHAT, "qwen", "qwen", "qwen", "", (3,)),
    ("qwen2.5-coder:7b-instruct", CHAT, "qwen", "qwen", "qwen", "", (2, 5)),
    ("deepseek-r1:14b", CHAT, "deepseek", "deepseek", "deepseek", "r1", (1,)),
    ("gpt-35-turbo", CHAT, None, "openai", "gpt", "", (3, 5)),
    ("azure/my-gpt4o-eu", CHAT, None, "openai", "gpt", "", (4,)),
    ("us.anthropic.claude-sonnet-4-20250514-v1:0", "bedrock", None, "anthropic", "claude", "sonnet", (4,)),
    ("anthropic.claude-3-5-sonnet-20241022-v2:0", "bedrock", None, "anthropic", "claude", "sonnet", (3, 5)),
    ("mistral.mistral-large-2407-v1:0", "bedrock", None, "mistral", "mistral", "large", ()),
    ("bedrock/moonshot.kimi-k2-thinking", "bedrock", None, "kimi", "kimi", "k2", (2,)),
    (f"{ARN}/us.anthropic.claude-opus-4-1-20250805-v1:0", "bedrock", None, "anthropic", "claude", "opus", (4, 1)),
    # Served by somebody else: its API, the model's tools where they can be put on it.
    ("openrouter/moonshotai/kimi-k2", CHAT, None, "kimi", "kimi", "k2", (2,)),
    ("openrouter/anthropic/claude-sonnet-4", CHAT, None, "openai", "claude", "sonnet", (4,)),
    ("groq/llama-3.3-70b-versatile", CHAT, None, "openai", "llama", "", (3, 3)),
    ("azure_ai/DeepSeek-V3.1", "azure-foundry", None, "deepseek", "deepseek", "", (3, 1)),
    # The vendor is known, the model is not.
    ("mistral/labs-next", CHAT, "mistral", "mistral", "", "", ()),
    # Nothing is known.
    ("gemma3:4b", CHAT, None, "openai", "gemma", "", (3,)),
    ("meta-llama/Llama-3.3-70B-Instruct", CHAT, None, "openai", "llama", "", (3, 3)),
    ("my-own-model", CHAT, None, "openai", "", "", ()),
    ("", CHAT, None, "openai", "", "", ()),
    ("//", CHAT, None, "openai", "", "", ()),
]


@pytest.mark.parametrize(("name", "wire", "dialect", "tool_format", "family", "line", "version"), TABLE)
def test_names(
    name: str, wire: str, dialect: str | None, tool_format: str, family: str, line: str, version: tuple[int, ...]
) -> None:
    found = segue.detect(name)
    assert (found.wire, found.dialect, found.tool_format) == (wire, dialect, tool_format)
    assert (found.model.family, found.model.line, found.model.version) == (family, line, version)
    assert found.target == (dialect or wire)
    assert found.model == parse_model(name)


def test_vendors_are_found_by_their_own_default_models():
    own = {"anthropic", "gemini", "kimi", "mistral", "deepseek", "qwen"}
    for row in segue.formats():
        if row.name in own:
            assert segue.detect(row.default_model).target == row.name


def test_name_parts_match_not_substrings():
    for name in ("my-k2ish-model", "bok3", "skimik", "unmistralled", "notgpt"):
        assert segue.detect(name).model.family == "", name
