"""Model names, read word by word."""

from __future__ import annotations

import pytest

from segue.models import Model, parse_model

NAMES = {
    "deepseek-chat": Model("", "deepseek", "chat"),
    "deepseek-reasoner": Model("", "deepseek", "reasoner", reasons_by_default=True),
    "deepseek-r1-0528": Model("", "deepseek", "r1", (1,), True),
    "deepseek/deepseek-r1-distill-qwen-32b": Model("", "deepseek", "r1", (1,), True),
    "DeepSeek-V3.1-Terminus": Model("", "deepseek", "", (3, 1)),
    "deepseek-chat-v3-0324": Model("", "deepseek", "chat", (3,)),
    "deepseek-v4-flash": Model("", "deepseek", "flash", (4,), True),
    "deepseek-flash": Model("", "deepseek", "flash", (4,), True),
    "deepseek-coder-6.7b": Model("", "deepseek", "coder"),
    "qwen-plus": Model("", "qwen"),
    "qwen3-max": Model("", "qwen", "", (3,)),
    "qwen3.5-plus": Model("", "qwen", "", (3, 5), True),
    "Qwen/Qwen3-32B": Model("", "qwen", "", (3,), True),
    "qwen3-235b-a22b-instruct-2507": Model("", "qwen", "", (3,)),
    "qwen3-235b-a22b-thinking-2507": Model("", "qwen", "", (3,), True),
    "qwen2.5-72b-instruct": Model("", "qwen", "", (2, 5)),
    "qwen3-coder-plus": Model("", "qwen", "", (3,)),
    "qwq-plus": Model("", "qwen", "qwq", reasons_by_default=True),
    "mistral-large-2512": Model("", "mistral", "large", tokenizer_version=13),
    "mistral-large-latest": Model("", "mistral", "large"),
    "mistral-large-2411": Model("", "mistral", "large", tokenizer_version=7),
    "mistral-large-4-0": Model("", "mistral", "large", (4, 0), tokenizer_version=15),
    "mistral-small-latest": Model("", "mistral", "small"),
    "mistral-small-2603": Model("", "mistral", "small", tokenizer_version=15),
    "mistral-small-3.2-24b-instruct": Model("", "mistral", "small", (3, 2), tokenizer_version=11),
    "mistral-medium-3-5": Model("", "mistral", "medium", (3, 5), tokenizer_version=15),
    "magistral-medium-latest": Model("", "mistral", "magistral", reasons_by_default=True, tokenizer_version=13),
    "devstral-small-2": Model("", "mistral", "devstral", (2,), tokenizer_version=13),
    "devstral-medium-2507": Model("", "mistral", "devstral", tokenizer_version=11),
    "ministral-3-14b-reasoning-2512": Model("", "mistral", "ministral", (3,), True, 13),
    "ministral-3b-latest": Model("", "mistral", "ministral"),
    "open-mistral-7b": Model("", "mistral", tokenizer_version=3),
    "open-mixtral-8x22b": Model("", "mistral", "mixtral", (), tokenizer_version=3),
    "pixtral-large-latest": Model("", "mistral", "pixtral", tokenizer_version=7),
    "kimi-k2.5": Model("", "kimi", "k2", (2, 5), True),
    "kimi-k2-0905-preview": Model("", "kimi", "k2", (2,)),
    "anthropic.claude-sonnet-4-5-20250929-v1:0": Model("", "claude", "sonnet", (4, 5)),
    "us.anthropic.claude-3-7-sonnet-20250219-v1:0": Model("", "claude", "sonnet", (3, 7)),
    "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-4-1-20250805-v1:0": Model(
        "", "claude", "opus", (4, 1)
    ),
    "meta.llama3-1-70b-instruct-v1:0": Model("", "llama", "", (3, 1)),
    "mistral.mistral-large-2407-v1:0": Model("", "mistral", "large", tokenizer_version=3),
    "amazon.nova-pro-v1:0": Model("", "nova", "pro"),
    "amazon.nova-2-lite-v1:0": Model("", "nova", "lite", (2,)),
    "amazon.titan-text-express-v1:0": Model("", "titan"),
    "qwen.qwen3-coder-480b-a35b-v1:0": Model("", "qwen", "", (3,)),
    "openai.gpt-oss-120b-1:0": Model("", "gpt"),
    "us.deepseek.r1-v1:0": Model("", "deepseek", "r1", (1,), True),
    "cohere.command-r-plus-v1:0": Model("", "command"),
    "ai21.jamba-1-5-large-v1:0": Model("", "jamba", "", (1, 5)),
    "us.writer.palmyra-x5-v1:0": Model("", "palmyra", "", (5,)),
    # The new words decide only where no other does.
    "nova-llama-3.1-8b": Model("", "llama", "", (3, 1)),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name(name: str) -> None:
    expected = NAMES[name]
    found = parse_model(name)
    assert (found.family, found.line, found.version) == (expected.family, expected.line, expected.version)
    assert (found.reasons_by_default, found.tokenizer_version) == (
        expected.reasons_by_default,
        expected.tokenizer_version,
    )
