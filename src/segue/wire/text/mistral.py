"""`mistral-text`: `[TOOL_CALLS]`, in the versions of Mistral's tokenizers (TPL-14).

Up to v7 a list of objects follows, with ids from v3 on; from v11 each call has a name, an id and arguments; from v13
the id is gone. v13 is rendered: current models were trained on it, and it needs no nine-character ids. Results are then
rendered in the order of the calls, since nothing else pairs them.
"""

from __future__ import annotations

from collections.abc import Sequence

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.json_values import object_or_none, string_or_none
from segue.wire.text.json_calls import build_call, parse_call
from segue.wire.text.lenient_json import InvalidJsonError, find_repeated_key, parse_lenient
from segue.wire.text.regions import BrokenCall, Reading, Segment
from segue.wire.text.text_format import TextFormat, call_arguments, function_declaration, render_spaced_json
from segue.wire.text.tokens import TokenRegion, TokenSet, token_opener

_CALLS, _ID, _ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_TOKENS = TokenSet({"calls": _CALLS, "id": _ID, "arguments": _ARGUMENTS})
_OPENING, _SEPARATORS = _TOKENS.select("calls"), _TOKENS.select("id", "arguments")
_NAME_ENDS = _TOKENS.with_tokens({"object": "{"})
_LONGEST_NAME = 256


class _Calls(TokenRegion):
    tokens, opening, closing = _TOKENS, _OPENING, TokenSet({})

    def read(self) -> Reading[list[Segment]]:
        yield from self.take_token(_OPENING)
        opened = self.checkpoint
        yield from self.skip_space()
        if not (yield from self.peek_token(_TOKENS)):
            sign = yield from self.peek_char()
            if sign == "[":
                self.take(1)
            if sign in ("[", "{"):
                return (yield from self._read_objects(listed=sign == "["))
        start = self.checkpoint
        kind = yield from self.take_until_token(_NAME_ENDS, _LONGEST_NAME)
        if not kind:
            self.rewind(opened)
            return [self.build_broken_call("no call after the opening token")]
        name, raw_id = self.text_since(start), None
        if kind == "id":
            yield from self.take_token(_SEPARATORS)
            start = self.checkpoint
            kind = yield from self.take_until_token(_NAME_ENDS, _LONGEST_NAME)
            raw_id = self.text_since(start).strip() or None
        if kind not in ("arguments", "object"):
            return [self.build_broken_call("no arguments")]
        yield from self.take_token(_SEPARATORS)
        text = yield from self.take_value()
        if not text:
            return (yield from self.take_broken_call("unterminated arguments"))
        return [parse_call(name, text, self.flush_taken(), raw_id)]

    def _read_objects(self, *, listed: bool) -> Reading[list[Segment]]:
        """Read calls as objects, in a list or one alone. Each is parsed separately."""
        segments: list[Segment] = []
        while True:
            yield from self.skip_space()
            start = self.checkpoint
            if (yield from self.peek_char()) != "{":
                yield from self.take_marker("]")
                return [*segments, self.build_broken_call("no call after the opening token")]
            if not (yield from self.take_balanced()):
                return [*segments, *(yield from self.take_broken_call("unterminated call"))]
            text = self.text_since(start)
            has_more = listed and (yield from self._take_separator())
            segments.append(_parse_object(text, self.flush_taken()))
            if not has_more:
                return segments

    def _take_separator(self) -> Reading[bool]:
        """Consume the separator or the end of the list; return whether another object follows."""
        end = self.checkpoint
        yield from self.skip_space()
        yield from self.take_marker(",")
        yield from self.skip_space()
        if (yield from self.take_marker("]")):
            return False
        if (yield from self.peek_char()) in ("{", ""):
            return (yield from self.peek_char()) == "{"
        self.rewind(end)
        return False


def _parse_object(text: str, raw_text: str) -> Segment:
    try:
        value = object_or_none(parse_lenient(text))
    except InvalidJsonError as error:
        return BrokenCall(raw_text, str(error))
    if value is None:
        return BrokenCall(raw_text, "no tool name")
    function = object_or_none(value.get("function")) or value
    name, raw_id = string_or_none(function.get("name")), string_or_none(value.get("id"))
    arguments = function.get("arguments", function.get("parameters", {}))
    return build_call(name or "", arguments, raw_text, raw_id, find_repeated_key(text, value))


def _render_tools(tools: Sequence[Tool]) -> str:
    return f"[AVAILABLE_TOOLS]{render_spaced_json([function_declaration(tool) for tool in tools])}[/AVAILABLE_TOOLS]"


def _render_calls(calls: Sequence[ToolCall]) -> str:
    return "".join(f"{_CALLS}{call.name}{_ARGUMENTS}{render_spaced_json(call_arguments(call))}" for call in calls)


MISTRAL_TEXT = TextFormat(
    name="mistral-text",
    title="Mistral: [TOOL_CALLS], in the versions of its tokenizers",
    openers=(token_opener(_OPENING, _Calls),),
    markers=(_CALLS,),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=lambda results: "".join(f"[TOOL_RESULTS]{result.text}[/TOOL_RESULTS]" for result in results),
    provider="mistral",
    eos_tokens=("</s>",),
)
