"""`segue.convert`: convert a request body of any API to any other."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_type_hints

import msgspec

from segue._literals import Api, Profile, ToolFormat
from segue.canonical.call_history import CallHistory
from segue.canonical.ids import short_hash
from segue.canonical.json import encode_json, parse_json_object, reject_duplicate_key
from segue.canonical.request import Request
from segue.canonical.type_warmup import warm_type
from segue.coerce import Body, choose_api, drop_mark, parse_loosely, wrap_messages
from segue.conversion.body import find_values, is_unchanged
from segue.conversion.convert import ConvertJob, RenderedBody, convert_request, report_foreign_model
from segue.conversion.sent import SentSettings, encode_fingerprint
from segue.conversion.sessions import conversations, convert_bytes
from segue.errors import InputError, format_count, require_string
from segue.render.constraints import HostedPolicy, IdPolicy, OrphanPolicy, PendingPolicy, Policy, ReasoningPolicy
from segue.render.reasoning_prefix import digest_transcript
from segue.render.report import Report
from segue.render.transcript import Transcript
from segue.wire.base import Fetch, Wire, validate_fetch
from segue.wire.limits import DEFAULT_LIMITS, ReplyLimits, require_limits
from segue.wire.registry import WIRES, find_wire, find_wire_or_server

if TYPE_CHECKING:
    from segue._stream import ReplyStream
    from segue.reply import ReplyOptions, SentRequest


class Converted:
    """A converted body and its report. `reply` and `stream` convert the provider's reply back to the source API.

    `report` lists what was changed or dropped. `reply_report` is the report of the last `reply`.
    """

    def __init__(
        self,
        source: Wire,
        target: Wire,
        report: Report,
        *,
        sent_request: Callable[[], SentRequest],
        body: dict[str, Any] | None = None,
        data: bytes | None = None,
        shared_body: dict[str, Any] | None = None,
        transcript: Transcript | None = None,
    ) -> None:
        """One of `body`, `data` and `shared_body` is required; `body` and `data` are computed on first access.

        So is `sent_request`. The caller gets a copy of the `shared_body`.
        """
        self.report: Report = report
        self.reply_report: Report | None = None
        self._source = source
        self._target = target
        self._build_sent_request = sent_request
        self._shared_body = shared_body
        self._transcript = transcript
        if body is not None:
            self.body = body
        if data is not None:
            self.data = data

    def __repr__(self) -> str:
        return f"<Converted {self.source} → {self.target}: {format_count(len(self.report.findings), 'finding')}>"

    @property
    def source(self) -> str:
        """The API of the given body."""
        return self._source.name

    @property
    def target(self) -> str:
        """The API that the body was converted to."""
        return self._target.name

    @cached_property
    def data(self) -> bytes:
        """The body as JSON."""
        return encode_json(self._shared_body if self._shared_body is not None else self.body)

    @cached_property
    def body(self) -> dict[str, Any]:
        """The body as a dict, decoded on first access."""
        return parse_json_object(self.data)[0]

    @cached_property
    def _sent_request(self) -> SentRequest:
        return self._build_sent_request()

    def reply(self, data: Body, *, limits: ReplyLimits = DEFAULT_LIMITS) -> dict[str, Any]:
        """Convert the target's reply to the source API, with the caller's tool names and ids unique in its history.

        Findings are in `reply_report`, and are added to `report`. A reply above the `limits` raises
        `RemoteProtocolError`.
        """
        from segue.reply import read_reply

        require_limits(limits)
        read = read_reply(self._sent_request, data, limits)
        self.reply_report = read.report
        self.report.extend(read.report.findings)
        return read.body

    def reply_data(self, data: Body, *, limits: ReplyLimits = DEFAULT_LIMITS) -> bytes:
        """Convert the target's reply to the source API, as JSON."""
        return encode_json(self.reply(data, limits=limits))

    def stream(self, *, limits: ReplyLimits = DEFAULT_LIMITS) -> ReplyStream:
        """Return a converter for a streamed reply: `feed` takes the target's bytes and returns bytes for the caller."""
        return _open_stream(self._sent_request, self.report, limits)


class ConvertedExchange(Converted):
    """A converted body, with what an exchange over HTTP needs besides."""

    def prepare_reply(self, options: ReplyOptions) -> SentRequest:
        """Return the sent request for `read_reply` and `open_stream`, with the options of the exchange."""
        return msgspec.structs.replace(self._sent_request, options=options)

    def digest_prefix(self) -> str | None:
        """Return the digest of the prompt that reasoning in the reply is bound to; None if it is not bound."""
        transcript = self._transcript
        if transcript is None or transcript.constraints.reasoning_binding != "prefix":
            return None
        return digest_transcript(transcript)

    def open_stream(self, sent: SentRequest, limits: ReplyLimits = DEFAULT_LIMITS) -> ReplyStream:
        """Return a converter for the streamed reply to a sent request of `prepare_reply`."""
        return _open_stream(sent, self.report, limits)


def _open_stream(sent: SentRequest, report: Report, limits: ReplyLimits) -> ReplyStream:
    from segue._stream import ReplyStream

    require_limits(limits)
    # The turn key differs for each request, so that ids do not repeat those of earlier replies.
    return ReplyStream(sent, report, turn_key=f"turn-{short_hash(sent.reply_key, 16)}", limits=limits)


