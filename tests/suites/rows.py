"""The suites: what each runs, and which packages it judges."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Suite(Struct, frozen=True):
    """A file of tests for pytest or for `node --test`, and the distributions whose versions the page shows."""

    title: str
    file: str
    packages: tuple[str, ...]

    @property
    def is_node(self) -> bool:
        return self.file.endswith(".mjs")


SUITES: Mapping[str, Suite] = {
    "langchain": Suite(
        "`ChatModelIntegrationTests` of langchain-tests, with five clients",
        "langchain_suite.py",
        ("langchain-tests", "langchain-openai", "langchain-anthropic", "langchain-google-genai", "langchain-mistralai"),
    ),
    "ai-sdk": Suite(
        "Vercel's AI SDK, with all its providers of these APIs",
        "ai_sdk.mjs",
        (
            "ai",
            "@ai-sdk/openai",
            "@ai-sdk/openai-compatible",
            "@ai-sdk/azure",
            "@ai-sdk/anthropic",
            "@ai-sdk/google",
            "@ai-sdk/mistral",
            "@ai-sdk/deepseek",
            "@ai-sdk/amazon-bedrock",
        ),
    ),
    "python-helpers": Suite(
        "the helpers of the vendors' Python SDKs: tool runners, parsed output, collected streams",
        "python_helpers.py",
        ("openai", "anthropic", "google-genai", "mistralai", "boto3"),
    ),
    "js-helpers": Suite(
        "the same helpers of the vendors' JavaScript SDKs",
        "js_helpers.mjs",
        ("openai", "@anthropic-ai/sdk", "@google/genai", "@mistralai/mistralai", "@aws-sdk/client-bedrock-runtime"),
    ),
}
PYTHON_MORE = ("langchain-core", "pytest", "pytest-timeout")
NODE_MORE = ("zod", "@smithy/node-http-handler")
