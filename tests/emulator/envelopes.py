"""The errors of the providers as they are sent, written down from reports and documentation.

Each check takes an answer apart, asserts its whole form, and gives what it says and what kind it says it is of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from segue.emulator.client import Response

CORAL = "http://internal.amazon.com/coral/com.amazon.bedrock/"
BAD_REQUEST = "type.googleapis.com/google.rpc.BadRequest"


class ParsedError(NamedTuple):
    message: str
    kind: str | None
    code: Any = None
    details: tuple[Any, ...] = ()


def keys(value: Mapping[str, Any], *wanted: str) -> None:
    assert set(value) == set(wanted)


def openai(sent: Response) -> ParsedError:
    """https://platform.openai.com/docs/guides/error-codes; four keys, null where there is nothing to say."""
    assert sent.headers["content-type"] == "application/json"
    assert re.fullmatch(r"req_[0-9a-f]{32}", sent.headers["x-request-id"])
    keys(sent.body, "error")
    error = sent.body["error"]
    keys(error, "message", "type", "param", "code")
    assert all(error[key] is None or isinstance(error[key], str) for key in ("param", "code"))
    return ParsedError(error["message"], error["type"], error["code"])


def anthropic(sent: Response) -> ParsedError:
    """https://docs.anthropic.com/en/api/errors: the number of the request stands in the body and in a header."""
    assert sent.headers["content-type"] == "application/json"
    keys(sent.body, "type", "error", "request_id")
    assert sent.body["type"] == "error"
    assert sent.body["request_id"] == sent.headers["request-id"]
    assert re.fullmatch(r"req_01[1-9A-HJ-NP-Za-km-z]{22}", sent.body["request_id"])
    error = sent.body["error"]
    assert set(error) in ({"type", "message"}, {"type", "message", "details"})
    code = error.get("details", {}).get("error_code")
    return ParsedError(error["message"], error["type"], code)


def gemini(sent: Response) -> ParsedError:
    """google.rpc.Status as JSON; each line of the parser's is a violation (ai.nvim #13, ChatGPT-Telegram-Bot #101)."""
    assert sent.headers["content-type"] == "application/json; charset=UTF-8"
    keys(sent.body, "error")
    error = sent.body["error"]
    assert set(error) in ({"code", "message", "status"}, {"code", "message", "status", "details"})
    assert error["code"] == sent.status
    message: str = error["message"]
    parsed = message.startswith(("Invalid JSON payload received. Unknown name", "Invalid value at"))
    if parsed:
        (detail,) = error["details"]
        assert detail["@type"] == BAD_REQUEST
        found = detail["fieldViolations"]
        assert [one["description"] for one in found] == message.split("\n")
        for one in found:
            place = re.search(r" at '([^']+)'", one["description"])
            assert one.get("field") == (place[1] if place else None)
    # What the checks of fields say ends each line, the last too (chatwise-releases #250, sketch #68).
    assert message.endswith("\n") is message.startswith("* ")
    return ParsedError(message, error["status"], details=tuple(error.get("details", ())))


def bedrock(sent: Response) -> ParsedError:
    """The kind is in a header (AnthropicSwiftSDK #19: the length of the body leaves room for the message alone)."""
    assert sent.headers["content-type"] == "application/json"
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", sent.headers["x-amzn-requestid"])
    kind, _, space = sent.headers["x-amzn-errortype"].partition(":")
    assert space == CORAL
    keys(sent.body, "message")
    return ParsedError(sent.body["message"], kind)


def foundry(sent: Response) -> ParsedError:
    """agent-framework #3003, #2573 and #5130."""
    assert sent.headers["content-type"] == "application/json"
    keys(sent.body, "error")
    error = sent.body["error"]
    keys(error, "code", "message", "param", "type", "details", "additionalInfo")
    keys(error["additionalInfo"], "request_id")
    assert re.fullmatch(r"[0-9a-f]{32}", error["additionalInfo"]["request_id"])
    for detail in error["details"]:
        keys(detail, "code", "message", "param", "type")
    return ParsedError(error["message"], error["type"], error["code"], tuple(error["details"]))


def mistral(sent: Response) -> ParsedError:
    """What the types refuse is pydantic's list (openclaude #739), what the rules refuse an object (zed #37021)."""
    assert sent.headers["content-type"] == "application/json"
    if sent.status == 422 and "detail" in sent.body:
        keys(sent.body, "detail")
        for one in sent.body["detail"]:
            assert {"type", "loc", "msg", "input"} <= set(one) <= {"type", "loc", "msg", "input", "ctx"}
            assert one["loc"][0] == "body"
        return ParsedError(sent.body["detail"][0]["msg"], "invalid_request_error", details=tuple(sent.body["detail"]))
    if sent.status in (401, 404):
        keys(sent.body, "detail")
        return ParsedError(sent.body["detail"], None)
    keys(sent.body, "object", "message", "type", "param", "code")
    assert sent.body["object"] == "error"
    return ParsedError(sent.body["message"], sent.body["type"], sent.body["code"])


