"""`RenderTarget`: the target of a render with its settings."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from segue.canonical.blocks import Origin
from segue.canonical.request import Request
from segue.conversion.convert import RenderedBody, RenderState, render_for
from segue.conversion.segments import RenderedPrefix
from segue.models import is_alias, parse_model, resolve_alias
from segue.render.constraints import Policy
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.base import Fetch, Wire
from segue.wire.registry import WIRES
from segue.wire.text.names import TEXT_FORMAT_NAMES

_DEFAULT_POLICY = Policy()


class RenderTarget(msgspec.Struct, frozen=True):
    """The target of a render and its settings."""

    wire: Wire
    model: str | None
    resolved_model: str | None
    tool_format: str
    policy: Policy
    fetch: Fetch | None

    @classmethod
    def choose(
        cls,
        request: Request,
        wire: Wire,
        model: str | None,
        origins: Iterable[Origin],
        *,
        tool_format: str = "auto",
        policy: Policy = _DEFAULT_POLICY,
        fetch: Fetch | None = None,
    ) -> RenderTarget:
        """Return the target for a conversation; without `model`, the request's own where the provider is the same.

        `origins` are those of all replies, newest first: the model of one of them may be the one that `model` is an
        alias of.
        """
        source = WIRES.get(request.native.api) if request.native is not None else None
        if model is None and source is not None and source.provider == wire.provider:
            model = request.model
        resolved: str | None = None
        if model is not None and is_alias(model):
            recorded = (origin.model for origin in origins if origin.provider == wire.provider)
            resolved = next((name for name in recorded if name and resolve_alias(model, name) == name), None)
        return cls(wire, model, resolved, tool_format, policy, fetch)

    def __hash__(self) -> int:
        return hash((self.wire.name, self.model, self.tool_format, self.policy))

    @property
    def rules_model(self) -> str:
        """The model whose rules apply."""
        return self.resolved_model or self.model or self.wire.default_model

    def can_extend(self, request: Request) -> bool:
        """Return whether a rendered prefix can be extended.

        Not where the provider holds earlier messages, the response format adds instructions to the messages, or what is
        sent of a reply depends on whether it is the newest. Nor where reasoning is bound to its prefix and calls are
        text: that text is another prefix.
        """
        if request.continues or request.options.response_format is not None:
            return False
        constraints = self.wire.constraints(parse_model(self.rules_model))
        if constraints.reasoning_replay == "newest" and _is_same_api(request, self.wire):
            return False
        return self.tool_format not in TEXT_FORMAT_NAMES or constraints.reasoning_binding != "prefix"

    def start_prefix(self, request: Request) -> RenderedPrefix:
        """Return an empty prefix of a conversation with this request."""
        constraints = self.wire.constraints(parse_model(self.rules_model))
        is_open = constraints.open_exchange_needs_reasoning and request.options.reasoning is not None
        is_bound = constraints.reasoning_binding == "prefix"
        return RenderedPrefix.start(
            request,
            self.render,
            self.wire.conversation_key,
            same_api=_is_same_api(request, self.wire),
            drops_blank_results=self.tool_format in TEXT_FORMAT_NAMES,
            reads_first_turn=is_open or is_bound or constraints.reasoning_required_on_text,
        )

    def render(
        self, request: Request, report: Report, state: RenderState | None = None
    ) -> tuple[Transcript, RenderedBody]:
        return render_for(
            request,
            self.wire,
            report,
            self.policy,
            model=self.model,
            resolved_model=self.resolved_model,
            tool_format=self.tool_format,
            fetch=self.fetch,
            state=state,
        )


def _is_same_api(request: Request, wire: Wire) -> bool:
    return request.native is not None and request.native.api == wire.name
