"""The frame of a target body: everything but the conversation, made by the full pipeline from a sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw, Struct

from segue.canonical.jsontext import write
from segue.canonical.plain import NotPlainError, Plain, Turn, name_calls
from segue.carry import Asked, Carried, carry
from segue.express.account import Account, account_of
from segue.express.body import Body, lane_of
from segue.express.sample import Shape, causes_of, last_words, sample_places, shapes_of
from segue.render.answers import names_json
from segue.render.plain import Ways, tell
from segue.render.reasoning_asked import PLACEHOLDER
from segue.wire.idmap import IdMap
from segue.wire.lane import Lane
from segue.wire.names import NameMap
from segue.wire.server_tools.declare import is_deferred

__all__ = ["Frame", "frame_of"]

# How many frames are cached, and the size limit of a cached one.
_REMEMBERED = 32
_MOST = 131_072
# With more tools it may matter which were called: those come first where not all can be declared.
_FEW_TOOLS = 64


class Frame(Struct, frozen=True):
    """The target body without its conversation; `system_items` is system text before it in the same list.

    `verified` are the shapes of events, and their traits, that the fast path renders as the full pipeline does.
    """

    lane: Lane
    body: dict[str, Any]
    head: list[Raw]
    ways: Ways
    ids: IdMap
    names: NameMap
    account: Account
    tools: int
    proven: set[object]


class _Memory:
    """A cache entry for one combination of terms."""

    __slots__ = ("frame",)

    def __init__(self) -> None:
        self.frame: Frame | None = None


@lru_cache(maxsize=_REMEMBERED)
def _remembered(*_terms: object) -> _Memory:
    return _Memory()


def frame_of(whole: Plain, body: Body, asked: Asked) -> Frame:
    shapes = shapes_of(whole)
    head = write(body.items[: whole.head]) if whole.head else b""
    small = sum(map(len, body.rest.values())) + len(head) < _MOST
    memory = _remembered(*_terms(body, asked), head, *_marks(whole, shapes)) if small else _Memory()
    frame = memory.frame
    if frame is None or not frame.proven.issuperset(shapes):
        frame = memory.frame = _asked(whole, shapes, body, asked, frame.proven if frame is not None else set())
    names = set(whole.names)
    if any(frame.names.render(name) != name for name in names) or (frame.tools > _FEW_TOOLS and len(names) > 1):
        raise NotPlainError
    return frame


class _Same:
    """A hashable key that compares by identity."""

    __slots__ = ("thing",)

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


def _terms(body: Body, asked: Asked) -> tuple[object, ...]:
    wires = (_Same(body.source), _Same(asked.target), asked.source is None)
    return (*wires, asked.model, asked.tool_format, asked.policy, *body.rest, *body.rest.values())


def _marks(whole: Plain, shapes: Iterable[Shape]) -> tuple[object, ...]:
    """Return the properties of a conversation that the frame or the kinds of findings depend on."""
    events = whole.events
    last = events[-1]
    ends = (events[0], last, events[min(last_words(events) + 1, len(events) - 1)])
    kinds = [isinstance(event, Turn) and event.start < event.stop for event in ends]
    last_character = last.content[-1:] if isinstance(last.content, str) else (last.content or [""])[-1][-1:]
    opening = events[0].content
    first = opening if isinstance(opening, str) else "\n".join(opening or ())
    dropped = [key for key, count in whole.unsaid.items() if count]
    causes = map(any, zip(*map(causes_of, shapes), strict=True))
    return (*map(type, ends), *kinds, last_character.isspace(), names_json(first), *causes, *dropped)


def _asked(whole: Plain, shapes: Mapping[Shape, int], body: Body, asked: Asked, proven: set[object]) -> Frame:
    """Convert a sample by the full pipeline, and check that the fast path renders it the same."""
    places, shown = sample_places(whole, shapes, len(body.items), proven)
    items = [body.items[place] for place in places]
    given = msgspec.to_builtins(items) if body.own is None else [body.own[place] for place in places]
    conversion = carry(body.around(given), asked)
    if conversion.source is not body.source or not body.lane.suits(conversion.request):
        raise NotPlainError
    # Which deferred tools are loaded depends on the calls, and a sample does not have all calls.
    if body.own is None and any(map(is_deferred, conversion.request.tools)):
        raise NotPlainError
    sample = body.lane.read(items)
    name_calls(sample, body.source.provider)
    sample.sent_ids = conversion.said.ids.anew().assign_plain(sample, body.source.provider)
    template = account_of(sample, conversion, asked.target)
    fast_path, rendered = lane_of(asked.target), conversion.said
    options = _ways(whole, conversion)
    expected: list[Any] = rendered.body[fast_path.key]
    actual = fast_path.write(sample, tell(sample, options), options) if body.own is None else given
    head = len(expected) - len(actual)
    if head < 0 or write(actual) != write(expected[head:]) or not all(map(_is_system, expected[:head])):
        raise NotPlainError
    finished = {key: Raw(b"" if key == fast_path.key else write(value)) for key, value in rendered.body.items()}
    return Frame(
        fast_path,
        finished,
        [Raw(write(item)) for item in expected[:head]],
        options,
        rendered.ids,
        rendered.names,
        template,
        len(conversion.request.tools),
        proven | shown,
    )


def _is_system(item: dict[str, Any]) -> bool:
    return item.get("role") in ("system", "developer")


def _ways(whole: Plain, carried: Carried) -> Ways:
    constraints, last = carried.transcript.demands, whole.events[-1]
    return Ways(
        constraints,
        carried.said.report.id_scheme,
        placeholders=any(finding.message == PLACEHOLDER for finding in carried.said.report.findings),
        tail=constraints.ending != "free" and isinstance(last, Turn) and last.start == last.stop,
    )
