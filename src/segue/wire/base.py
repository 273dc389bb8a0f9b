"""The `Wire` struct: everything segue implements for one API.

`parse_*` functions come in, `render_*` functions go out. A dialect is another `Wire` value with the same functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec import Struct, field

from segue.canonical.blocks import Native
from segue.canonical.request import Finish, Reply, Request
from segue.error_kinds import ErrorKind
from segue.errors import InputError, SegueError
from segue.models import Model
from segue.render.constraints import Constraints
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.error_forms import ErrorForms
from segue.wire.http_form import HttpForm
from segue.wire.ids import IdMap, IdScheme
from segue.wire.names import NameMap, NameRule

if TYPE_CHECKING:
    from segue.wire.stream.parse import StreamParser
    from segue.wire.stream.render import StreamRenderer

JsonObject = dict[str, Any]
_RANDOM_ID = re.compile(r"(?:[^A-Za-z0-9]*[A-Za-z0-9]){16}")
ReasoningPlace = Literal[
    "signature",  # each block of reasoning has a signature
    "encrypted",  # each item of reasoning has encrypted content
    "call",  # a call has the signature of the reasoning before it
]
Fetch = Callable[[str], tuple[bytes, str]]
"""Returns the bytes and the media type of a URL. The core never fetches anything itself."""


def validate_fetch(fetch: object) -> None:
    """Raise `InputError` for a `fetch` that is not a function; None is allowed."""
    if fetch is not None and not callable(fetch):
        raise InputError("a function that takes a URL was expected", path="fetch")


def guard_fetch(fetch: Fetch) -> Fetch:
    """Return a function that calls `fetch`, and raises `InputError` if that fails or returns other values."""

    def guarded(url: str) -> tuple[bytes, str]:
        try:
            fetched: Any = fetch(url)
        except SegueError:
            raise
        except Exception as error:
            raise InputError(f"{url!r} was not fetched: {type(error).__name__}: {error}", path="fetch") from error
        match fetched:
            case (bytes() | bytearray() as data, str() | None as mime):
                return bytes(data), cast("str", mime)
            case _:
                message = f"bytes and a media type were expected for {url!r}, not {type(fetched).__name__}"
                raise InputError(message, path="fetch")

    return guarded


class RenderContext(Struct, frozen=True):
    """The values that render functions share: projected ids and tool names, the report, and the caller's `fetch`.

    `request` is the one that a reply belongs to, without its messages, where it is available.
    """

    ids: IdMap
    names: NameMap
    report: Report
    fetch: Fetch | None = None
    request: Request | None = None


class WireContext:
    """What the render functions of one wire share; a wire adds its own state. `api` is that of its own fragments."""

    def __init__(self, context: RenderContext, api: str) -> None:
        self.api = api
        self.ids = context.ids
        self.project_name = context.names.render
        self.report = context.report
        self.fetch = context.fetch

    def own_native(self, native: Native | None) -> Native | None:
        """Return the native fragment if it belongs to this API."""
        return native if native is not None and native.api == self.api else None


class ApiError(Struct, frozen=True):
    """A provider's error, independent of the API."""

    status: int
    message: str
    kind: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None
    details: tuple[JsonObject, ...] = ()
    """The provider's own list of problems, where it sends one."""
    error_kind: ErrorKind | None = None
    """The kind, once it is known."""
    wait: float | None = None
    """The seconds after which the provider accepts the request again, where it names them."""


def is_random_id(reply_id: str, _request: Request) -> bool:
    """Return whether an id is long enough to be random: servers also send short constants or counters."""
    return _RANDOM_ID.match(reply_id) is not None


class BodyTool(Struct, frozen=True):
    """A hosted tool that is a field of the body, not an entry of `tools`.

    The field `key` holds the tool's options. If `options_key` is set, that key holds the options and `key` is true.
    """

    key: str
    options_key: str | None = None
    with_functions: bool = True
    """Whether the tool is known to work together with function tools."""


class CompactionThreshold(Struct, frozen=True):
    """A request to compact a conversation that has more tokens; with `pauses`, without answering then."""

    tokens: int
    pauses: bool = False
    instructions: str = ""


class CompactionForm(Struct, frozen=True):
    """How the bodies and replies of an API hold a compaction: what stands for the history before it."""

    types: frozenset[str]
    """The types of its items or blocks."""
    content_keys: tuple[str, ...]
    """The fields with its content: compactions with equal ones are the same."""
    reply_items: Callable[[JsonObject], list[JsonObject]]
    """Returns the items of a reply as they are in the next request."""
    trigger: str | None = None
    """The type of the item that asks for one; it is the last of the conversation."""
    request_key: str | None = None
    """The key of the body whose object asks for one."""
    make: Callable[[str, str, str], JsonObject] = field(default=lambda _key, _text, _envelope: {})
    """Returns one that segue made, given a key that is unique for each request, the summary and its envelope."""
    threshold_key: str = "context_management"
    """The key of the body that may have a threshold."""
    find_threshold: Callable[[Any], CompactionThreshold | None] = field(default=lambda _value: None)
    """Returns the threshold in the value of that key."""
    finish: Finish = "stop"
    """Why a reply ends that is a compaction alone."""
    empty_code: str | None = None
    """The code of the error for a conversation that has nothing to compact."""
    in_messages: bool = False
    """Whether it is a block in a message, and not an item of its own."""


