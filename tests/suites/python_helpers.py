"""The helpers of the vendors' Python SDKs behind the gateway: tool runners, parsed output, collected streams.

A helper fails where the gateway's replies lack what its own API's have. Run by `make suites`.
"""

# pyright: reportMissingImports=false, reportOptionalMemberAccess=false, reportOptionalSubscript=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, ClassVar

import anthropic
import boto3
import openai
import pytest
from google import genai
from google.genai import types
from mistralai.client import Mistral
from pydantic import BaseModel

URL, KEY, MODEL = os.environ["SUITE_URL"], os.environ["SUITE_KEY"], os.environ["SUITE_MODEL"]
QUESTION = "How warm is it in Lisbon? Use get_weather."
ASKED: Any = [{"role": "user", "content": QUESTION}]
HELLO: Any = [{"role": "user", "content": "Say hello."}]
RESULT = "21 degrees"


class City(BaseModel):
    """Whatever text names one."""

    name: str
    people: int


CITY: Any = [{"role": "user", "content": "The city of Lisbon has 500000 people. Extract it."}]
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


class GetWeather(BaseModel):
    """Get the weather of a city."""

    city: str


@pytest.fixture
def ran() -> list[str]:
    """The cities that the tool was called with."""
    return []


# ------------------------------------------------------------------------------------------------------------- OpenAI


class TestOpenAI:
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY)
    functions: ClassVar[Any] = [
        {"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS, "strict": True}}
    ]

    def test_chat_parse(self) -> None:
        parsed = self.client.chat.completions.parse(model=MODEL, messages=CITY, response_format=City)
        assert isinstance(parsed.choices[0].message.parsed, City)

    def test_chat_parse_tools(self) -> None:
        tools = [openai.pydantic_function_tool(GetWeather, name="get_weather")]
        parsed = self.client.chat.completions.parse(model=MODEL, messages=ASKED, tools=tools)
        [call] = parsed.choices[0].message.tool_calls or ()
        assert call.function.parsed_arguments == GetWeather(city="Lisbon")

    def test_chat_stream(self) -> None:
        with self.client.chat.completions.stream(model=MODEL, messages=HELLO) as stream:
            texts = [event.delta for event in stream if event.type == "content.delta"]
            final = stream.get_final_completion()
        assert final.choices[0].message.content == "".join(texts) != ""
        assert final.choices[0].finish_reason == "stop"

    def test_chat_stream_tools(self) -> None:
        tools = [openai.pydantic_function_tool(GetWeather, name="get_weather")]
        with self.client.chat.completions.stream(model=MODEL, messages=ASKED, tools=tools) as stream:
            done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
            final = stream.get_final_completion()
        assert [event.name for event in done] == ["get_weather"]
        assert [call.function.parsed_arguments for call in final.choices[0].message.tool_calls or ()] == [
            GetWeather(city="Lisbon")
        ]

    def test_chat_stream_parsed(self) -> None:
        with self.client.chat.completions.stream(model=MODEL, messages=CITY, response_format=City) as stream:
            final = stream.get_final_completion()
        assert isinstance(final.choices[0].message.parsed, City)

    def test_chat_tool_loop(self) -> None:
        messages = list(ASKED)
        reply = self.client.chat.completions.create(model=MODEL, messages=messages, tools=self.functions)
        messages.append(reply.choices[0].message)
        [call] = reply.choices[0].message.tool_calls or ()
        messages.append({"role": "tool", "tool_call_id": call.id, "content": RESULT})
        answer = self.client.chat.completions.create(model=MODEL, messages=messages, tools=self.functions)
        assert RESULT in str(answer.choices[0].message.content)

    def test_responses_parse(self) -> None:
        parsed = self.client.responses.parse(model=MODEL, input=CITY, text_format=City)
        assert isinstance(parsed.output_parsed, City)

    def test_responses_stream(self) -> None:
        with self.client.responses.stream(model=MODEL, input="Say hello.") as stream:
            texts = [event.delta for event in stream if event.type == "response.output_text.delta"]
            final = stream.get_final_response()
        assert final.output_text == "".join(texts) != ""

    def test_responses_stream_parsed(self) -> None:
        with self.client.responses.stream(model=MODEL, input=CITY, text_format=City) as stream:
            final = stream.get_final_response()
        assert isinstance(final.output_parsed, City)

    def test_responses_tool_loop(self) -> None:
        tools = [openai.pydantic_function_tool(GetWeather, name="get_weather")["function"]]
        declared: Any = [{"type": "function", **tools[0]}]
        first = self.client.responses.parse(model=MODEL, input=ASKED, tools=declared)
        [call] = [item for item in first.output if item.type == "function_call"]
        result: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": RESULT}]
        second = self.client.responses.create(
            model=MODEL, input=result, previous_response_id=first.id, tools=declared, store=True
        )
        assert RESULT in second.output_text

    async def test_async_chat_stream(self) -> None:
        client = openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY)
        async with client.chat.completions.stream(model=MODEL, messages=HELLO) as stream:
            final = await stream.get_final_completion()
        assert final.choices[0].message.content


