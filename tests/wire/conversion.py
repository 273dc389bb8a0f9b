"""Converts one body or reply from a wire to the same or another one, with its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from segue.canonical.blocks import Message, calls_of
from segue.canonical.pairing import pair
from segue.canonical.request import Reply
from segue.models import parse_model
from segue.render.constraints import Policy
from segue.render.passes import render
from segue.render.report import Report
from segue.wire.base import RenderContext, Wire
from segue.wire.ids import IdMap
from segue.wire.names import NameMap


def convert_body(
    body: Mapping[str, Any], source: Wire, target: Wire, *, model: str | None = None, fetch=None, **policy: Any
) -> tuple[dict[str, Any], Report]:
    request = source.parse_request(body)
    name = model or (request.model if source is target else None)
    known = parse_model(name or target.default_model)
    report = Report(target=target.name)
    transcript = render(request, target.constraints(known), Policy(**policy), report, model=name)
    names = NameMap(target.name_rule(parse_model(None)))
    ids = IdMap.project(transcript, target.id_scheme(known), names.render)
    return target.render_request(transcript, RenderContext(ids, names, report, fetch)), report


def convert_reply(body: Mapping[str, Any], source: Wire, target: Wire) -> tuple[dict[str, Any], Report]:
    return render_client_reply(source.parse_reply(body), target)


def render_client_reply(reply: Reply, target: Wire) -> tuple[dict[str, Any], Report]:
    """The reply as a client of the target gets it."""
    (message,) = pair([Message("ai", reply.blocks)])
    report = Report(target=target.name)
    names = NameMap(target.name_rule(parse_model(None)))
    ids = IdMap(target.id_scheme(parse_model(target.default_model)), provider=target.provider)
    ids.add_calls(calls_of(message), names.render)
    paired = Reply(
        message.blocks, reply.finish, reply.usage, reply.id, reply.model, reply.stop_sequence, native=reply.native
    )
    return target.render_reply(paired, RenderContext(ids, names, report)), report