def convert(
    body: Body,
    *,
    target: Api,
    source: Api | None = None,
    model: str | None = None,
    profile: Profile | str | None = None,
    tool_format: ToolFormat = "auto",
    fetch: Fetch | None = None,
    ids: IdPolicy = "auto",
    reasoning: ReasoningPolicy = "native",
    hosted: HostedPolicy = "pair",
    pending: PendingPolicy = "complete",
    orphans: OrphanPolicy = "text",
    policy: Policy | None = None,
) -> Converted:
    """Convert a request body to a body that another API accepts. The report lists every change.

    Without `source`, the API is detected by the body's shape, then by its model name. `model` is the target's model;
    without it, the model in the body is kept same-API and dropped cross-API. `profile` names a server with its own
    rules for the API, such as `vllm` or `deepseek-responses`. A bare list of messages is accepted too. A `policy` has
    the values of `ids` to `orphans`.
    """
    require_string(target, "target")
    require_string(model, "model", required=False)
    require_string(tool_format, "tool_format")
    validate_fetch(fetch)
    given, changes = drop_mark(body)
    if source is not None:
        source = choose_api(source, given, None, argument="source")
    body = wrap_messages(given, source)
    target_row = find_wire_or_server(choose_api(target, body, source), profile, argument="target")
    job = ConvertJob(
        target=target_row,
        source=None if source is None else find_wire(source, argument="source"),
        base_wire=WIRES[target_row.name],
        model=model,
        tool_format=tool_format,
        policy=build_policy(policy, ids=ids, reasoning=reasoning, hosted=hosted, pending=pending, orphans=orphans),
        fetch=fetch,
    )
    try:
        converted = convert_job(body, job)
    except InputError:
        loose, more = parse_loosely(given, source)
        if not more:
            raise
        converted, changes = convert_job(loose, job), (*changes, *more)
    for change in changes:
        converted.report.add("adjusted", change)
    if model is not None:
        report_foreign_model(model, target_row, converted.report)
    return converted


class DecodedBody(NamedTuple):
    """A body that is decoded and parsed already: the value, the number of replaced surrogates, and the request."""

    value: dict[str, Any]
    surrogates: int
    request: Request


def convert_job(body: Body, job: ConvertJob, decoded: DecodedBody | None = None) -> ConvertedExchange:
    """Convert a request body: what `convert` does after it has validated its arguments.

    `decoded` is the same body as `job.source` parses it.
    """
    encoded = bytes(body) if isinstance(body, bytes | bytearray) else None
    continued = convert_bytes(encoded, job) if encoded is not None else None
    if continued is not None:
        return ConvertedExchange(
            continued.source,
            job.target,
            continued.report,
            sent_request=partial(
                _make_sent_request,
                continued.source,
                job,
                continued.sent_settings,
                continued.history,
                continued.fingerprint,
            ),
            transcript=continued.transcript,
            data=continued.data,
        )
    value, surrogates, *_ = decoded or parse_json_object(body)
    conversion = convert_request(
        value, job, replaced_surrogates=surrogates, parsed=None if decoded is None else decoded.request
    )
    reject_duplicate_key(body, conversion.source.conversation_key)
    is_remembered = encoded is not None and not surrogates and conversations.add(encoded, conversion, job)
    rendered = conversion.rendered
    is_given = encoded is not None and not surrogates and is_unchanged(rendered.body, value) and find_values(encoded)
    return ConvertedExchange(
        conversion.source,
        job.target,
        rendered.report,
        sent_request=partial(_build_sent_request, conversion.source, job, conversion.request, rendered),
        transcript=conversion.transcript,
        data=encoded if is_given else None,
        body=None if is_remembered else rendered.body,
        shared_body=rendered.body if is_remembered else None,
    )


def _build_sent_request(source: Wire, job: ConvertJob, request: Request, rendered: RenderedBody) -> SentRequest:
    """Return what the reply to a body needs that was converted whole."""
    key = job.target.conversation_key
    settings = SentSettings(
        request, rendered.names, {name: rendered.body[name] for name in rendered.body if name != key}
    )
    history = CallHistory(lambda: request.messages, calls=rendered.calls)
    return _make_sent_request(source, job, settings, history, encode_fingerprint(rendered.body.get(key)))


def _make_sent_request(
    source: Wire, job: ConvertJob, settings: SentSettings, history: CallHistory, fingerprint: bytes
) -> SentRequest:
    from segue.reply import SentRequest

    reply_key = settings.build_reply_key(fingerprint)
    return SentRequest(
        job.target, settings.request, settings.names, settings.model, job.tool_format, source, reply_key, history
    )


def build_policy(policy: Policy | None = None, **values: str) -> Policy:
    """Return the policy with these values, or the one given whole; raise `InputError` for an invalid one."""
    if policy is not None:
        if not isinstance(policy, Policy):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"a `Policy` was expected, not {type(policy).__name__}", path="policy")
        default = Policy()
        for name, value in values.items():
            if value != getattr(default, name):
                raise InputError("`policy` has a value for it; pass one of the two", path=name)
        return policy
    try:
        return msgspec.convert(values, warm_type(Policy))
    except msgspec.ValidationError as error:
        name = str(error).partition(" - at `$.")[2].rstrip("`")
        allowed = get_args(get_type_hints(Policy)[name])
        raise InputError(f"{values[name]!r} is not one of {', '.join(allowed)}", path=name) from None