def parse_message_and_type(sent: Response) -> ParsedError:
    """Message and type. Moonshot (cherry-studio #1313) and Groq (jan #8136)."""
    assert sent.headers["content-type"] == "application/json"
    keys(sent.body, "error")
    error = sent.body["error"]
    assert {"message", "type"} <= set(error) <= {"message", "type", "param", "code"}
    return ParsedError(error["message"], error["type"], error.get("code"))


def moonshot(sent: Response) -> ParsedError:
    said = parse_message_and_type(sent)
    keys(sent.body["error"], "message", "type")
    return said


def deepseek(sent: Response) -> ParsedError:
    """WHartTest #62, forgecode #2008."""
    assert sent.headers["content-type"] == "application/json"
    keys(sent.body, "error")
    error = sent.body["error"]
    keys(error, "message", "type", "param", "code")
    assert error["param"] is None
    assert error["code"] == "invalid_request_error"
    return ParsedError(error["message"], error["type"], error["code"])


def qwen(sent: Response) -> ParsedError:
    assert sent.headers["content-type"] == "application/json"
    keys(sent.body, "error", "id", "request_id")
    assert sent.body["id"] == f"chatcmpl-{sent.body['request_id']}"
    assert sent.body["request_id"] == sent.headers["x-request-id"]
    error = sent.body["error"]
    keys(error, "message", "type", "param", "code")
    return ParsedError(error["message"], error["type"], error["code"])


def cerebras(sent: Response) -> ParsedError:
    """kilocode #10375: no object around it."""
    keys(sent.body, "message", "type", "param", "code")
    return ParsedError(sent.body["message"], sent.body["type"], sent.body["code"])


def xai(sent: Response) -> ParsedError:
    """langchain #34140: the message is the error."""
    keys(sent.body, "code", "error")
    return ParsedError(sent.body["error"], sent.body["code"])


def minimax(sent: Response) -> ParsedError:
    """MiniMax-M2 #76: Anthropic's form, and the status as text."""
    keys(sent.body, "type", "error", "request_id")
    assert sent.body["type"] == "error"
    error = sent.body["error"]
    keys(error, "type", "message", "http_code")
    assert error["http_code"] == str(sent.status)
    return ParsedError(error["message"], error["type"])


def zai(sent: Response) -> ParsedError:
    """opencode #2557."""
    keys(sent.body, "error")
    keys(sent.body["error"], "code", "message")
    assert isinstance(sent.body["error"]["code"], str)
    return ParsedError(sent.body["error"]["message"], None, sent.body["error"]["code"])


def vllm(sent: Response) -> ParsedError:
    """`ErrorResponse` of vLLM: the status as a number."""
    keys(sent.body, "error")
    error = sent.body["error"]
    keys(error, "message", "type", "param", "code")
    assert error["code"] == sent.status
    return ParsedError(error["message"], error["type"], error["code"])


def llama_cpp(sent: Response) -> ParsedError:
    """`format_error_response` of llama.cpp: three keys."""
    keys(sent.body, "error")
    error = sent.body["error"]
    keys(error, "code", "message", "type")
    assert error["code"] == sent.status
    return ParsedError(error["message"], error["type"], error["code"])


def openrouter(sent: Response) -> ParsedError:
    """https://openrouter.ai/docs/api-reference/errors: a code that is a number, and a message."""
    keys(sent.body, "error")
    keys(sent.body["error"], "code", "message")
    assert sent.body["error"]["code"] == sent.status
    return ParsedError(sent.body["error"]["message"], None)


ENVELOPES: dict[str, Callable[[Response], ParsedError]] = {
    "openai-chat": openai,
    "openai-responses": openai,
    "anthropic": anthropic,
    "gemini": gemini,
    "bedrock": bedrock,
    "azure-foundry": foundry,
    "mistral": mistral,
    "kimi": moonshot,
    "deepseek": deepseek,
    "qwen": qwen,
    "cerebras": cerebras,
    "deepseek-responses": openai,
    "fireworks": openai,
    "groq": parse_message_and_type,
    "llama.cpp": llama_cpp,
    "minimax": minimax,
    "ollama": openai,
    "openrouter": openrouter,
    "vllm": vllm,
    "xai": xai,
    "z.ai": zai,
}
