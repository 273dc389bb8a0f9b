"""LangChain's own `ChatModelIntegrationTests`, with five of its clients behind the gateway; run by `make suites`."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import os
from typing import Any

import httpx
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_mistralai import ChatMistralAI
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

from tests.clients.task import make_picture

URL, KEY, MODEL = os.environ["SUITE_URL"], os.environ["SUITE_KEY"], os.environ["SUITE_MODEL"]


@pytest.fixture(autouse=True)
def local_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the suite a picture of its own in place of those that it downloads."""
    monkeypatch.setattr(httpx, "get", lambda url, **_: httpx.Response(200, content=make_picture(64)))


class _Suite(ChatModelIntegrationTests):
    """What all five clients support."""

    client: type[BaseChatModel]
    params: dict[str, Any]

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return self.client

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": MODEL, **self.params}

    @property
    def has_tool_choice(self) -> bool:
        return True

    @property
    def supports_image_inputs(self) -> bool:
        return True

    @property
    def supports_model_override(self) -> bool:
        return self.client in (ChatOpenAI, ChatAnthropic)

    @property
    def model_override_value(self) -> str:
        return f"{MODEL}-other"


class TestOpenAIChat(_Suite):
    client, params = ChatOpenAI, {"base_url": f"{URL}/v1", "api_key": KEY, "stream_usage": True}

    @property
    def supports_json_mode(self) -> bool:
        return True


class TestOpenAIResponses(_Suite):
    client, params = ChatOpenAI, {"base_url": f"{URL}/v1", "api_key": KEY, "use_responses_api": True}

    @property
    def supports_image_tool_message(self) -> bool:
        return True


class TestAnthropic(_Suite):
    client, params = ChatAnthropic, {"base_url": URL, "api_key": KEY, "max_tokens": 4096}

    @property
    def supports_anthropic_inputs(self) -> bool:
        return True

    @property
    def supports_image_tool_message(self) -> bool:
        return True


class TestGoogle(_Suite):
    client, params = ChatGoogleGenerativeAI, {"base_url": URL, "api_key": KEY}

    @property
    def supports_json_mode(self) -> bool:
        return True


class TestMistral(_Suite):
    client, params = ChatMistralAI, {"endpoint": f"{URL}/mistral/v1", "api_key": KEY}

    @property
    def supports_json_mode(self) -> bool:
        return True
