"""`deepseek-text`: the formats of four generations of DeepSeek models (TPL-07, TPL-08), and variants of derived models.

V3 and R1 put the name after a separator and the arguments into a code fence; V3.1 puts the name before it and has
no fence; V3.2 and V4 write elements. Derived models write the special tokens with ASCII bars and underscores.
V3.1 is rendered: its JSON arguments can hold every value, while an element can't hold its own end tag, and older models
understand it, since it is their layout without the fence.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.elements import ElementFormat
from segue.wire.text.json_calls import parse_call
from segue.wire.text.regions import Reading, Segment
from segue.wire.text.text_format import TextFormat, call_arguments, function_declaration, render_spaced_json
from segue.wire.text.tokens import TokenRegion, TokenSet, token_opener

_BAR, _GAP = "\N{FULLWIDTH VERTICAL LINE}", "\N{LOWER ONE EIGHTH BLOCK}"
_BARS = tuple((left, right) for left in (_BAR, "|") for right in (_BAR, "|"))


def _token(*parts: str, gap: str = _GAP, bars: tuple[str, str] = _BARS[0]) -> str:
    return f"<{bars[0]}tool{gap}{gap.join(parts)}{bars[1]}>"


_CALLS, _CALLS_END = _token("calls", "begin"), _token("calls", "end")
_CALL, _CALL_END, _SEP = _token("call", "begin"), _token("call", "end"), _token("sep")
_OUTPUT, _OUTPUT_END = _token("output", "begin"), _token("output", "end")


def _token_variants(*parts: str) -> list[str]:
    """Return a special token in all variants."""
    return [_token(*parts, gap=gap, bars=bars) for bars, gap in product(_BARS, (_GAP, "_", "\\_", " "))]


_TOKENS = TokenSet(
    {
        "section": [*_token_variants("calls", "begin"), *_token_variants("calls")],
        "call": _token_variants("call", "begin"),
        "separator": _token_variants("sep"),
        "call end": _token_variants("call", "end"),
        "section end": _token_variants("calls", "end"),
    }
)
_OPENING, _BEGIN, _SEPARATOR = _TOKENS.select("section", "call"), _TOKENS.select("call"), _TOKENS.select("separator")
_CLOSING, _ENDS = _TOKENS.select("call end", "section end"), _TOKENS.select("call end")
_SECTION_ENDS = _TOKENS.select("section end")
_FENCE, _FENCE_END = TokenSet({"fence": ("```json", "```")}), TokenSet({"fence": "```"})
_NAME_ENDS = _TOKENS.with_tokens({"line": "\n", "fence": "```", "object": "{"})
_LONGEST_NAME = 256


class _Call(TokenRegion):
    """One call with a separator, and the section's tokens if they come directly before or after it."""

    tokens, opening, closing = _TOKENS, _OPENING, _CLOSING

    def read(self) -> Reading[list[Segment]]:
        kind = yield from self.take_token(_OPENING)
        start = self.checkpoint
        if kind == "section":
            yield from self.skip_space()
            if (yield from self.take_token(_SECTION_ENDS)):
                return [self.build_broken_call("no call after the opening token")]
            kind = yield from self.take_token(_BEGIN)
            start = self.checkpoint if kind else start
        next_kind = yield from self.take_until_token(_TOKENS, _LONGEST_NAME)
        # R1 omits the begin token of the first call in a section.
        if not next_kind or (not kind and next_kind != "separator"):
            self.rewind(start)
            return [self.build_broken_call("no call after the opening token")]
        name = self.text_since(start).strip()
        if not (yield from self.take_token(_SEPARATOR)):
            return (yield from self.take_broken_call("no arguments"))
        second = (yield from self._read_second_name()).strip()
        fenced = yield from self.take_token(_FENCE)
        text = yield from self._read_arguments(fenced=bool(fenced))
        if text is None:
            return (yield from self.take_broken_call("unterminated arguments"))
        yield from self.take_closers(*([_FENCE_END] if fenced else []), _ENDS, _SECTION_ENDS)
        if second and not text and not fenced and name != "function":
            second, text = "", second
        return [parse_call(second or name, text.strip().removesuffix("```"), self.flush_taken())]

    def _read_second_name(self) -> Reading[str]:
        """Read the name after the separator: up to V3 it stands there, and the call's type before it."""
        yield from self.skip_space()
        if (yield from self.peek_char()) in ("{", "[", '"', "`") or (yield from self.peek_token(_TOKENS)):
            return ""
        start = self.checkpoint
        if not (yield from self.take_until_token(_NAME_ENDS, _LONGEST_NAME)):
            return ""
        name = self.text_since(start)
        yield from self.skip_space()
        return name

    def _read_arguments(self, *, fenced: bool) -> Reading[str | None]:
        yield from self.skip_space()
        if (yield from self.peek_token(_FENCE_END if fenced else _CLOSING)):
            return ""
        return (yield from self.take_value()) or None