# ---------------------------------------------------------------------------------------------------------- Anthropic


class TestAnthropic:
    client = anthropic.Anthropic(base_url=URL, api_key=KEY)
    common: ClassVar[Any] = {"model": MODEL, "max_tokens": 4096}

    def make_tool(self, ran: list[str]) -> Any:
        @anthropic.beta_tool
        def get_weather(city: str) -> str:
            """Get the weather of a city.

            Args:
                city: The city.
            """
            ran.append(city)
            return RESULT

        return get_weather

    def test_tool_runner(self, ran: list[str]) -> None:
        runner = self.client.beta.messages.tool_runner(messages=ASKED, tools=[self.make_tool(ran)], **self.common)
        final = runner.until_done()
        assert ran == ["Lisbon"]
        assert RESULT in str(final.content[-1])

    def test_tool_runner_streamed(self, ran: list[str]) -> None:
        tools = [self.make_tool(ran)]
        runner = self.client.beta.messages.tool_runner(messages=ASKED, tools=tools, stream=True, **self.common)
        finals = []
        for stream in runner:
            for _ in stream:
                pass
            finals.append(stream.get_final_message())
        assert ran == ["Lisbon"]
        assert RESULT in str(finals[-1].content[-1])

    def test_parse(self) -> None:
        parsed = self.client.messages.parse(messages=CITY, output_format=City, **self.common)
        assert isinstance(parsed.parsed_output, City)

    def test_stream(self) -> None:
        with self.client.messages.stream(messages=HELLO, **self.common) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        assert text
        assert final.content[-1].type == "text"
        assert final.content[-1].text == text
        assert final.usage.output_tokens

    def test_stream_parsed(self) -> None:
        with self.client.messages.stream(messages=CITY, output_format=City, **self.common) as stream:
            assert isinstance(stream.get_final_message().parsed_output, City)

    def test_stream_tools(self) -> None:
        tools: Any = [{"name": "get_weather", "input_schema": PARAMETERS}]
        with self.client.messages.stream(messages=ASKED, tools=tools, **self.common) as stream:
            final = stream.get_final_message()
        assert [block.input for block in final.content if block.type == "tool_use"] == [{"city": "Lisbon"}]

    def test_count_tokens(self) -> None:
        assert self.client.messages.count_tokens(model=MODEL, messages=HELLO).input_tokens

    async def test_async_tool_runner(self, ran: list[str]) -> None:
        @anthropic.beta_async_tool
        async def get_weather(city: str) -> str:
            """Get the weather of a city."""
            ran.append(city)
            return RESULT

        client = anthropic.AsyncAnthropic(base_url=URL, api_key=KEY)
        runner = client.beta.messages.tool_runner(messages=ASKED, tools=[get_weather], **self.common)
        final = await runner.until_done()
        assert ran == ["Lisbon"]
        assert RESULT in str(final.content[-1])


# ------------------------------------------------------------------------------------------------------------- Google


class TestGoogle:
    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=URL))

    def make_tool(self, ran: list[str]) -> Any:
        def get_weather(city: str) -> str:
            """Get the weather of a city."""
            ran.append(city)
            return RESULT

        return get_weather

    def test_automatic_function_calling(self, ran: list[str]) -> None:
        config = types.GenerateContentConfig(tools=[self.make_tool(ran)])
        reply = self.client.models.generate_content(model=MODEL, contents=QUESTION, config=config)
        assert ran == ["Lisbon"]
        assert RESULT in str(reply.text)

    def test_automatic_function_calling_streamed(self, ran: list[str]) -> None:
        config = types.GenerateContentConfig(tools=[self.make_tool(ran)])
        stream = self.client.models.generate_content_stream(model=MODEL, contents=QUESTION, config=config)
        text = "".join(chunk.text or "" for chunk in stream)
        assert ran == ["Lisbon"]
        assert RESULT in text

    def test_chat_with_tools(self, ran: list[str]) -> None:
        config = types.GenerateContentConfig(tools=[self.make_tool(ran)])
        chat = self.client.chats.create(model=MODEL, config=config)
        assert RESULT in str(chat.send_message(QUESTION).text)
        assert chat.send_message("Say hello.").text
        assert ran[0] == "Lisbon"

    def test_chat_streamed(self) -> None:
        chat = self.client.chats.create(model=MODEL)
        assert "".join(chunk.text or "" for chunk in chat.send_message_stream("Say hello."))
        assert "".join(chunk.text or "" for chunk in chat.send_message_stream("Say it again."))
        assert [content.role for content in chat.get_history()][-1] == "model"

    def test_parsed(self) -> None:
        config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=City)
        reply = self.client.models.generate_content(model=MODEL, contents=CITY[0]["content"], config=config)
        assert isinstance(reply.parsed, City)

    def test_count_tokens(self) -> None:
        assert self.client.models.count_tokens(model=MODEL, contents="Say hello.").total_tokens

    async def test_async_chat(self) -> None:
        chat = self.client.aio.chats.create(model=MODEL)
        assert (await chat.send_message("Say hello.")).text


