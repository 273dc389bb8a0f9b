"""One emulated provider: a request in, the provider's own answer out.

The way of a request: route, key, JSON, the judge, the seals, the model, and back in the words of the API. Faults may
strike on any part of it.
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

# Where arguments are told as an object: always, and where a reply comes at once.
_OBJECTS = frozenset({"gemini"})
_OBJECTS_AT_ONCE = frozenset({"gemini", "anthropic", "bedrock"})
_HEAD = ("system", "systemInstruction", "system_instruction", "instructions", "tools", "toolConfig")


class _Taken(NamedTuple):
    """A request on its way in."""

    asked: Asked
    record: Recorded
    names: Names
    account: str
    does: Does
    struck: frozenset[Fault]


class App:
    """`patience` is how long a fault lasts that only makes one wait, in seconds."""

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
        """How many bytes of a body are looked at."""
        return self._words.largest

    def answer(self, asked: Asked) -> Answer:
        """What goes back. Streams are still to be told; nothing here waits."""
        record = Recorded(len(self.requests) + 1, asked.method, asked.path)
        self.requests.append(record)
        names = self._names(asked)
        try:
            answer = self._answer(asked, record, names)
        except Exception as error:  # noqa: BLE001  a client gets an answer, whatever happens; the record names the bug
            said = f"this is a bug in segue, please report it: {type(error).__name__}: {error}"
            answer = self._refuse(ApiError(500, said, "api_error"), record)
        self._put_in_form(answer, asked, names)
        record.status = answer.status
        answer.headers = {**self.provider.headers(names, record.kind), **answer.headers}
        self._tell(record)
        return answer

    def _tell(self, record: Recorded) -> None:
        """What goes wrong in the listener goes the way of what goes wrong in any thread; the answer stands."""
        if self._told is None:
            return
        try:
            self._told(record)
        except Exception as error:  # noqa: BLE001
            told = (type(error), error, error.__traceback__, threading.current_thread())
            threading.excepthook(threading.ExceptHookArgs(told))

    def _put_in_form(self, answer: Answer, asked: Asked, names: Names) -> None:
        if answer.refusal is not None:
            answer.content = msgspec.json.encode(self.provider.refusal(answer.refusal, asked, names))
        if answer.kind == "application/json":
            answer.kind = self.provider.json_media

    def _names(self, asked: Asked) -> Names:
        """Fresh names: the same request asked again gets others, but the same ones in every run."""
        same = digest([asked.path, asked.body.decode("utf-8", "replace")])
        self._twins[same] = self._twins.get(same, 0) + 1
        return Names(self.provider.seed, self.provider.api, same, self._twins[same])

    def _answer(self, asked: Asked, record: Recorded, names: Names) -> Answer:
        found = self.provider.route(asked)
        body = self._read(asked, found)
        if body is not None:
            record.body, record.model = body, str(body.get(self.provider.model_key) or "")
        if found is None:
            other = self._words.wrong_method if self.provider.listens(asked.path) else None
            return self._refuse((other or self._words.no_route)(asked.method, asked.path), record)
        if not asked.whole:
            return self._refuse(self._words.too_large, record)
        route, _ = found
        shut = self._shut_out(asked)
        if shut is not None:
            return self._refuse(shut, record)
        account = self.provider.key(asked) or ""
        if route.does == "models":
            return Answer(200, msgspec.json.encode(self.provider.models()))
        if route.does == "held":
            held = self.provider.held(asked, account)
            return self._refuse(held, record) if isinstance(held, ApiError) else Answer(200, msgspec.json.encode(held))
        struck = self._chaos.strikes(record.number)
        record.fault = ", ".join(sorted(struck)) or None
        if "reset" in struck:
            return Answer(0, b"", reset=True)
        for fault, error in self._mishaps.items():
            if fault in struck:
                return self._refuse(error, record, retry_after=1 if fault == "rate-limit" else None)
        if body is None:
            return self._refuse(forms.unread(self.provider.api, asked.body) or self._words.bad_json, record)
        return self._judged(_Taken(asked, record, names, account, route.does, struck), body)

    def _read(self, asked: Asked, found: tuple[Route, str | None] | None) -> dict[str, Any] | None:
        """The body, with the model that the path names."""
        try:
            body = dict(read_object(asked.body)[0])
        except InputError:
            return None
        route, model = found or (None, None)
        if route is not None and route.does == "count":
            body = dict(self.provider.to_count(body))
        return body if model is None else {**body, self.provider.model_key: model}

    # ------------------------------------------------------------------------------------------------------- refusals

    @property
    def _mishaps(self) -> Mapping[Fault, ApiError]:
        words = self._words
        return {"rate-limit": words.rate_limited, "server-error": words.failed, "overloaded": words.overloaded}

    def _shut_out(self, asked: Asked) -> ApiError | None:
        if not self._strict:
            return None
        if self.provider.key(asked) is None:
            return self._words.no_key
        return None if not self._keys or self.provider.holds(asked, self._keys) else self._words.bad_key

    def _refuse(self, error: ApiError, record: Recorded, *, retry_after: float | None = None) -> Answer:
        record.refused = error.message
        said = self._render_error(error)
        record.kind = self.provider.error_kind(said)
        headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
        return Answer(error.status, b"", headers=headers, refusal=said)

    def _in_words(self, trouble: Trouble) -> ApiError:
        """A scripted error in the provider's form, and in its words where the script has none."""
        words = self._words
        usual = {401: words.bad_key, 429: words.rate_limited, 503: words.overloaded, 529: words.overloaded}
        error = usual.get(
            trouble.status, words.failed if trouble.status >= 500 else ApiError(trouble.status, _phrase(trouble.status))
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
        held = {**whole, **{key: value for key, value in body.items() if key not in whole}}
        return self._answered(taken, verdict, held, request)

    def _verdict(self, taken: _Taken, body: Mapping[str, Any]) -> tuple[Verdict, Mapping[str, Any]] | ApiError:
        """The judge's and the provider's own findings, and the body with what the provider holds of it."""
        api, provider = self.provider.api, self.provider
        lacking = provider.missing(taken.asked, body) if self._strict else None
        if lacking is not None:
            return lacking
        misshapen = forms.refused(api, body, taken.asked, profile=self._profile) if self._strict else None
        if misshapen is not None:
            taken.record.violations = _seen(body, api, self._profile)
            return misshapen
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

    # ------------------------------------------------------------------------------------------------------ the answer

    def _answered(self, taken: _Taken, verdict: Verdict, whole: Mapping[str, Any], request: Request) -> Answer:
        record, provider, struck = taken.record, self.provider, taken.struck
        entries = provider.entries(whole)
        head = {key: whole[key] for key in _HEAD if key in whole}
        record.messages = len(entries)
        record.kept, cached, read = self._cache.read((taken.account, record.model), head, entries)
        if taken.does == "count":
            return Answer(200, msgspec.json.encode(provider.counted(read)))
        record.streamed = provider.streams(taken.does, whole)
        scene = Scene(whole, request, record.model or provider.wire.default_model, taken.account, taken.names)
        turn = self._turn(scene, verdict, record)
        if "cut-arguments" in struck:
            turn = cut_arguments(turn)
        if "repeated-ids" in struck:
            first = replace(scene, names=Names("repeated"), request=Request(()))
            turn = repeated_ids(turn, lambda tool: provider.call_ids(first, 0, tool)[0])
        trouble = _trouble(turn, first=record.streamed)
        if trouble is not None:
            answer = self._refuse(self._in_words(trouble), record, retry_after=trouble.retry_after)
        else:
            objects = provider.api in (_OBJECTS if record.streamed else _OBJECTS_AT_ONCE)
            performance = Performance(
                provider, scene, turn, number=record.number, read=read, cached=cached, objects=objects
            )
            record.calls = tuple(call.name for call in performance.calls)
            record.text = performance.reply.text
            body = reply_body(provider, performance)
            provider.spoken(scene, body)
            if record.streamed:
                reframed = provider.reframed(taken.asked)
                answer = streamed(
                    provider, performance, struck, reframed, patience=self._patience, in_words=self._in_words
                )
            else:
                answer = at_once(body, performance, struck, patience=self._patience)
        answer.delay = _waits(turn, first=record.streamed) + (self._patience if "slow-start" in struck else 0)
        return answer

    def _turn(self, scene: Scene, verdict: Verdict, record: Recorded) -> Turn:
        # KIM-01: the template prints ids as they are, and ids of another form derail the model.
        if any(violation.rule == "KIM-01" for violation in verdict.violations):
            record.confused = True
            return (Say(_garbled(scene.request)),)
        if self._turns:
            return fill(self._turns.pop(0), scene.request)
        from segue.emulator.model import brain

        return brain.answer(scene.request, seed=self.provider.seed)


def _seen(body: Mapping[str, Any], api: str, profile: str | None) -> tuple[Violation, ...]:
    """What the judge would say of a body that is refused before it gets there."""
    try:
        return conformance.judge(body, api, profile=profile).violations
    except InputError:
        return ()


def _trouble(turn: Turn, *, first: bool) -> Trouble | None:
    """The error that is the answer: any in a reply that comes at once, in a stream one that comes `first`."""
    steps = [step for step in turn if not isinstance(step, Wait)]
    found = (step for step in (steps[:1] if first else steps) if isinstance(step, Trouble))
    return next(found, None)


def _waits(turn: Turn, *, first: bool) -> float:
    """How long the answer is waited for: what comes `first`, or all of it."""
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
