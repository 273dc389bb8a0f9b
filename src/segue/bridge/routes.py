"""Routes: the models that a caller's model name stands for, and how an exchange with them is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from segue.bridge.api_paths import ApiPath
from segue.bridge.failover import Preference
from segue.bridge.listings import ModelEntry
from segue.bridge.providers import Endpoint
from segue.render.constraints import Policy

CachePolicy = Literal[
    "auto",  # markers and keys are added where the caller set none
    "keep",  # only what the caller set
]
CountPolicy = Literal["estimate", "upstream"]


_BYTES_PER_TOKEN = 4
# Parts of bodies that show an image, or a request for reasoning, without parsing them.
_IMAGE_MARKS = (b'"image_url"', b'"input_image"', b'"type":"image"', b'"type": "image"', b'"inlineData"', b'"image":{')
_REASONING_MARKS = (b'"thinking"', b'"reasoning_effort"', b'"reasoning":{', b'"thinkingConfig"', b'"thinking_config"')


class RouteQuery(Struct, frozen=True):
    """A caller's request, as far as a route can depend on it. Header names are in lower case."""

    api_path: ApiPath
    model: str | None
    headers: Mapping[str, str]
    body: bytes = b""
    client: str = ""

    @property
    def tokens(self) -> int:
        """The number of tokens, estimated by the size of the body."""
        return len(self.body) // _BYTES_PER_TOKEN

    @property
    def has_images(self) -> bool:
        """Whether the body has an image, by the types of its parts."""
        return any(mark in self.body for mark in _IMAGE_MARKS)

    @property
    def has_reasoning(self) -> bool:
        """Whether the body requests reasoning."""
        return any(mark in self.body for mark in _REASONING_MARKS)


class Route(Struct, frozen=True):
    """The targets of a request in order: each is used if those before fail before any content, or are paused.

    `caller` is the dialect of the caller where its path is that of several (`mistral` on the Chat path). With
    `pass_credentials` the caller's own credentials are sent, but only to the vendor of the caller's API.
    """

    name: str
    targets: tuple[Endpoint, ...]
    caller: str | None = None
    policy: Policy = Policy()
    cache: CachePolicy = "auto"
    token_counting: CountPolicy = "estimate"
    attempts: int = 1
    """How often a request is sent to each target, at most."""
    pass_credentials: bool = False
    has_callers_keys: bool = False
    """Whether the targets' keys are those of the caller, as in a transport: an error about them is the caller's."""
    keeps_model_name: bool = True
    """Whether replies have the model name of the request; otherwise they have that of the provider."""
    is_default: bool = False
    """Whether the name of the request has no route of its own."""
    envelopes: bool = True
    """Whether the reasoning of other APIs is sealed for the caller and restored from what it sends back."""
    prefer: Preference = "first"
    order: Callable[[Sequence[Endpoint], str, int], Sequence[Endpoint]] | None = None
    """Returns the order of the targets for a request, by the digest of its opening and the size of its body."""
    buffer_tool_calls: bool = False
    """Whether a streamed call starts when it is complete: some clients keep a call that was cut off."""


class Router(Struct, frozen=True):
    """Finds the route of a request, and lists the models that a client can use.

    `find` raises `InputError` for a model that has no route.
    """

    find: Callable[[RouteQuery], Route]
    models: Callable[[str], tuple[ModelEntry, ...]] = lambda client: ()
