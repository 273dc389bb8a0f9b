"""The demo's journey: one body handed from wire to wire, there and back, and judged at each stop.

Each stop converts what the stop before it left, asks the judge, and plays the model's next reply in that API's own
form. Which wires there are is the registry's business.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

import msgspec

import segue
from segue.cli.demo_conversation import CONVERSATION, NAIVE, ORIGIN, SCRIPTS, SMALL_TALK, Json

__all__ = ["Broken", "Call", "Copy", "Finding", "Step", "Totals", "copies", "route", "steps", "stops", "total"]

# Where the APIs keep the id of a call, in the order to look; a result names its call by the keys of the second row.
_CALL_KEYS = ("call_id", "toolUseId", "id")
_RESULT_KEYS = ("tool_call_id", "tool_use_id", "call_id", "toolUseId")
# How the texts begin that stand for a result which was never recorded.
_SYNTHETIC = ("[interrupted", "[cancelled")
_GROWING_KEYS = ("messages", "contents", "input")

Outcome = Literal["result", "error", "synthetic", "none"]


class Call(msgspec.Struct, frozen=True):
    """A call as this target gets it, with the result that stands at its id."""

    tool: str
    canonical_id: str
    wire_id: str
    remapped: bool
    outcome: Outcome
    result: str


class Finding(msgspec.Struct, frozen=True):
    """One decision of the report."""

    kind: str
    fault: str
    message: str
    call_id: str
    subject: str


class Broken(msgspec.Struct, frozen=True):
    """A rule that a body breaks: how often, and the judge's words for the first time."""

    rule: str
    severity: str
    times: int
    example: str


class Copy(msgspec.Struct, frozen=True):
    """What the judge of an API says of the history as it is."""

    api: str
    accepted: bool
    rules: list[Broken]


class Step(msgspec.Struct, frozen=True):
    """One request of the journey."""

    number: int
    source: str
    target: str
    model: str
    calls: list[Call]
    results: int
    findings: list[Finding]
    accepted: bool
    violations: list[str]
    then: str


class Totals(msgspec.Struct, frozen=True):
    """The whole journey in numbers."""

    requests: int
    refused: int
    calls: int
    results: int
    synthetic: int
    remapped: int


def stops() -> list[tuple[str, str]]:
    """Every wire with its default model, the first stop first, then as the registry goes round."""
    rows = [(row.name, row.default_model) for row in segue.formats() if row.kind != "text"]
    start = [name for name, _ in rows].index(ORIGIN)
    return rows[start:] + rows[:start]


def route() -> list[tuple[str, str]]:
    """Forward through all the others, and the same way back to the first."""
    first, *others = stops()
    return [*others, *reversed(others[:-1]), first]


def copies() -> Iterator[Copy]:
    """The history handed to each API without segue."""
    for name, model in stops():
        body = NAIVE[name](CONVERSATION) if name in NAIVE else CONVERSATION
        try:
            verdict = segue.check({**body, "model": model}, name)
        except segue.InputError as error:
            yield Copy(name, accepted=False, rules=[Broken("format", "reject", 1, str(error))])
            continue
        found: dict[tuple[str, str], list[segue.Violation]] = {}
        for violation in verdict:
            found.setdefault((violation.severity, violation.rule), []).append(violation)
        rules = [
            Broken(rule, severity, len(same), f"{same[0].path}: {same[0].message}")
            for (severity, rule), same in sorted(found.items())
        ]
        yield Copy(name, bool(verdict), rules)


