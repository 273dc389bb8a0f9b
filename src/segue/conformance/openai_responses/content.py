"""The content of messages and tool outputs: OAI-RESP-15, 16 and 24."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from segue.conformance.lookup import list_entries, list_objects
from segue.conformance.openai_responses.request import Item, ResponsesRequest
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import has_text, is_list, is_object, quote, text_or_empty, type_name

table: RuleTable[ResponsesRequest] = RuleTable()

_INPUT = ("input_text", "input_image", "input_file")
_OUTPUT = ("output_text", "refusal")
# In the SDK or in error texts, but not in the types of messages.
_UNCERTAIN_PARTS = frozenset({"input_audio", "computer_screenshot", "summary_text", "reasoning_text"})
# Parts of other APIs, which are known to be invalid here. Other unknown types may be newer than this table.
_OTHER_API_PARTS = frozenset({"text", "image", "image_url", "file", "document", "tool_use", "tool_result", "thinking"})
_LONGEST_OUTPUT = 10_485_760
_TEXT_OF = {"input_text": "text", "output_text": "text", "refusal": "refusal"}
_SOURCES = {"input_image": ("image_url", "file_id"), "input_file": ("file_data", "file_id", "file_url")}
_NOT_DOCUMENTS = re.compile(r"data:(?:audio|image|video)/", re.IGNORECASE)
_AUDIO_OR_VIDEO = re.compile(
    r"[^?#]*\.(?:aac|aiff|avi|flac|m4a|m4v|mkv|mov|mp3|mp4|mpeg|mpg|oga|ogg|ogv|opus|wav|weba|webm|wma|wmv)(?:[?#].*)?",
    re.IGNORECASE | re.DOTALL,
)
_RENAMED_KEYS = {"messages": "input", "system": "instructions"}


def _check_parts(path: str, parts: object, allowed: tuple[str, ...]) -> Iterator[Problem]:
    for here, part in list_entries(parts, path):
        if not is_object(part):
            yield Problem(here, f"{type_name(part)} in the list of parts; an object is expected")
            continue
        part_type = text_or_empty(part.get("type"))
        if part_type in allowed:
            yield from _check_part(here, part_type, part)
        else:
            supported = ", ".join(f"'{name}'" for name in allowed)
            known = part_type in (*_INPUT, *_OUTPUT, *_OTHER_API_PARTS, "") or (
                part_type in _UNCERTAIN_PARTS and allowed is _OUTPUT
            )
            severity: Severity = "reject" if known else "risk"
            seen = f"Invalid value: {quote(part.get('type'))}. Supported values are: {supported}."
            yield Problem(f"{here}.type", seen, severity)


def _check_part(path: str, part_type: str, part: Mapping[str, object]) -> Iterator[Problem]:
    if part_type in _TEXT_OF:
        key = _TEXT_OF[part_type]
        if not isinstance(part.get(key), str):
            seen = type_name(part[key]) if key in part else "missing"
            yield Problem(f"{path}.{key}", f"{key} of this {part_type} is {seen}; a string is expected")
        return
    sources = _SOURCES[part_type]
    present = [key for key in sources if part.get(key) is not None]
    if not present:
        yield Problem(path, f"this {part_type} has no source; one of {', '.join(sources)} is expected")
    for key in present:
        if not isinstance(part[key], str):
            yield Problem(f"{path}.{key}", f"{key} is {type_name(part[key])}; a string is expected")


@table.rule("OAI-RESP-15")
def parts_match_role(request: ResponsesRequest) -> Iterator[Problem]:
    """Message content is a string or parts: output_text and refusal for the assistant, input_* for all others."""
    for item in request.items_of("message"):
        content = item.data.get("content")
        if not isinstance(content, str) and not is_list(content):
            seen = type_name(content) if "content" in item.data else "missing"
            yield Problem(f"{item.path}.content", f"content is {seen}; a string or a list of parts is expected")
        yield from _check_parts(f"{item.path}.content", content, _OUTPUT if item.is_assistant else _INPUT)


@table.rule("OAI-RESP-16")
def outputs_valid(request: ResponsesRequest) -> Iterator[Problem]:
    """An output is a string or input_* parts; screenshots and shell output have their own types."""
    for item in request.items_of("function_call_output", "custom_tool_call_output"):
        path, output = f"{item.path}.output", item.data.get("output")
        if isinstance(output, str):
            if len(output) > _LONGEST_OUTPUT:
                seen = f"Expected a string with maximum length {_LONGEST_OUTPUT}, but got a string with length"
                yield Problem(path, f"Invalid '{path}': string too long. {seen} {len(output)} instead.")
        elif not is_list(output):
            seen = type_name(output) if "output" in item.data else "missing"
            yield Problem(path, f"output is {seen}; a string or a list of parts is expected")
        yield from _check_parts(path, output, _INPUT)
    for item in request.items_of("computer_call_output"):
        yield from _check_screenshot(item)
    for item in request.items_of("shell_call_output"):
        yield from _check_shell_output(item)
    for item in request.items_of("apply_patch_call_output"):
        output = item.data.get("output")
        if output is not None and not isinstance(output, str):
            yield Problem(f"{item.path}.output", f"output is {type_name(output)}; a string is expected")


@table.rule("OAI-RESP-16")
def files_are_documents(request: ResponsesRequest) -> Iterator[Problem]:
    """An input_file, in an output or a message, is a document: not audio, an image or a video."""
    for item in request.items_of("message", "function_call_output", "custom_tool_call_output"):
        key = "content" if item.type == "message" else "output"
        for path, part in list_objects(item.data.get(key), f"{item.path}.{key}"):
            if part.get("type") == "input_file":
                yield from _check_file(path, part)


def _check_file(path: str, part: Mapping[str, object]) -> Iterator[Problem]:
    if _NOT_DOCUMENTS.match(text_or_empty(part.get("file_data"))):
        seen = "Expected a base64-encoded data URL with a valid file MIME type"
        yield Problem(f"{path}.file_data", f"Invalid '{path}.file_data'. {seen}")
    url = text_or_empty(part.get("file_url"))
    if _AUDIO_OR_VIDEO.fullmatch(url):
        seen = f"{quote(url)} has the name of an audio or video file; only documents are accepted"
        yield Problem(f"{path}.file_url", seen, "risk")


def _check_screenshot(item: Item) -> Iterator[Problem]:
    path, output = f"{item.path}.output", item.data.get("output")
    if not is_object(output):
        yield Problem(path, f"output is {type_name(output)}; a computer_screenshot is expected")
    elif output.get("type") != "computer_screenshot":
        # Early examples of the vendor used an image here.
        severity: Severity = "risk" if output.get("type") == "input_image" else "reject"
        seen = f"Invalid value: {quote(output.get('type'))}. Supported values are: 'computer_screenshot'."
        yield Problem(f"{path}.type", seen, severity)


def _check_shell_output(item: Item) -> Iterator[Problem]:
    path, output = f"{item.path}.output", item.data.get("output")
    if not is_list(output):
        yield Problem(
            path, f"output is {type_name(output)}; a list of chunks with stdout, stderr and outcome is expected"
        )
        return
    for here, chunk in list_entries(output, path):
        if not is_object(chunk):
            yield Problem(here, f"{type_name(chunk)} in the list of chunks; an object is expected")
            continue
        for key in ("stdout", "stderr"):
            if not isinstance(chunk.get(key), str):
                seen = type_name(chunk[key]) if key in chunk else "missing"
                yield Problem(f"{here}.{key}", f"{key} is {seen}; a string is expected")
        outcome = chunk.get("outcome")
        if not is_object(outcome) or outcome.get("type") not in ("exit", "timeout"):
            yield Problem(
                f"{here}.outcome", "outcome must have the type 'exit' with an exit_code, or the type 'timeout'"
            )
        elif outcome["type"] == "exit" and not isinstance(outcome.get("exit_code"), int):
            yield Problem(f"{here}.outcome.exit_code", f"Missing required parameter: '{here}.outcome.exit_code'.")


@table.rule("OAI-RESP-24")
def input_present(request: ResponsesRequest) -> Iterator[Problem]:
    """input is a string or a list of items; it is optional with a prompt, conversation or earlier response."""
    value = request.body.get("input")
    if value is None:
        if not request.is_continuation and not is_object(request.body.get("prompt")):
            yield Problem("input", "Missing required parameter: 'input'.")
    elif not isinstance(value, str) and not is_list(value):
        yield Problem("input", f"input is {type_name(value)}; a string or a list of items is expected")
    if has_text(request.body.get("previous_response_id")) and request.body.get("conversation") is not None:
        yield Problem("conversation", "conversation can't be used together with previous_response_id")


@table.rule("OAI-RESP-24")
def system_text_in_instructions(request: ResponsesRequest) -> Iterator[Problem]:
    """The system prompt is a string in instructions or system and developer items, not the key system."""
    instructions = request.body.get("instructions")
    if instructions is not None and not isinstance(instructions, str):
        yield Problem("instructions", f"instructions is {type_name(instructions)}; a string is expected")
    for key, new_key in _RENAMED_KEYS.items():
        if key in request.body:
            yield Problem(key, f"Unsupported parameter: '{key}'. Use '{new_key}'.")