# ------------------------------------------------------------------------------------------------------------ Mistral


class TestMistral:
    client = Mistral(api_key=KEY, server_url=URL)
    tools: ClassVar[Any] = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]

    def test_parse(self) -> None:
        parsed = self.client.chat.parse(City, model=MODEL, messages=CITY)
        assert isinstance(parsed.choices[0].message.parsed, City)

    def test_parse_stream(self) -> None:
        contents = [
            event.data.choices[0].delta.content
            for event in self.client.chat.parse_stream(City, model=MODEL, messages=CITY)
        ]
        # The content of reasoning is a list of chunks.
        City.model_validate_json("".join(content for content in contents if isinstance(content, str)))

    def test_stream(self) -> None:
        events = list(self.client.chat.stream(model=MODEL, messages=HELLO))
        assert events[-1].data.usage is not None
        assert events[-1].data.choices[0].finish_reason == "stop"

    @pytest.mark.parametrize("choice", ["auto", "any"])
    def test_stream_tools(self, choice: Any) -> None:
        events = list(self.client.chat.stream(model=MODEL, messages=ASKED, tools=self.tools, tool_choice=choice))
        calls = [call for event in events for call in event.data.choices[0].delta.tool_calls or ()]
        assert [(call.function.name, json.loads(str(call.function.arguments))) for call in calls] == [
            ("get_weather", {"city": "Lisbon"})
        ]

    def test_tool_loop(self) -> None:
        first = self.client.chat.complete(model=MODEL, messages=ASKED, tools=self.tools)
        message = first.choices[0].message
        [call] = message.tool_calls or ()
        result: Any = {"role": "tool", "tool_call_id": call.id, "name": "get_weather", "content": RESULT}
        answer = self.client.chat.complete(model=MODEL, messages=[*ASKED, message, result], tools=self.tools)
        assert RESULT in str(answer.choices[0].message.content)

    def test_picture(self) -> None:
        pixel = (
            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
            "RU5ErkJggg=="
        )
        content: Any = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": pixel}]
        reply = self.client.chat.complete(model=MODEL, messages=[{"role": "user", "content": content}])
        assert reply.choices[0].message.content


# ------------------------------------------------------------------------------------------------------------ Bedrock


class TestBedrock:
    tools: ClassVar[Any] = {"tools": [{"toolSpec": {"name": "get_weather", "inputSchema": {"json": PARAMETERS}}}]}
    asked: ClassVar[Any] = [{"role": "user", "content": [{"text": QUESTION}]}]

    @pytest.fixture
    def client(self) -> Iterator[Any]:
        keys = {"aws_access_key_id": KEY, "aws_secret_access_key": "secret"}
        client = boto3.client("bedrock-runtime", endpoint_url=URL, region_name="us-east-1", **keys)
        yield client
        client.close()

    def test_tool_loop(self, client: Any) -> None:
        first = client.converse(modelId=MODEL, messages=self.asked, toolConfig=self.tools)
        message = first["output"]["message"]
        [call] = [block["toolUse"] for block in message["content"] if "toolUse" in block]
        result = {"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": RESULT}]}}
        messages = [*self.asked, message, {"role": "user", "content": [result]}]
        answer = client.converse(modelId=MODEL, messages=messages, toolConfig=self.tools)
        assert RESULT in str(answer["output"]["message"]["content"])

    def test_stream(self, client: Any) -> None:
        stream = client.converse_stream(modelId=MODEL, messages=self.asked, toolConfig=self.tools)["stream"]
        events = list(stream)
        text = "".join(
            event["contentBlockDelta"]["delta"].get("toolUse", {}).get("input", "")
            for event in events
            if "contentBlockDelta" in event
        )
        assert json.loads(text) == {"city": "Lisbon"}
        assert any("metadata" in event for event in events)