def _tag_variants(tag: str) -> list[str]:
    """Return a tag of V3.2 and V4, with the special token's bars or ASCII ones."""
    return [tag.replace("DSML", f"{left}DSML{right}") for left, right in _BARS]


_DSML = ElementFormat(
    TokenSet(
        {
            "section": [*_tag_variants("<DSMLfunction_calls>"), *_tag_variants("<DSMLtool_calls>")],
            "call": _tag_variants("<DSMLinvoke "),
            "parameter": _tag_variants("<DSMLparameter "),
            "parameter end": _tag_variants("</DSMLparameter>"),
            "call end": _tag_variants("</DSMLinvoke>"),
            "section end": [*_tag_variants("</DSMLfunction_calls>"), *_tag_variants("</DSMLtool_calls>")],
            "tag end": ">",
        }
    ),
    name_attribute="name",
    key_attribute="name",
    is_text=lambda attributes: attributes["string"] == "true" if "string" in attributes else None,
)


def _render_tools(tools: Sequence[Tool]) -> str:
    listed = "".join(
        f"### {tool.name}\nDescription: {tool.description or ''}\n\n"
        f"Parameters: {render_spaced_json(function_declaration(tool)['function']['parameters'])}\n\n"
        for tool in tools
    )
    return (
        f"## Tools\nYou have access to the following tools:\n\n{listed}"
        "IMPORTANT: To use tools, write exactly this:\n"
        f"{_CALLS}{_CALL}tool_call_name{_SEP}tool_call_arguments{_CALL_END}{_CALLS_END}\n\n"
        "Where:\n\n"
        "- `tool_call_name` is the name of one of these tools\n"
        "- `tool_call_arguments` is JSON that follows its Parameters\n"
        "- several calls follow one another without anything between them"
    )


def _render_calls(calls: Sequence[ToolCall]) -> str:
    rendered = [f"{_CALL}{call.name}{_SEP}{render_spaced_json(call_arguments(call))}{_CALL_END}" for call in calls]
    return f"{_CALLS}{''.join(rendered)}{_CALLS_END}" if rendered else ""


DEEPSEEK_TEXT = TextFormat(
    name="deepseek-text",
    title="DeepSeek V3 to V4: special tokens and JSON, or elements",
    openers=(token_opener(_OPENING, _Call), _DSML.opener),
    markers=(
        *_token_variants("calls", "begin"),
        *_token_variants("sep"),
        *_tag_variants("<DSMLinvoke "),
        *_tag_variants("<DSMLfunction_calls>"),
    ),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=lambda results: "".join(f"{_OUTPUT}{result.text}{_OUTPUT_END}" for result in results),
    provider="deepseek",
    eos_tokens=tuple(f"<{bar}end{gap}of{gap}sentence{bar}>" for bar, gap in product((_BAR, "|"), (_GAP, "_"))),
)
