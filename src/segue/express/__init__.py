"""The express lane: a plain conversation, read typed and written typed, without the long way's twenty passes.

There is one meaning, and the long way has it. So the lane asks it: a *sample* of the conversation, one event of each
kind that occurs, goes the long way together with everything in the body that is not conversation. What comes back
gives the finished body around the conversation (model, system, tools, options) and the findings of the report. The
lane writes the sample, too, and only if both are the same to the byte does it write the whole. At home the sample must
come back as it went. What was the same once under the same terms is not tried again. Whatever is not plain, and any
doubt, is the long way's business.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from segue.canonical.jsontext import MAX_DEPTH, depth_of, write, write_large
from segue.canonical.plain import NotPlain, Plain, Turn, name_calls
from segue.carry import Asked, Carried, carry
from segue.errors import SegueError
from segue.express.account import is_placeholder, tell_of_all
from segue.express.sample import sample_places
from segue.render.plain import tell
from segue.render.report import Report
from segue.wire.base import Wire
from segue.wire.detect import detect_source
from segue.wire.lane import Lane, members_of
from segue.wire.names import NameMap
from segue.wire.registry import WIRES

__all__ = ["Express", "express"]

# Less than this is carried sooner than it is looked at.
_LEAST = 8192
_FEW_TOOLS = 64
_untyped = msgspec.json.Decoder()


# Under which terms the lane was found to say the same as the long way, and of what.
_proven: dict[tuple[object, ...], set[object]] = {}
_TERMS = 256


class Express(Struct, frozen=True):
    """What the lane made of a body."""

    source: Wire
    data: bytes
    names: NameMap
    report: Report


class _Body(Struct):
    """A body taken apart: the conversation, typed, and the rest. At home also the items as they stand there."""

    source: Wire
    lane: Lane
    items: list[Any]
    rest: dict[str, Any]
    own: list[Any] | None = None


def express(data: bytes, asked: Asked, *, least: int = _LEAST) -> Express | None:
    """The body for the target, or None: then only the long way can tell. `least` 0 tries whatever there is."""
    if len(data) < least:
        return None
    try:
        return _express(data, asked, thrifty=least > 0)
    except (NotPlain, SegueError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _express(data: bytes, asked: Asked, *, thrifty: bool) -> Express:
    body = _taken_apart(data, asked)
    whole = body.lane.read(body.items)
    proven = _proven_by(body, asked)
    places, shown = sample_places(whole, len(body.items), proven)
    if thrifty and 2 * len(places) > len(body.items):
        raise NotPlain
    picked = [body.items[place] for place in places]
    given = msgspec.to_builtins(picked) if body.own is None else [body.own[place] for place in places]
    carried = carry({**body.rest, body.lane.key: given}, asked)
    if carried.source is not body.source:
        raise NotPlain
    sample = body.lane.read(picked)
    for plain in (sample, whole):
        _name(plain, body, carried)
    said = carried.said
    tell_of_all(carried, sample, whole, asked.target)
    if body.own is None:
        said.body.update(_written(sample, whole, carried, asked.target))
    elif write(said.body[body.lane.key]) == write(given):
        said.body[body.lane.key] = body.own
    else:
        raise NotPlain
    proven |= shown
    return Express(body.source, write_large(said.body, len(data)), said.names, said.report)


def _proven_by(body: _Body, asked: Asked) -> set[object]:
    if len(_proven) >= _TERMS:
        _proven.clear()
    wires = (body.source.name, asked.target.name, asked.target.title)
    return _proven.setdefault((*wires, asked.model, str(body.rest.get("model")), asked.tool_format, asked.policy), set())


# ------------------------------------------------------------------------------------------------------- taking apart


def _taken_apart(data: bytes, asked: Asked) -> _Body:
    rest = members_of(data) if asked.source is None else {}
    source = asked.from_wire(asked.source or _likely_source(rest))
    if source is asked.target:
        return _at_home(_untyped.decode(data), source)
    lane = _lane_of(source)
    if asked.source is None:
        items = lane.typed(rest.pop(lane.key, Raw()))
    else:
        items, rest = lane.take_apart(data)
    return _Body(source, lane, items, {key: _shallow(raw) for key, raw in rest.items()})


def _at_home(value: Any, wire: Wire) -> _Body:
    lane = _lane_of(wire)
    if not isinstance(value, dict):
        raise NotPlain
    members = cast("dict[str, Any]", value)
    items = msgspec.convert(members.get(lane.key), lane.items)
    if not lane.goes_home(items):
        raise NotPlain
    for key, item in members.items():
        if key != lane.key and depth_of(write(item)) > MAX_DEPTH // 2:
            raise NotPlain
    return _Body(wire, lane, items, members, members[lane.key])


def _lane_of(wire: Wire) -> Lane:
    if wire.lane is None:
        raise NotPlain
    return wire.lane


def _shallow(raw: Raw) -> Any:
    """The value of what is not nested so deep that the long way would refuse it."""
    if depth_of(data := bytes(raw)) > MAX_DEPTH // 2:
        raise NotPlain
    return _untyped.decode(data)


def _likely_source(members: dict[str, Raw]) -> Wire:
    """The wire that a body seems to be of, its conversation not looked at. The sample will tell."""
    keys = {wire.lane.key for wire in WIRES.values() if wire.lane is not None}
    return WIRES[detect_source({key: [] if key in keys else _shallow(raw) for key, raw in members.items()})]


# ------------------------------------------------------------------------------------------------------------- writing


def _name(plain: Plain, body: _Body, carried: Carried) -> None:
    """Gives the calls their ids. No tool's name may need another spelling."""
    name_calls(plain, body.source.provider)
    names, spell = set(plain.names), carried.said.names.render
    if any(spell(name) != name for name in names):
        raise NotPlain
    # Where there are more tools than a target may be told of, those that were called come first.
    if len(carried.request.tools) > _FEW_TOOLS and len(names) > 1:
        raise NotPlain
    plain.sent_ids = carried.said.ids.anew().assign_plain(plain, body.source.provider)


def _written(sample: Plain, whole: Plain, carried: Carried, target: Wire) -> dict[str, Any]:
    """The conversation in the target's words, behind what the long way put before its sample."""
    lane, demands = _lane_of(target), carried.transcript.demands
    last = whole.events[-1]
    ways = {
        "placeholders": any(map(is_placeholder, carried.said.report.findings)),
        "tail": demands.ending != "free" and isinstance(last, Turn) and last.start == last.stop,
    }
    proof: list[Any] = carried.said.body[lane.key]
    trial = lane.write(sample, tell(sample, demands, **ways))
    head = len(proof) - len(trial)
    if head < 0 or write(trial) != write(proof[head:]):
        raise NotPlain
    if any(item.get("role") not in ("system", "developer") for item in proof[:head]):
        raise NotPlain
    return {lane.key: [*proof[:head], *lane.write(whole, tell(whole, demands, **ways))]}
