"""One emulated provider: handles an HTTP request and returns the provider's response.

Steps of a request: route, key, JSON, conformance rules, signatures, model, and rendering in the API's format. A fault
may be injected at any step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from segue import conformance
from segue.canonical.jsontext import read_object
from segue.canonical.request import Request
from segue.conformance.rule import Verdict, Violation
from segue.emulator import forms, wording
from segue.emulator.chaos import Chaos, Fault, cut_arguments, repeated_ids
from segue.emulator.exchange import Answer, Asked, Recorded
from segue.emulator.memory import PromptCache
from segue.emulator.model.script import Script, fill
from segue.emulator.names import Names
from segue.emulator.playing import Performance
from segue.emulator.providers.base import Does, Provider, Route, Scene
from segue.emulator.seals import digest
from segue.emulator.telling import at_once, reply_body, streamed
from segue.emulator.turns import Say, Trouble, Turn, Wait
from segue.errors import InputError
from segue.wire.base import ApiError
from segue.wire.profiles import profiled

__all__ = ["App"]

# APIs that send arguments as an object: always, and only in replies that are not streamed.
_OBJECTS = frozenset({"gemini"})
_OBJECTS_AT_ONCE = frozenset({"gemini", "anthropic", "bedrock"})
_HEAD = ("system", "systemInstruction", "system_instruction", "instructions", "tools", "toolConfig")


class _Taken(NamedTuple):
    """A request that passed the key check."""

    asked: Asked
    record: Recorded
    names: Names
    account: str
    does: Does
    struck: frozenset[Fault]


class App:
    """`patience` is the length of the faults `slow-start` and `stall`, in seconds."""

    def __init__(
        self,
        provider: Provider,
        *,
        profile: str | None = None,
        strict: bool = True,
        keys: frozenset[str] = frozenset(),
        script: Script | None = None,
        chaos: Chaos | None = None,
        patience: float = 30.0,
        told: Callable[[Recorded], None] | None = None,
    ) -> None:
        self.provider = provider
        self.requests: list[Recorded] = []
        self._profile = profile
        self._strict = strict
        self._keys = keys
        self._turns = list(script.turns) if script is not None else []
        self._chaos = chaos or Chaos()
        self._patience = patience
        self._told = told
        self._cache = PromptCache()
        self._twins: dict[str, int] = {}
        self._words = wording.troubles(provider.api)
        self._render_error = (provider.wire if profile is None else profiled(profile)).render_error

    @property
    def largest(self) -> int:
        """The maximum size of a body in bytes."""
        return self._words.largest

    def answer(self, http_request: Asked) -> Answer:
        """Returns the response. Streams are rendered when they are read; nothing here waits."""
        record = Recorded(len(self.requests) + 1, http_request.method, http_request.path)
        self.requests.append(record)
        ids = self._names(http_request)
        try:
            answer = self._answer(http_request, record, ids)
        except Exception as error:  # noqa: BLE001  a client always gets a response; the record has the error
            message = f"this is a bug in segue, please report it: {type(error).__name__}: {error}"
            answer = self._refuse(ApiError(500, message, "api_error"), record)
        self._put_in_form(answer, http_request, ids)
        record.status = answer.status
        answer.headers = {**self.provider.headers(ids, record.kind), **answer.headers}
        self._tell(record)
        return answer

    def _tell(self, record: Recorded) -> None:
        """Calls the listener. Its exceptions go to `threading.excepthook`; the response is sent anyway."""
        if self._told is None:
            return
        try:
            self._told(record)
        except Exception as error:  # noqa: BLE001
            details = (type(error), error, error.__traceback__, threading.current_thread())
            threading.excepthook(threading.ExceptHookArgs(details))

    def _put_in_form(self, answer: Answer, http_request: Asked, ids: Names) -> None:
        if answer.refusal is not None:
            answer.content = msgspec.json.encode(self.provider.refusal(answer.refusal, http_request, ids))
        if answer.kind == "application/json":
            answer.kind = self.provider.json_media

    def _names(self, http_request: Asked) -> Names:
        """Returns new ids: a repeated request gets different ones, but the same in every run."""
        request_digest = digest([http_request.path, http_request.body.decode("utf-8", "replace")])
        self._twins[request_digest] = self._twins.get(request_digest, 0) + 1
        return Names(self.provider.seed, self.provider.api, request_digest, self._twins[request_digest])

    def _answer(self, http_request: Asked, record: Recorded, ids: Names) -> Answer:
        found = self.provider.route(http_request)
        body = self._read(http_request, found)
        if body is not None:
            record.body, record.model = body, str(body.get(self.provider.model_key) or "")
        if found is None:
            other = self._words.wrong_method if self.provider.listens(http_request.path) else None
            return self._refuse((other or self._words.no_route)(http_request.method, http_request.path), record)
        if not http_request.whole:
            return self._refuse(self._words.too_large, record)
        route, _ = found
        key_error = self._shut_out(http_request)
        if key_error is not None:
            return self._refuse(key_error, record)
        account = self.provider.key(http_request) or ""
        if route.does == "models":
            return Answer(200, msgspec.json.encode(self.provider.models()))
        if route.does == "held":
            stored = self.provider.held(http_request, account)
            return (
                self._refuse(stored, record)
                if isinstance(stored, ApiError)
                else Answer(200, msgspec.json.encode(stored))
            )
        faults = self._chaos.strikes(record.number)
        record.fault = ", ".join(sorted(faults)) or None
        if "reset" in faults:
            return Answer(0, b"", reset=True)
        for fault, error in self._mishaps.items():
            if fault in faults:
                return self._refuse(error, record, retry_after=1 if fault == "rate-limit" else None)
        if body is None:
            return self._refuse(forms.unread(self.provider.api, http_request.body) or self._words.bad_json, record)
        return self._judged(_Taken(http_request, record, ids, account, route.does, faults), body)

    def _read(self, http_request: Asked, found: tuple[Route, str | None] | None) -> dict[str, Any] | None:
        """Parses the body and adds the model from the path; `None` if it is not a JSON object."""
        try:
            body = dict(read_object(http_request.body)[0])
        except InputError:
            return None
        route, model = found or (None, None)
        if route is not None and route.does == "count":
            body = dict(self.provider.to_count(body))
        return body if model is None else {**body, self.provider.model_key: model}

    # --------------------------------------------------------------------------------------------------------- errors

    @property
    def _mishaps(self) -> Mapping[Fault, ApiError]:
        errors = self._words
        return {"rate-limit": errors.rate_limited, "server-error": errors.failed, "overloaded": errors.overloaded}

    def _shut_out(self, http_request: Asked) -> ApiError | None:
        if not self._strict:
            return None
        if self.provider.key(http_request) is None:
            return self._words.no_key
        return None if not self._keys or self.provider.holds(http_request, self._keys) else self._words.bad_key

    def _refuse(self, error: ApiError, record: Recorded, *, retry_after: float | None = None) -> Answer:
        record.refused = error.message
        body = self._render_error(error)
        record.kind = self.provider.error_kind(body)
        headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
        return Answer(error.status, b"", headers=headers, refusal=body)

    def _in_words(self, trouble: Trouble) -> ApiError:
        """Builds a scripted error in the provider's format, with its error text if the script has none."""
        errors = self._words
        by_status = {401: errors.bad_key, 429: errors.rate_limited, 503: errors.overloaded, 529: errors.overloaded}
        error = by_status.get(
            trouble.status,
            errors.failed if trouble.status >= 500 else ApiError(trouble.status, _phrase(trouble.status)),
        )
        return replace(error, status=trouble.status, message=trouble.message or error.message)

    def _judged(self, taken: _Taken, body: Mapping[str, Any]) -> Answer:
        record = taken.record
        verdict = self._verdict(taken, body)
        if isinstance(verdict, ApiError):
            return self._refuse(verdict, record)
        verdict, whole = verdict
        record.violations = verdict.violations
        if self._strict and not verdict:
            record.rule = wording.first_told(verdict)
            return self._refuse(wording.refusal(whole, verdict, profile=self._profile), record)
        try:
            request = self.provider.wire.parse_request(whole)
        except InputError as error:
            return self._refuse(ApiError(400, str(error)), record)
        full_body = {**whole, **{key: value for key, value in body.items() if key not in whole}}
        return self._answered(taken, verdict, full_body, request)

    def _verdict(self, taken: _Taken, body: Mapping[str, Any]) -> tuple[Verdict, Mapping[str, Any]] | ApiError:
        """Checks the rules and the provider's own state; returns the verdict and the body with its stored history."""
        api, provider = self.provider.api, self.provider
        missing = provider.missing(taken.asked, body) if self._strict else None
        if missing is not None:
            return missing
        invalid = forms.refused(api, body, taken.asked, profile=self._profile) if self._strict else None
        if invalid is not None:
            taken.record.violations = _seen(body, api, self._profile)
            return invalid
        try:
            verdict = conformance.judge(body, api, profile=self._profile)
            whole = provider.restored(body, taken.account)
            if isinstance(whole, Violation):
                return Verdict(api, verdict.model, (*verdict.violations, whole)), body
            if not verdict:
                return verdict, body
            if whole is not body:
                verdict = conformance.judge(whole, api, profile=self._profile)
        except InputError as error:
            return ApiError(400, str(error))
        own = tuple(provider.breaches(whole, taken.asked, taken.account)) if verdict else ()
        return Verdict(api, verdict.model, (*own, *verdict.violations)), whole

    # ------------------------------------------------------------------------------------------------------- the reply

    def _answered(self, taken: _Taken, verdict: Verdict, whole: Mapping[str, Any], request: Request) -> Answer:
        record, provider, faults = taken.record, self.provider, taken.struck
        entries = provider.entries(whole)
        head = {key: whole[key] for key in _HEAD if key in whole}
        record.messages = len(entries)
        record.kept, cached, read = self._cache.read((taken.account, record.model), head, entries)
        if taken.does == "count":
            return Answer(200, msgspec.json.encode(provider.counted(read)))
        record.streamed = provider.streams(taken.does, whole)
        context = Scene(whole, request, record.model or provider.wire.default_model, taken.account, taken.names)
        turn = self._turn(context, verdict, record)
        if "cut-arguments" in faults:
            turn = cut_arguments(turn)
        if "repeated-ids" in faults:
            first = replace(context, names=Names("repeated"), request=Request(()))
            turn = repeated_ids(turn, lambda tool: provider.call_ids(first, 0, tool)[0])
        trouble = _trouble(turn, first=record.streamed)
        if trouble is not None:
            answer = self._refuse(self._in_words(trouble), record, retry_after=trouble.retry_after)
        else:
            objects = provider.api in (_OBJECTS if record.streamed else _OBJECTS_AT_ONCE)
            builder = Performance(
                provider, context, turn, number=record.number, read=read, cached=cached, objects=objects
            )
            record.calls = tuple(call.name for call in builder.calls)
            record.text = builder.reply.text
            body = reply_body(provider, builder)
            provider.spoken(context, body)
            if record.streamed:
                framing = provider.reframed(taken.asked)
                answer = streamed(provider, builder, faults, framing, patience=self._patience, in_words=self._in_words)
            else:
                answer = at_once(body, builder, faults, patience=self._patience)
        answer.delay = _waits(turn, first=record.streamed) + (self._patience if "slow-start" in faults else 0)
        return answer

    def _turn(self, context: Scene, verdict: Verdict, record: Recorded) -> Turn:
        # KIM-01: the template prints ids unchanged, and ids of another format make the model garble its calls.
        if any(violation.rule == "KIM-01" for violation in verdict.violations):
            record.confused = True
            return (Say(_garbled(context.request)),)
        if self._turns:
            return fill(self._turns.pop(0), context.request)
        from segue.emulator.model import brain

        return brain.answer(context.request, seed=self.provider.seed)


def _seen(body: Mapping[str, Any], api: str, profile: str | None) -> tuple[Violation, ...]:
    """Returns the violations of a body that was rejected before the rules were checked."""
    try:
        return conformance.judge(body, api, profile=profile).violations
    except InputError:
        return ()


def _trouble(turn: Turn, *, first: bool) -> Trouble | None:
    """Returns the scripted error that replaces the reply: any step, or with `first` (streams) only the first."""
    steps = [step for step in turn if not isinstance(step, Wait)]
    found = (step for step in (steps[:1] if first else steps) if isinstance(step, Trouble))
    return next(found, None)


def _waits(turn: Turn, *, first: bool) -> float:
    """Returns the seconds before the response: all waits, or with `first` (streams) only the leading ones."""
    total = 0.0
    for step in turn:
        if isinstance(step, Wait):
            total += step.seconds
        elif first:
            break
    return total


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "Bad Request"


def _garbled(request: Request) -> str:
    tool = request.tools[0].name if request.tools else "tool"
    call = f"<|tool_call_begin|>functions.{tool}:0<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
    return f"<|tool_calls_section_begin|>{call}<|tool_calls_section_end|>"
