"""`llama`: the formats of Llama 3 and 4 (TPL-02). JSON without a tag, and three others.

    {"name": "f", "parameters": {…}}      at the start or on its own line, several separated by `;` or line breaks
    <|python_tag|>f.call(key="value")     a built-in tool of the model; or JSON as above
    <function=f>{…}</function>            Llama 3.1, by some prompts
    [f(key=1), g()]                       Llama 3.2 and 4; the latter also between <|python_start|> and <|python_end|>

Without a tag it is a call only if the tool is declared, or if the declared tools are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from segue.canonical.blocks import ToolCall
from segue.canonical.request import Tool
from segue.wire.text.base import Answered, Found, Lost, Match, Opener, Piece, TextFormat, any_of
from segue.wire.text.loose import JsonScan
from segue.wire.text.pythonic import as_objects
from segue.wire.text.reader import Reader, Reading
from segue.wire.text.spoken import arguments_of, calls_in, function_of, spaced

__all__ = ["LLAMA"]

_PYTHON, _FUNCTION, _FUNCTION_END = "<|python_tag|>", "<function=", "</function>"
_PYTHON_4 = "<|python_start|>"
_ENDS = ("<|python_end|>", "<|eom_id|>", "<|eot_id|>", "<|eom|>", "<|eot|>")
_AN_END = re.compile("|".join(map(re.escape, _ENDS)))
_KEYS = tuple(f"{quote}{key}{quote}" for quote in "\"'" for key in ("name", "type", "function", "id"))
_IDENTIFIER = re.compile(r"(?:[A-Za-z_][\w.-]*+)?")
_IN_TAG = re.compile(r"[^<>\s]*+")
_NAMED = re.compile(r"""[\[{\s]*+["']name["']\s*+:\s*+["']([^"']*+)["']|\[\s*+([A-Za-z_][\w.-]*+)\s*+\(""")
_NEXT = re.compile(r"(?<=\n)[{\[]|<\|python_(?:tag|start)\|>|<function=")
# Without declared tools: certainly a list of calls, even if its values can't be parsed.
_PLAINLY = re.compile(r"\[\s*+[A-Za-z_][\w.-]*+\(\s*+[A-Za-z_]\w*+\s*+=(?!=).*\)\s*+\]", re.DOTALL)
_UNKNOWN = "unknown tool"
# Python code without a tool name goes to the first of these that is declared.
_INTERPRETERS = ("code_interpreter", "ipython", "python")


class _Llama(Reader):
    def objects(self, *, tagged: bool) -> Reading[list[Piece]]:
        """Read consecutive calls up to the end of the message. Without a tag they may turn out to be text."""
        segments: list[Piece] = []
        while True:
            begun = len(self.since(0))
            start = self.mark
            scan = yield from self._begin(tagged=tagged)
            whole = scan is not None and (yield from self.json(scan))
            text = self.since(start)
            found = self._calls(text, tagged=tagged) if whole else "unterminated call"
            if found == _UNKNOWN and not segments and (yield from self._nothing_behind()):
                return [Lost(self.written(), _UNKNOWN, alone=True)]
            if isinstance(found, str):
                behind = begun + (0 if self.ended or scan is None else scan.string_at)
                return [*segments, self._none(found, behind + 1, text, tagged=tagged)]
            more = yield from self.behind()
            segments += [replace(found[0], written=self.written()), *found[1:]]
            if not more:
                return segments

    def _begin(self, *, tagged: bool) -> Reading[JsonScan | None]:
        """Consume just enough to decide whether this may be a call, so that other text is passed on early."""
        opening = yield from self.one_of("{", "[")
        scan = JsonScan("<", calls=opening == "[")
        space = self.mark
        yield from self.space()
        if opening == "{":
            likely = tagged or bool((yield from self.ahead(*_KEYS)))
        elif (yield from self.ahead("{")):
            likely = True
        else:
            name = yield from self.matching(_IDENTIFIER)
            likely = bool(name) and bool((yield from self.ahead("(")))
        if not likely:
            return None
        scan.feed(opening + self.since(space))
        return scan

    def _calls(self, text: str, *, tagged: bool) -> list[Found] | str:
        text = as_objects(text) if text[1:].lstrip()[:1] not in ('"', "'", "{") else text
        found = calls_in(text)
        if isinstance(found, str) or tagged:
            return found
        if not all(self.declared.knows(call.name) for call in found):
            return _UNKNOWN
        return found if self.declared.given or '"parameters"' in text or '"arguments"' in text else "no arguments"

    def _none(self, why: str, behind: int, text: str, *, tagged: bool) -> Piece:
        """A broken call, or plain text.

        Without a tag it is a broken call only if it names a declared tool, or is certainly a list of calls.
        """
        lost = self.lost(why, _NEXT, behind)
        if self.declared.given:
            named = _NAMED.match(text)
            missed = named is not None and self.declared.knows(named[1] or named[2])
        else:
            missed = _PLAINLY.fullmatch(lost.written) is not None
        return lost if tagged or missed else lost.written

    def behind(self) -> Reading[bool]:
        """Consume the EOS tokens, or a separator before another object; return whether an object follows."""
        if (yield from self._message_end()):
            return False
        end = self.mark
        yield from self.space()
        yield from self.one_of(";", ",")
        yield from self.space()
        more = bool((yield from self.ahead("{")))
        if not more:
            self.give_back(end)
        return more

    def _nothing_behind(self) -> Reading[bool]:
        end = self.mark
        yield from self._message_end()
        yield from self.space()
        nothing = yield from self.at_end()
        self.give_back(end)
        return nothing

    def _message_end(self) -> Reading[bool]:
        """Consume the EOS tokens; return whether there are any."""
        ended = False
        while True:
            end = self.mark
            yield from self.space()
            if not (yield from self.one_of(*_ENDS)):
                self.give_back(end)
                return ended
            ended = True


class _Bare(_Llama):
    def read(self) -> Reading[list[Piece]]:
        return (yield from self.objects(tagged=False))


class _Tagged(_Llama):
    def read(self) -> Reading[list[Piece]]:
        tag = yield from self.one_of(_PYTHON, _PYTHON_4, _FUNCTION)
        if tag == _FUNCTION:
            return (yield from self._function())
        yield from self.space()
        if (yield from self.ahead("{", "[")):
            return (yield from self.objects(tagged=True))
        start = self.mark
        name = yield from self.matching(_IDENTIFIER)
        own = name.endswith(".call") or (self.declared.given and self.declared.knows(name))
        if name and own and (yield from self.ahead("(")):
            return (yield from self._python_call(name.removesuffix(".call")))
        return (yield from self._code(start))

    def _python_call(self, name: str) -> Reading[list[Piece]]:
        start = self.mark
        scan = JsonScan("<", calls=True)
        whole = yield from self.json(scan)
        found = calls_in(as_objects(name + self.since(start))) if whole else "unterminated call"
        if isinstance(found, str):
            return [self.lost(found, _NEXT)]
        yield from self._message_end()
        return [replace(found[0], written=self.written())]

    def _code(self, start: int) -> Reading[list[Piece]]:
        """Read code without a tool name, for the code interpreter. Without one the tag is plain text."""
        tool = next((name for name in _INTERPRETERS if self.declared.given and self.declared.knows(name)), None)
        if tool is None or (yield from self.at_end()):
            return [self.lost("no call after the tag")]
        yield from self.until(_AN_END, max(map(len, _ENDS)))
        code = self.since(start)
        yield from self._message_end()
        return [Found(tool, {"code": code}, written=self.written())]

    def _function(self) -> Reading[list[Piece]]:
        name = yield from self.matching(_IN_TAG)
        if not name or not (yield from self.one_of(">")):
            return [self.lost("no tool name")]
        yield from self.space()
        if not (yield from self.ahead("{")):
            return [self.lost("no arguments after the tag")]
        start = self.mark
        whole = yield from self.json(JsonScan("<"))
        text = self.since(start)
        found = calls_in(f'{{"name":{spaced(name)},"arguments":{text}}}') if whole else "unterminated call"
        if isinstance(found, str):
            yield from self.one_of(_FUNCTION_END)
            return [self.lost(found, _NEXT)]
        end = self.mark
        yield from self.space()
        if not (yield from self.one_of(_FUNCTION_END)):
            self.give_back(end)
        yield from self._message_end()
        return [replace(found[0], written=self.written())]


def _bare(_text: str, _place: int, at_line_start: bool, _ended: bool) -> Match:
    return _Bare if at_line_start else "no"


def _render_tools(tools: Sequence[Tool]) -> str:
    listed = "".join(f"{spaced(function_of(tool), indent=4)}\n\n" for tool in tools)
    return (
        "You have access to the following functions. To call a function, please respond with JSON for a function call."
        'Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}.'
        f"Do not use variables.\n\n{listed}"
    ).rstrip()


def _render_calls(calls: Sequence[ToolCall]) -> str:
    return "; ".join(spaced({"name": call.name, "parameters": arguments_of(call)}) for call in calls)


def _render_results(results: Sequence[Answered]) -> str:
    return "\n\n".join(result.text for result in results)


LLAMA = TextFormat(
    name="llama",
    title="Llama 3 and 4: bare JSON, Python lists and tags",
    openers=(any_of((_PYTHON, _PYTHON_4, _FUNCTION), _Tagged), Opener("{[", _bare)),
    markers=(_PYTHON, _PYTHON_4, '"parameters"', "<|eom_id|>"),
    render_tools=_render_tools,
    render_calls=_render_calls,
    render_results=_render_results,
    one_call=True,
    ends=(*_ENDS, "<|end_of_text|>"),
)