def steps() -> Iterator[Step]:
    """Plays the journey, one request at a time."""
    body, source = CONVERSATION, ORIGIN
    visits: Counter[str] = Counter()
    for number, (target, model) in enumerate(route(), 1):
        converted = segue.convert(body, source=source, target=target, model=model)
        verdict = segue.check(converted.body, target)
        then, grown = _play(converted.body, target, visits[target])
        visits[target] += 1
        yield Step(
            number=number,
            source=source,
            target=target,
            model=model,
            calls=_calls(converted, body),
            results=len(converted.report.emitted_results),
            findings=[
                Finding(found.kind, found.fault, found.message, found.call_id or "", found.subject or "")
                for found in converted.report.findings
            ],
            accepted=bool(verdict),
            violations=[f"{v.rule} {v.path}: {v.message}" for v in verdict if v.severity == "reject"],
            then=then,
        )
        body, source = grown, target


def total(journey: Sequence[Step]) -> Totals:
    """Adds the steps up."""
    calls = [call for step in journey for call in step.calls]
    return Totals(
        requests=len(journey),
        refused=sum(not step.accepted for step in journey),
        calls=len(calls),
        results=sum(step.results for step in journey),
        synthetic=sum(call.outcome == "synthetic" for call in calls),
        remapped=sum(call.remapped for call in calls),
    )


def _play(body: Json, api: str, visit: int) -> tuple[str, Json]:
    """The body after the model's reply and the client's words; the input is not touched."""
    body = copy.deepcopy(body)
    script = SCRIPTS.get(api)
    if script is not None and visit < len(script.visits):
        tale, reply, after = script.visits[visit]
        body[script.key].extend([script.entry(reply), *after])
        return tale, body
    small_talk = segue.convert(SMALL_TALK, source="openai-chat", target=api).body
    key = next(key for key in _GROWING_KEYS if isinstance(body.get(key), list))
    body[key].extend(small_talk[key][1:])
    return "the model says where things stand", body


def _calls(converted: segue.Converted, before: Json) -> list[Call]:
    """The emitted calls, each with what the finished body itself says of it."""
    names, results = _named_calls(converted.body), _results(converted.body)
    known = _named_calls(before)
    calls: list[Call] = []
    for canonical_id, wire_id in converted.report.emitted_calls:
        text, outcome = results.get(wire_id, ("", "none"))
        calls.append(
            Call(
                tool=names.get(wire_id, "?"),
                canonical_id=canonical_id,
                wire_id=wire_id,
                remapped=wire_id not in known,
                outcome=outcome,
                result=text,
            )
        )
    return calls


def _objects(value: Any) -> Iterator[Json]:
    """Every object in a body, outermost first."""
    if isinstance(value, dict):
        thing = cast("Json", value)
        yield thing
        value = list(thing.values())
    if isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _objects(inner)


def _named_calls(body: Json) -> dict[str, str]:
    """Id → tool of whatever looks like a call in any API: an id and a name."""
    found: dict[str, str] = {}
    for thing in _objects(body):
        inner = next((thing[key] for key in ("function", "custom") if isinstance(thing.get(key), dict)), thing)
        name: object = inner.get("name")
        call_id = next((thing[key] for key in _CALL_KEYS if isinstance(thing.get(key), str)), None)
        if call_id and isinstance(name, str):
            found.setdefault(call_id, name)
    return found


def _results(body: Json) -> dict[str, tuple[str, Outcome]]:
    """Call id → text of its result and what kind of result it is."""
    found: dict[str, tuple[str, Outcome]] = {}
    for thing in _objects(body):
        call_id = next((thing[key] for key in _RESULT_KEYS if isinstance(thing.get(key), str)), None)
        content = thing.get("content", thing.get("output"))
        if isinstance(answer := thing.get("functionResponse"), dict):
            said = cast("Json", answer)
            call_id, content = said.get("id"), said["response"].get("output", said["response"].get("error"))
            thing = {"is_error": "error" in said["response"]}
        if call_id and content is not None:
            text = (
                content if isinstance(content, str) else " ".join(o["text"] for o in _objects(content) if "text" in o)
            )
            failed = thing.get("is_error") or text.startswith("[error]")
            synthetic = text.removeprefix("[error] ").startswith(_SYNTHETIC)
            found.setdefault(call_id, (text, "synthetic" if synthetic else "error" if failed else "result"))
    return found
