"""The data of a conversation: its request settings, its history, its token estimate, and the last request rendered."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, TypeAlias, cast

import msgspec

from segue.canonical.blocks import Message, Outcome, ToolCall
from segue.canonical.compress import MessageChange
from segue.canonical.history import History
from segue.canonical.json import replace_surrogates, to_plain_json
from segue.canonical.request import Request, Usage
from segue.canonical.tokens import MIN_TOKENS, TokenEstimator, estimate_message, estimate_settings
from segue.coerce import Content, coerce_blocks, is_blocks, is_content_parts
from segue.errors import InputError, require_string
from segue.models import is_same_model, parse_model
from segue.render.constraints import TEXTS
from segue.render.transcript import Transcript
from segue.reply import SentRequest

LastRequest: TypeAlias = tuple[Transcript | None, Sequence[str] | None, SentRequest | None]


class ConversationState:
    """The data of a conversation. Stores and conversation logs read and write it; programs use `Conversation`."""

    def __init__(self) -> None:
        self._request = Request(())
        self._settings_tokens: float | None = None
        self.history = History()
        self.token_estimator = TokenEstimator()
        self.compression_changes: list[MessageChange] = []
        """The changes made by compressions. Each target's next report includes the new ones."""
        self.sent_transcript: Transcript | None = None
        """The transcript of the last render, also before it is sent."""
        self.synthetic_calls: Sequence[str] | None = ()
        """The calls that got synthetic results in the last render; None if it is marked as sent and has no reply."""
        self.sent_request: SentRequest | None = None
        """The request of the last render, also before it is sent."""
        self.last_usages: dict[str, tuple[Usage, float]] = {}
        """Of each model the usage of its last reply, and the estimated tokens of that request; the newest last."""
        self._counted: tuple[int, int, float] = (0, 0, 0.0)
        """The edit count of the history, and the number and the estimated tokens of the messages counted so far."""

    @property
    def request(self) -> Request:
        """The request without its messages: system text, tools, options."""
        return self._request

    @request.setter
    def request(self, request: Request) -> None:
        self._request = msgspec.structs.replace(request, messages=())
        self._settings_tokens = None

    @property
    def last_request(self) -> LastRequest:
        """The last render: its transcript, the calls that got synthetic results in it, and its request."""
        return self.sent_transcript, self.synthetic_calls, self.sent_request

    @last_request.setter
    def last_request(self, last: LastRequest) -> None:
        self.sent_transcript, self.synthetic_calls, self.sent_request = last

    def estimate_tokens(self) -> float:
        """Return the estimated tokens of the next request, before calibration."""
        edit_count, position, tokens = self._counted
        if edit_count != self.history.edit_count:
            position, tokens = 0, 0.0
        new = self.history.slice(position)
        # Added one by one, so that the floating-point sum does not depend on how often it was continued.
        for message in new:
            tokens += estimate_message(message)
        self._counted = self.history.edit_count, position + len(new), tokens
        if self._settings_tokens is None:
            self._settings_tokens = estimate_settings(self._request)
        return self._settings_tokens + tokens

    def calibrate_tokens(self, usage: Usage | None, model: str | None) -> None:
        """Calibrate the token estimate of the request with the usage that the provider reported."""
        if usage is not None and usage.input:
            if model is not None:
                self.last_usages.pop(model, None)
                self.last_usages[model] = usage, self.estimate_tokens()
            self.token_estimator.calibrate(self.estimate_tokens(), usage.input, parse_model(model).family)

    def predict_tokens(self, model: str) -> tuple[int, Usage | None, bool]:
        """Return the tokens of the next request to a model, its last usage, and whether the first follow from that.

        The usage is None if the model has not replied; that of a short request tells nothing of a longer one.
        """
        # A provider may name the version that replied.
        name = next((name for name in reversed(self.last_usages) if is_same_model(name, model)), None)
        if name is None:
            ratio = self.token_estimator.ratio(parse_model(model).family)
            return ceil(self.estimate_tokens() * ratio), None, False
        usage, estimated = self.last_usages[name]
        # What was added since, by the ratio of this model: others of its family may count in another way.
        is_measured = estimated >= MIN_TOKENS
        ratio = usage.input / estimated if is_measured else self.token_estimator.ratio(parse_model(model).family)
        return max(0, usage.input + ceil((self.estimate_tokens() - estimated) * ratio)), usage, is_measured

    def build_outcome(
        self,
        call: ToolCall | str,
        content: object = None,
        *,
        error: bool = False,
        outcome: Outcome | None = None,
        reason: str = "cancelled",
    ) -> Message:
        """Return the message with the result or other outcome of a call, without adding it.

        The content of a denied call is the reason.
        """
        tool_call = self.find_call(call)
        require_string(reason, "reason")
        if not isinstance(error, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"a boolean was expected, not {type(error).__name__}", path="error")
        if outcome == "denied":
            text = content if isinstance(content, str) and content else TEXTS.denied
            response = tool_call.respond(replace_surrogates(text), error=True, outcome=outcome)
        elif outcome is not None:
            text = TEXTS.cancelled if outcome == "cancelled" else TEXTS.interrupted
            response = tool_call.respond(text, error=True, outcome=outcome, synthetic=reason)
        elif content is None or isinstance(content, str):
            response = tool_call.respond(replace_surrogates(content or ""), error=error)
        elif is_blocks(content) or is_content_parts(content):
            response = tool_call.respond(coerce_blocks(cast("Content", content)), error=error)
        else:
            response = tool_call.respond((), structured=_to_json_result(content), error=error)
        return Message("tool", (response,), turn_key=self.history.ledger[tool_call.id].turn_key)

    def find_call(self, call: ToolCall | str) -> ToolCall:
        """Return the call given as a `ToolCall`, a canonical id, or a raw id in the newest turn."""
        if not isinstance(call, ToolCall | str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"a call or its id was expected, not {type(call).__name__}", path="call")
        ledger = self.history.ledger
        key = call.id if isinstance(call, ToolCall) else call
        if key in ledger:
            return ledger[key].call
        matching = [candidate for candidate in self.history.newest_calls if candidate.origin.raw_id == key]
        pending = [candidate for candidate in matching if ledger[candidate.id].state == "pending"]
        if not matching:
            message = f"unknown tool call {key!r}: not in this conversation, nor a raw id in its newest turn"
            raise InputError(message, path="call")
        return (pending or matching)[0]


def _to_json_result(value: object) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        raise InputError("bytes are not text; decode them, or pass a `Media` block", path="content")
    try:
        return to_plain_json(value)
    except InputError as error:
        raise error.with_prefix("content") from None
