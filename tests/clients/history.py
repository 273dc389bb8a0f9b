"""`ExpectedHistory`: what the first request of a resumed client must contain of the session so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from segue.canonical.blocks import Media, ToolCall, ToolResponse, text_of
from segue.canonical.request import Request


class ExpectedHistory:
    """Prompts, calls, and other texts of a session.

    A call is a pair of a word in its arguments and a word in its result, None for a picture. `gone` are texts that a
    compaction has replaced.
    """

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.calls: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.gone: list[str] = []

    def compact(self, request: Request, summary: str) -> Iterator[str]:
        """Expect what the client itself sent after its compaction. Yield what is wrong with that.

        Of the calls it sent the last ones, or none.
        """
        everything = all_text(request)
        sent = [_arguments(call) for call, _ in pair_calls(request)]
        kept = self.calls[len(self.calls) - len(sent) :] if len(sent) < len(self.calls) else []
        words = [*self.prompts, *(result for _, result in self.calls if result)]
        self.gone = [word for word in words if word not in everything]
        self.prompts = [prompt for prompt in self.prompts if prompt in everything]
        if len(kept) != len(sent) or not self.gone:
            yield "the client did not compact its session"
        if not all(word in arguments for (word, _), arguments in zip(kept, sent, strict=False)):
            yield "the client did not keep its last calls"
        if summary not in everything:
            yield "the client does not send its summary"
        self.calls, self.texts = kept, [*self.texts, summary]

    def judge(self, request: Request, *, picture_in_result: bool) -> Iterator[str]:
        """Yield what is missing in a request, or should not be in it."""
        text, everything = request_text(request), all_text(request)
        yield from (f"the prompt {prompt!r} is missing" for prompt in self.prompts if prompt not in text)
        yield from (f"the text {expected!r} is missing" for expected in self.texts if expected not in everything)
        yield from (f"{word!r} is from before the compaction" for word in self.gone if word in everything)
        calls = list(pair_calls(request))
        if len(calls) != len(self.calls):
            yield f"{len(calls)} calls, expected {len(self.calls)}"
        has_picture = any(isinstance(block, Media) for message in request.messages for block in message.blocks)
        for (call, response), (word, result) in zip(calls, self.calls, strict=False):
            if word not in _arguments(call):
                yield f"the call {call.name} does not have {word!r}"
            if response is None:
                yield f"the call {call.name} has no result"
            elif result is None:
                is_there = any(isinstance(block, Media) for block in response.content or ())
                if not is_there and (picture_in_result or not has_picture):
                    yield f"the result of {call.name} has no picture"
            elif result not in _result_text(response):
                yield f"the result of {call.name} does not have {result!r}"


def request_text(request: Request) -> str:
    """Return all text of the messages of a request."""
    return "\n".join(text_of(message.blocks) for message in request.messages)


def all_text(request: Request) -> str:
    """Return all text of a request's messages, with the arguments and results of calls."""
    blocks = [block for message in request.messages for block in message.blocks]
    calls = (_arguments(block) for block in blocks if isinstance(block, ToolCall))
    results = (_result_text(block) for block in blocks if isinstance(block, ToolResponse))
    return "\n".join((request_text(request), *calls, *results))


def pair_calls(request: Request) -> Iterator[tuple[ToolCall, ToolResponse | None]]:
    """Yield each call of a request with its result."""
    blocks: Iterable[object] = [block for message in request.messages for block in message.blocks]
    results = {block.call_id: block for block in blocks if isinstance(block, ToolResponse)}
    for block in blocks:
        if isinstance(block, ToolCall):
            yield block, results.get(block.id)


def _arguments(call: ToolCall) -> str:
    return call.arguments_text if call.arguments_text is not None else str(call.arguments)


def _result_text(response: ToolResponse) -> str:
    return text_of(response.content) + str(response.structured)
