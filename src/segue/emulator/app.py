"""One emulated provider: handles an HTTP request and returns the provider's response.

A request is handled in this order: route, key, injected faults, JSON, conformance rules, signatures, model, reply
in the API's format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from http import HTTPStatus
from time import monotonic
from typing import Any, NamedTuple

import msgspec

from segue import conformance
from segue.canonical.blocks import Thinking
from segue.canonical.json import parse_json_object
from segue.canonical.request import Request
from segue.conformance.rule import Verdict, Violation
from segue.emulator import errors
from segue.emulator.faults import Fault, FaultPlan, cut_arguments, repeat_ids
from segue.emulator.http_messages import HttpRequest, HttpResponse, RecordedRequest, RequestLog
from segue.emulator.model.script import fill_placeholders
from segue.emulator.prompt_cache import PromptCache, count_prompt, split_prompt
from segue.emulator.providers.provider import Operation, Provider, RequestContext, Route
from segue.emulator.reply import ReplyBuilder, render_reply_body, stream_response, whole_response
from segue.emulator.signatures import IdGenerator, digest
from segue.emulator.steps import ErrorStep, ReplySteps, ScriptFunction, TextStep, WaitStep
from segue.errors import InputError
from segue.wire.base import ApiError
from segue.wire.registry import SERVERS

# APIs that send arguments as an object: in every reply, or at least in replies that are not streamed.
_OBJECT_ARGUMENTS = frozenset({"gemini"})
_OBJECT_ARGUMENTS_UNSTREAMED = frozenset({"gemini", "anthropic", "bedrock"})


class _AdmittedRequest(NamedTuple):
    """A request that passed the key check."""

    http_request: HttpRequest
    record: RecordedRequest
    ids: IdGenerator
    account: str
    operation: Operation
    faults: frozenset[Fault]


class App:
    """`patience` is the length of the faults `slow-start` (also of an error) and `stall`, in seconds.

    `scripted_reply` returns the reply to a request, or None for that of the built-in model; several providers can share
    it. `clock` returns the seconds by which prompt caches expire.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        profile: str | None = None,
        strict: bool = True,
        keys: frozenset[str] = frozenset(),
        scripted_reply: ScriptFunction = lambda _: None,
        faults: FaultPlan | None = None,
        patience: float = 30.0,
        clock: Callable[[], float] = monotonic,
        log: RequestLog | None = None,
    ) -> None:
        self.provider = provider
        self._log = log or RequestLog()
        self._profile = profile
        self._strict = strict
        self._keys = keys
        self._scripted_reply = scripted_reply
        self._faults = faults or FaultPlan()
        self._patience = patience
        self._cache = PromptCache(clock)
        self._repeat_counts: dict[str, int] = {}
        self._standard_errors = errors.standard_errors(provider.api)
        self._render_error = (provider.wire if profile is None else SERVERS[profile]).render_error

    @property
    def max_body_bytes(self) -> int:
        """The maximum size of a body in bytes."""
        return self._standard_errors.max_body_bytes

    async def handle(self, http_request: HttpRequest) -> HttpResponse:
        """Return the response. Streams are rendered when they are read; nothing here waits."""
        record = self._log.open(self.provider.api, http_request)
        ids = self._make_ids(http_request)
        try:
            response = self._dispatch(http_request, record, ids)
        except Exception as error:  # noqa: BLE001  a client always gets a response; the record has the error
            message = f"this is a bug in segue, please report it: {type(error).__name__}: {error}"
            response = self._error_response(ApiError(500, message, "api_error"), record)
        self.provider.complete_response(response, http_request, ids)
        record.status = response.status
        self._log.close(record)
        return response

    async def close(self) -> None:
        """Nothing is open."""

    def _make_ids(self, http_request: HttpRequest) -> IdGenerator:
        """Return new ids: a repeated request gets different ones, but the same in every run."""
        request_digest = digest([http_request.path, http_request.body.decode("utf-8", "replace")])
        self._repeat_counts[request_digest] = self._repeat_counts.get(request_digest, 0) + 1
        return IdGenerator(self.provider.seed, self.provider.api, request_digest, self._repeat_counts[request_digest])

    def _dispatch(self, http_request: HttpRequest, record: RecordedRequest, ids: IdGenerator) -> HttpResponse:
        route_and_model = self.provider.find_route(http_request)
        body = self._parse_body(http_request, route_and_model)
        if body is not None:
            record.body, record.model = body, str(body.get(self.provider.model_key) or "")
        if route_and_model is None:
            wrong_method = self._standard_errors.wrong_method if self.provider.has_path(http_request.path) else None
            return self._error_response(
                (wrong_method or self._standard_errors.no_route)(http_request.method, http_request.path), record
            )
        if not http_request.is_complete:
            return self._error_response(self._standard_errors.too_large, record)
        route, _ = route_and_model
        key_error = self._check_key(http_request)
        if key_error is not None:
            return self._error_response(key_error, record)
        account = self.provider.read_key(http_request) or ""
        if route.operation == "models":
            return HttpResponse(200, msgspec.json.encode(self.provider.models_body()))
        if route.operation == "retrieve":
            stored = self.provider.stored_response(http_request, account)
            return (
                self._error_response(stored, record)
                if isinstance(stored, ApiError)
                else HttpResponse(200, msgspec.json.encode(stored))
            )
        faults = self._faults.faults_for(record.number)
        record.fault = ", ".join(sorted(faults)) or None
        if "reset" in faults:
            return HttpResponse(0, b"", reset=True)
        for fault, error in self._fault_errors.items():
            if fault in faults:
                response = self._error_response(error, record, retry_after=1 if fault == "rate-limit" else None)
                response.delay = self._patience if "slow-start" in faults else 0
                return response
        if body is None:
            return self._error_response(self._standard_errors.bad_json(http_request.body), record)
        return self._check_and_reply(
            _AdmittedRequest(http_request, record, ids, account, route.operation, faults), body
        )

    def _parse_body(
        self, http_request: HttpRequest, route_and_model: tuple[Route, str | None] | None
    ) -> dict[str, Any] | None:
        """Parse the body and add the model from the path; `None` if it is not a JSON object."""
        try:
            body = dict(parse_json_object(http_request.body)[0])
        except InputError:
            return None
        route, model = route_and_model or (None, None)
        if route is not None and route.operation == "count":
            body = dict(self.provider.body_to_count(body))
        return body if model is None else {**body, self.provider.model_key: model}

    # ----------------------------------------------------------------------------------------------------------- errors

    @property
    def _fault_errors(self) -> Mapping[Fault, ApiError]:
        errors = self._standard_errors
        return {
            "rate-limit": errors.rate_limited,
            "server-error": errors.server_error,
            "overloaded": errors.overloaded,
            "context-length": errors.context_length,
            "no-credit": errors.no_credit,
        }

    def _check_key(self, http_request: HttpRequest) -> ApiError | None:
        if not self._strict:
            return None
        if self.provider.read_key(http_request) is None:
            return self._standard_errors.no_key
        return (
            None
            if not self._keys or self.provider.has_valid_key(http_request, self._keys)
            else self._standard_errors.bad_key
        )

    def _error_response(
        self, error: ApiError, record: RecordedRequest, *, retry_after: float | None = None
    ) -> HttpResponse:
        record.refused = error.message
        body = self._render_error(error)
        record.kind = self.provider.error_type(body)
        headers = [] if retry_after is None else [("retry-after", f"{retry_after:g}")]
        return HttpResponse(error.status, b"", headers=headers, error_body=body)

    def _scripted_error(self, error_step: ErrorStep) -> ApiError:
        """Build a scripted error in the provider's format, with its error text if the script has none."""
        errors = self._standard_errors
        by_status = {401: errors.bad_key, 429: errors.rate_limited, 503: errors.overloaded, 529: errors.overloaded}
        error = by_status.get(
            error_step.status,
            errors.server_error
            if error_step.status >= 500
            else ApiError(error_step.status, _status_phrase(error_step.status)),
        )
        return msgspec.structs.replace(error, status=error_step.status, message=error_step.message or error.message)

    def _check_and_reply(self, admitted: _AdmittedRequest, body: Mapping[str, Any]) -> HttpResponse:
        record = admitted.record
        verdict = self._check(admitted, body)
        if isinstance(verdict, ApiError):
            return self._error_response(verdict, record)
        verdict, whole = verdict
        record.violations = verdict.violations
        if self._strict and not verdict:
            record.rule = errors.first_broken_rule(verdict)
            return self._error_response(errors.error_for_verdict(whole, verdict, profile=self._profile), record)
        try:
            request = self.provider.wire.parse_request(self.provider.readable_body(whole, admitted.account))
        except InputError as error:
            return self._error_response(ApiError(400, str(error)), record)
        full_body = {**whole, **{key: value for key, value in body.items() if key not in whole}}
        return self._reply(admitted, verdict, full_body, request)

    def _check(
        self, admitted: _AdmittedRequest, body: Mapping[str, Any]
    ) -> tuple[Verdict, Mapping[str, Any]] | ApiError:
        """Check the rules and the provider's own state; returns the verdict and the body with its stored history."""
        api, provider = self.provider.api, self.provider
        missing = provider.check_required(admitted.http_request, body) if self._strict else None
        if missing is not None:
            return missing
        invalid = errors.validate(api, body, admitted.http_request, profile=self._profile) if self._strict else None
        if invalid is not None:
            admitted.record.violations = _find_violations(body, api, self._profile)
            return invalid
        try:
            verdict = conformance.check_body(body, api, profile=self._profile)
            whole = provider.restore_history(body, admitted.account)
            if isinstance(whole, Violation):
                return Verdict(api, verdict.model, (*verdict.violations, whole)), body
            if not verdict:
                return verdict, body
            if whole is not body:
                verdict = conformance.check_body(whole, api, profile=self._profile)
        except InputError as error:
            return ApiError(400, str(error))
        own = tuple(provider.check_state(whole, admitted.http_request, admitted.account)) if verdict else ()
        return Verdict(api, verdict.model, (*own, *verdict.violations)), whole

    # -------------------------------------------------------------------------------------------------------- the reply

    def _reply(
        self, admitted: _AdmittedRequest, verdict: Verdict, whole: Mapping[str, Any], request: Request
    ) -> HttpResponse:
        record, provider, faults = admitted.record, self.provider, admitted.faults
        entries = provider.billed_entries(whole)
        record.messages = len(entries)
        model = record.model or provider.wire.default_model
        parts = split_prompt(whole, entries)
        if admitted.operation == "count":
            return HttpResponse(200, msgspec.json.encode(provider.token_count_body(count_prompt(parts, model))))
        record.streamed = provider.is_streaming(admitted.operation, whole)
        context = RequestContext(whole, request, model, admitted.account, admitted.ids, operation=admitted.operation)
        rules = provider.cache_rules(whole, context.identified_model, parts)
        prompt = self._cache.bill(admitted.account, model, whole, parts, rules)
        record.kept = prompt.kept
        compaction = provider.compact(context, prompt.usage)
        is_alone = compaction is not None and compaction.ends_reply
        billed = compaction.bill_reply(prompt.usage) if compaction else prompt.usage
        steps = () if is_alone else self._next_steps(context, verdict, record)
        if "cut-arguments" in faults:
            steps = cut_arguments(steps)
        if "repeated-ids" in faults:
            first = replace(context, ids=IdGenerator("repeated"), request=Request(()))
            steps = repeat_ids(steps, lambda tool: provider.call_ids(first, 0, tool)[0])
        error_step = _leading_error(steps, first=record.streamed)
        if error_step is not None:
            response = self._error_response(
                self._scripted_error(error_step), record, retry_after=error_step.retry_after
            )
        else:
            objects = provider.api in (_OBJECT_ARGUMENTS if record.streamed else _OBJECT_ARGUMENTS_UNSTREAMED)
            builder = ReplyBuilder(
                provider,
                context,
                steps,
                number=record.number,
                prompt=prompt._replace(usage=billed, written=prompt.written if billed.cache_write else {}),
                object_arguments=objects,
                reply_ids=IdGenerator("repeated") if "same-reply-id" in faults else context.ids,
            )
            record.calls = tuple(call.name for call in builder.calls)
            record.text = builder.reply.text
            record.thoughts = sum(isinstance(block, Thinking) for block in builder.reply.blocks)
            body = render_reply_body(provider, builder)
            body = compaction.add_to(body) if compaction else body
            provider.record_reply(context, body)
            if record.streamed:
                framing = compaction.framing(body) if compaction else provider.stream_framing(admitted.http_request)
                response = stream_response(
                    provider, builder, faults, framing, patience=self._patience, make_error=self._scripted_error
                )
            else:
                response = whole_response(body, builder, faults, patience=self._patience)
        response.delay = _leading_delay(steps, first=record.streamed) + (
            self._patience if "slow-start" in faults else 0
        )
        return response

    def _next_steps(self, context: RequestContext, verdict: Verdict, record: RecordedRequest) -> ReplySteps:
        # KIM-01: the template prints ids unchanged, and ids of another format make the model garble its calls.
        if any(violation.rule == "KIM-01" for violation in verdict.violations):
            record.confused = True
            return (TextStep(_garbled_call_text(context.request)),)
        scripted = self._scripted_reply(context.request)
        if scripted is not None:
            return fill_placeholders(scripted, context.request)
        from segue.emulator.model import responder, text_tools

        declared = text_tools.find_text_tools(context.request)
        if declared is None:
            return responder.make_reply_steps(context.request, seed=self.provider.seed)
        request = declared.convert_request(context.request)
        return declared.convert_steps(responder.make_reply_steps(request, seed=self.provider.seed))


def _find_violations(body: Mapping[str, Any], api: str, profile: str | None) -> tuple[Violation, ...]:
    """Return the violations of a body that was rejected before the rules were checked."""
    try:
        return conformance.check_body(body, api, profile=profile).violations
    except InputError:
        return ()


def _leading_error(steps: ReplySteps, *, first: bool) -> ErrorStep | None:
    """Return the first scripted error, which replaces the reply; with `first` (streams) only one at the start."""
    without_waits = [step for step in steps if not isinstance(step, WaitStep)]
    candidates = without_waits[:1] if first else without_waits
    return next((step for step in candidates if isinstance(step, ErrorStep)), None)


def _leading_delay(steps: ReplySteps, *, first: bool) -> float:
    """Return the seconds before the response: all waits, or with `first` (streams) only the leading ones."""
    total = 0.0
    for step in steps:
        if isinstance(step, WaitStep):
            total += step.seconds
        elif first:
            break
    return total


def _status_phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "Bad Request"


def _garbled_call_text(request: Request) -> str:
    tool = request.tools[0].name if request.tools else "tool"
    call = f"<|tool_call_begin|>functions.{tool}:0<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
    return f"<|tool_calls_section_begin|>{call}<|tool_calls_section_end|>"
