"""What the renderer hands to a wire: a lawful sequence of messages, with the tools and options that go with it."""

from __future__ import annotations

from msgspec import Struct

from segue.canonical.blocks import Message, Text
from segue.canonical.request import Options, Request, Tool
from segue.render.demands import Demands, Policy

__all__ = ["Transcript"]


class Transcript(Struct, frozen=True):
    """Ready to be said. A wire writes it down message by message and decides nothing about interactions.

    `request` is what it was made from: at home its `native` is the body to lay everything over.
    """

    request: Request
    demands: Demands
    policy: Policy
    system: tuple[Text, ...]
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    options: Options
    model: str | None

    @property
    def home(self) -> bool:
        """Whether the request came from the very API that it goes to."""
        return self.request.native is not None and self.request.native.api == self.demands.api
