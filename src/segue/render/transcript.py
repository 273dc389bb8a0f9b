"""The renderer's output: a valid sequence of messages with its tools and options."""

from __future__ import annotations

from msgspec import Struct

from segue.canonical.blocks import Message, Text
from segue.canonical.contents import Contents
from segue.canonical.request import Options, Request, Tool
from segue.render.constraints import Constraints, Policy
from segue.render.prefix_digest import BoundPrefix


class Transcript(Struct, frozen=True):
    """The input of a wire, which encodes it message by message and never drops or reorders interactions.

    `request` is the source: in a same-API render its `native` is the body that all changes are merged into. `model` is
    the name that is sent; if that is an alias, `resolved_model` is the recorded name of the same model.
    """

    request: Request
    constraints: Constraints
    policy: Policy
    system: tuple[Text, ...]
    messages: tuple[Message, ...]
    contents: Contents
    """The contents of `messages`."""
    tools: tuple[Tool, ...]
    options: Options
    model: str | None
    resolved_model: str | None = None
    earlier: BoundPrefix | None = None
    """The messages of earlier renders that `messages` continue, where reasoning is bound to them."""
    has_stale_reasoning: bool = False
    """Whether reasoning was dropped because its prefix has changed."""

    @property
    def rules_model(self) -> str | None:
        """The model whose rules apply."""
        return self.resolved_model or self.model

    @property
    def is_same_api(self) -> bool:
        """Whether source and target API are the same."""
        return self.request.native is not None and self.request.native.api == self.constraints.api
