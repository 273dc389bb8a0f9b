"""Stream parser: API events to canonical events, and to the equivalent whole response."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from segue.canonical.blocks import Native
from segue.canonical.json import to_plain_json
from segue.canonical.request import Reply
from segue.wire.base import ApiError
from segue.wire.json_values import JsonObject, list_or_empty, number_or_none, object_or_none, string_or_none
from segue.wire.openai_responses.assembler import ItemAssembler
from segue.wire.openai_responses.context import ResponsesDialect
from segue.wire.openai_responses.reply import parse_reply
from segue.wire.openai_responses.stream_items import INPUT_KEYS, TextKind
from segue.wire.openai_shared import parse_error
from segue.wire.stream.parse import ENDED_EARLY, PayloadReader, with_streamed_calls

_TEXT = TextKind("message", "content", "output_text")
_REFUSAL = TextKind("message", "content", "refusal", "refusal")
_REASONING = TextKind("reasoning", "content", "reasoning_text")
_SUMMARY = TextKind("reasoning", "summary", "summary_text", index_key="summary_index")
_TEXT_KIND_BY_PART: dict[object, TextKind] = {
    text_kind.part_type: text_kind for text_kind in (_TEXT, _REFUSAL, _REASONING, _SUMMARY)
}
_TEXT_KIND_BY_EVENT = {
    "output_text": _TEXT,
    "refusal": _REFUSAL,
    "reasoning_text": _REASONING,
    "reasoning_summary_text": _SUMMARY,
    # Older names.
    "reasoning": _REASONING,
    "reasoning_summary": _SUMMARY,
}
_TEXT_KIND_BY_DELTA = {f"response.{name}.delta": text_kind for name, text_kind in _TEXT_KIND_BY_EVENT.items()}
_ITEM_TYPE_BY_EVENT = {
    "function_call_arguments": "function_call",
    "custom_tool_call_input": "custom_tool_call",
    "mcp_call_arguments": "mcp_call",
    "code_interpreter_call_code": "code_interpreter_call",
}
_LIFECYCLE = ("created", "queued", "in_progress")
_TERMINAL = frozenset(f"response.{state}" for state in ("completed", "done", "incomplete", "failed", "cancelled"))
_FAILED = ("failed", "cancelled")


class ResponsesReader(PayloadReader):
    """API events to canonical events. The response is that of the terminal event, else built from the items."""

    def __init__(self, turn_key: str, dialect: ResponsesDialect) -> None:
        super().__init__(dialect.provider, turn_key)
        self._dialect = dialect
        self._items = ItemAssembler(self, dialect)
        self._response: JsonObject = {}
        self._ended = False
        self._handlers: dict[str, Callable[[JsonObject], None]] = self._build_handlers()

    def _build_handlers(self) -> dict[str, Callable[[JsonObject], None]]:
        items = self._items
        handlers: dict[str, Callable[[JsonObject], None]] = {
            "response.output_item.added": items.on_item_added,
            "response.output_item.done": items.on_item_done,
            "response.output_text.annotation.added": partial(items.on_annotation, kind=_TEXT),
            "response.shell_call_command.done": items.on_shell_command,
            "response.shell_call_output_content.done": items.on_shell_output,
        }
        for name, text_kind in _TEXT_KIND_BY_EVENT.items():
            handlers[f"response.{name}.done"] = partial(items.on_text_done, kind=text_kind)
        for name, list_key in (("content_part", "content"), ("reasoning_summary_part", "summary")):
            for state in ("added", "done"):
                done = state == "done"
                handlers[f"response.{name}.{state}"] = partial(
                    items.on_part, kinds=_TEXT_KIND_BY_PART, list_key=list_key, done=done
                )
        for name, kind in _ITEM_TYPE_BY_EVENT.items():
            handlers[f"response.{name}.delta"] = partial(items.on_input_delta, kind=kind)
            handlers[f"response.{name}.done"] = partial(
                items.on_input_done, kind=kind, key=INPUT_KEYS.get(kind, "code")
            )
        return handlers

    def read(self, payload: JsonObject, name: str | None) -> None:
        kind = payload.get("type", name)
        if not isinstance(kind, str):
            self._read_response(payload, kind)
            return
        text_kind = _TEXT_KIND_BY_DELTA.get(kind)
        handler = self._handlers.get(kind) if text_kind is None else None
        if not self.reply_started and (text_kind or handler):
            self._open({})
        if text_kind is not None:
            if not self._ended:
                self._items.on_text_delta(payload, text_kind)
            return
        self._items.clear_current()
        if self.has_split_surrogates and not kind.endswith(".delta"):
            payload = to_plain_json(payload)
        if handler is None:
            self._read_response(payload, kind)
        elif not self._ended:
            handler(payload)

    def _read_response(self, payload: JsonObject, kind: object) -> None:
        """Read an event about the response as a whole."""
        response = object_or_none(payload.get("response"))
        if self._ended:
            return
        if isinstance(kind, str) and kind.startswith("response."):
            if response is not None and kind in _TERMINAL:
                self._end(response, kind.removeprefix("response."))
            elif response is not None and kind.removeprefix("response.") in _LIFECYCLE:
                self._open(response)
        elif payload.get("object") == "response" or (kind is None and isinstance(payload.get("output"), list)):
            self._end(payload, None)
        elif kind == "error" or (kind is None and payload.get("error")):
            fields = {key: value for key, value in payload.items() if value is not None and key != "type"}
            self._fail(parse_error(0, fields))

    def _fail(self, error: ApiError) -> None:
        self.error = self.error or error

    def _open(self, response: JsonObject) -> None:
        self._response.update({key: value for key, value in response.items() if value is not None})
        model = string_or_none(self._response.get("model"))
        self._items.model = model
        self._items.stored = self._response.get("store") is not False
        created = number_or_none(self._response.get("created_at"))
        envelope = {key: value for key, value in response.items() if key not in ("output", "usage")}
        self.emit_reply_start(
            string_or_none(self._response.get("id")),
            model,
            None if created is None else int(created),
            Native(self._dialect.name, envelope, intact=False),
        )

    def _end(self, response: JsonObject, state: str | None) -> None:
        """Read the end of the stream (OAI-RESP-23), or a whole response."""
        self._open(response)
        self._response = {**self._response, **response}
        if state is not None:
            self._response.setdefault("status", "completed" if state == "done" else state)
        status = self._response.get("status")
        if status in _FAILED:
            error = object_or_none(self._response.get("error"))
            message = f"the response was {status}" if status == "cancelled" else "the response failed"
            self._fail(parse_error(0, {"error": error}) if error else ApiError(0, message, kind=str(status)))
        self._items.is_truncated = status == "incomplete"
        output = response.get("output")
        self._items.finish_all(list_or_empty(output))
        self._ended = self.done = True

    def finish(self) -> Reply:
        if not self._ended and not self.done:
            self._fail(ENDED_EARLY)
        status = self._response.get("status")
        is_complete = self.error is None and status != "incomplete"
        self._items.end_all(ended=is_complete)
        if not self._ended:
            self._response["status"] = "completed" if is_complete else "failed"
        if self.error is not None and not self._response.get("error"):
            self._response["error"] = {"code": self.error.code or "server_error", "message": self.error.message}
        items = self._items.output()
        body = {**self._response, "output": [_close_status(item.fragment, is_complete=is_complete) for item in items]}
        calls = [call for item in items for call in item.emitted_calls]
        return self.emit_finish(with_streamed_calls(parse_reply(body, dialect=self._dialect), calls))


def _close_status(item: JsonObject, *, is_complete: bool) -> JsonObject:
    """Return the item with its final status: `in_progress` becomes `incomplete` if the reply is not complete."""
    ongoing = item.get("status") == "in_progress" and not is_complete
    return {**item, "status": "incomplete"} if ongoing else item