class Wire(Struct, frozen=True):
    """One API: a row of the registry.

    `constraints` returns the row for a model; `default_model` is used where a body names none.
    """

    name: str
    kind: Literal["wire", "dialect", "server"]
    """`server`: a server profile. Its `name` is that of the API, `profile` is its own."""
    provider: str
    title: str
    default_model: str
    tool_format: str
    path: str
    """The path of a request below the base URL; `{model}` stands for the model name."""
    constraints: Callable[[Model], Constraints]
    id_scheme: Callable[[Model], IdScheme]
    name_rule: Callable[[Model], NameRule]
    parse_request: Callable[[Mapping[str, Any]], Request]
    render_request: Callable[[Transcript, RenderContext], JsonObject]
    render_items: Callable[[Transcript, RenderContext], list[JsonObject]]
    """Renders the conversation alone. The context has the names that `render_request` gave to tools and parameters."""
    parse_reply: Callable[[Mapping[str, Any]], Reply]
    render_reply: Callable[[Reply, RenderContext], JsonObject]
    open_stream: Callable[[str], StreamParser]
    """Returns a parser for the stream of one reply; the turn key is part of the canonical ids of its calls."""
    stream_renderer: Callable[[RenderContext, str | None], StreamRenderer]
    """Returns a renderer for the stream of one reply. The arguments are the context and the model name for a reply
    without one."""
    parse_error: Callable[[int, Mapping[str, Any]], ApiError]
    render_error: Callable[[ApiError], JsonObject]
    error_forms: ErrorForms
    """How clients of this API get each kind of error."""
    body_keys: frozenset[str]
    """The keys of a body that have a canonical field; any other key is sent same-API only."""
    item_keys: frozenset[str]
    """The same for messages, blocks and calls."""
    tool_keys: frozenset[str]
    """The same for declarations of functions and free-text tools."""
    typed_keys: Callable[[Mapping[str, Any]], frozenset[str] | None] = lambda _item: None
    """Returns all keys of an item by its type, also those in its objects, which its API has: of a call or result of a
    hosted tool, of an approval, of declared tools, and of others the keys in their objects. None for an unknown one."""
    make_reply_id: Callable[[str], str] = str
    """Returns a reply id in the form of this API, made from a key that is unique for each request."""
    keeps_reply_id: Callable[[str, Request], bool] = is_random_id
    """Whether a same-API reply to this request keeps this id of the provider. Any other reply gets a made one."""
    invalid_json_arguments: bool = False
    """Whether arguments are text that may be invalid JSON, which clients of this API validate."""
    custom_tools: bool = False
    """Whether the API has custom tools (free-text input)."""
    message_names: bool = False
    """Whether a message may have the name of its author."""
    refusals: bool = False
    """Whether a refusal of another API is rendered as one."""
    vendor_options: Mapping[str, str] = {}
    """Options that only the provider's own APIs share, by name, with the key each has in this API."""
    meaningful_when_false: frozenset[str] = frozenset()
    """Keys of a body whose value `false` is not the default, so that dropping it must be reported."""
    default_values: Mapping[str, Any] = {}
    """Keys of a body without a canonical field, and the value that means the same as no value."""
    unique_call_ids: bool = False
    """Whether the provider rejects a call id that an earlier call has, so that an item depends on the ids before it."""
    profile: str | None = None
    """The name of the server profile; None for a provider's own API."""
    served_model: str | None = None
    """For a server profile: the model whose rules apply to names of no known family."""
    serving: Callable[[str], Wire] | None = None
    """For a server profile: return its row with a `served_model`."""
    on: str | None = None
    """The wire that a dialect is a variant of."""
    families: tuple[str, ...] = ()
    """Model families whose own API this is."""
    serves_any_model: bool = False
    """Whether servers of other vendors implement this API under its own name."""
    text_part_type: str | None = "text"
    """The type of a text among the parts of a message; None if parts have no type."""
    served_families: frozenset[str] | None = None
    """All model families that the provider serves; None if it serves any."""
    base_path: str = ""
    """The path of the provider's base URL."""
    stream_path: str | None = None
    """The path of a request for a stream; None if a field of the body selects streaming."""
    stream_fields: Mapping[str, Any] = field(default_factory=lambda: {"stream": True})
    """The fields of a body that select a stream with its usage, where no path does."""
    key_header: str = "authorization"
    """The header of the API key; in `authorization` it is a bearer token."""
    model_key: str = "model"
    """The key of a body that names the model."""
    http: HttpForm = HttpForm()
    """How it is used over HTTP."""
    stateless_fields: Mapping[str, Any] = {}
    """The fields of a body for which the provider stores nothing, where it would by default."""
    cache_marker: Literal["cache_control", "cachePoint"] | None = None
    """The key that marks content to be cached; None if there are no markers."""
    client_agent: str | None = None
    """What the user agents of the vendor's own clients contain, where their path is that of the API it is on."""
    tool_formats: frozenset[str] | None = None
    """The tool formats that the API accepts besides text tool formats; None for those of all APIs on the same wire."""
    tool_format_ids: IdScheme | None = None
    """The id scheme that this API's tool format also requires on other APIs; None if those keep their own ids."""
    reasoning_place: ReasoningPlace | None = None
    """The field for opaque data of reasoning that clients of this API send back; None if there is none."""
    compaction: CompactionForm | None = None
    """How the API compacts a conversation; None if it does not."""
    body_tool: BodyTool | None = None
    """The hosted tool that a field of the body declares."""
    conversation_key: str = "messages"
    """The key of a body that holds its messages."""
    volatile_field: str | None = None
    """A key whose value, an object, clients change with each request. Same-API it is sent as it is, and no other API
    has it: cross-API it only causes a finding."""

    @property
    def base_api(self) -> str:
        """The API whose body shape this one has: its own, or that of the wire it is a variant of."""
        return self.on or self.name
