"""Every rule of the rulebook with an error is broken over HTTP: status, form and words are the provider's.

The envelopes are written by hand (`envelopes.py`), the words are the rulebook's. Where the wording of a rule is only
recalled, its status and the type of the error count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import segue
from segue import conformance, emulator
from segue.conformance import profiles
from segue.emulator import Emulator
from segue.emulator.client import Sent, post
from tests.conformance import bodies_anthropic, bodies_bedrock, bodies_foundry, bodies_gemini, bodies_profiles
from tests.conformance import bodies_responses as r
from tests.conformance.case import Body
from tests.conformance.test_rules import BODIES, CASES, EXAMPLES, MODELS, PREFIX, PROFILE_EXAMPLES, RULEBOOK
from tests.conformance.test_rules import _chat_body as chat_body
from tests.emulator import test_words_claude_gemini as claude_words
from tests.emulator import test_words_openai as openai_words

from .envelopes import ENVELOPES, Said

BOOK = {rule["id"]: rule for rule in RULEBOOK}
SPEAKERS = [*((api, None) for api in PREFIX), *(("openai-chat", name) for name in conformance.profile_names())]
STAND_IN = "any"
"""A model that no rule knows, for the cases that name none."""


class Row(NamedTuple):
    """One body, and whose it is."""

    api: str
    profile: str | None
    rule: str
    about: str
    body: Body
    model: str | None

    @property
    def id(self) -> str:
        return f"{self.profile or self.api} {self.rule} {self.about}"


def violating() -> Iterator[Row]:
    """The tables of the judge, then the rulebook's own samples."""
    for api, profile in SPEAKERS:
        for case in CASES[api] if profile is None else bodies_profiles.CASES[profile]:
            if case.severity == "reject":
                yield Row(api, profile, case.rule, case.about, case.violating, case.model)
    for api, rule, sample in (param.values for param in EXAMPLES):
        api, rule = str(api), str(rule)
        yield Row(api, None, rule, "example", BODIES.get(api, chat_body)(rule, sample), SAMPLE_MODELS.get(rule))
    for profile, rule, sample in (param.values for param in PROFILE_EXAMPLES):
        yield Row("openai-chat", str(profile), str(rule), "example", chat_body(str(rule), sample), None)


def lawful() -> Iterator[Row]:
    seen: set[str] = set()
    for api, profile in SPEAKERS:
        for case in CASES[api] if profile is None else bodies_profiles.CASES[profile]:
            same = f"{api} {profile} {case.model} {case.lawful}"
            if same not in seen:
                seen.add(same)
                yield Row(api, profile, case.rule, case.about, case.lawful, case.model)


# Models on which the rulebook's sample is refused, where the rule depends on one.
SAMPLE_MODELS = {**MODELS, "GEM-15": "gemini-3.1-pro-preview", "ANT-26": "claude-sonnet-4-5-20250929"}


# ------------------------------------------------------------------------------------------- one provider for each API

# What the model says first; from then on it speaks for itself.
SCRIPTS = {
    "anthropic": "think x\nsay a",
    "bedrock": "think x\nsay a",
    "gemini": "call f {}",
    "openai-responses": "think x\nsay a\n---\nthink y\nsay b\n---\nsay c\n---\nsay d\n---\ncall[call_1] f {}",
}
SCRIPTS["azure-foundry"] = SCRIPTS["openai-responses"]
# What the bodies of the tables bear for seals.
STAND_INS = {
    "anthropic": {bodies_anthropic.SIGNED["signature"]},
    "bedrock": {"EqQBCgIYAhIM", "c2ln", "s"},
    "gemini": {bodies_gemini.SIGNATURE, "-_-_", "KO4J"},
    "openai-responses": {r.SEAL},
    "azure-foundry": {"gAAAAx"},
}


class Provider:
    """A running provider, and what it has said so far."""

    def __init__(self, api: str, profile: str | None) -> None:
        self.api = api
        self.running = emulator.start(api, profile=profile, script=SCRIPTS.get(api) if profile is None else None)
        self.told: dict[str, Any] = {}
        if profile is None and api in SCRIPTS:
            getattr(self, f"_{api.replace('-', '_')}")()

    def post(self, row_body: Body, model: str | None = None, *, stream: bool = False, **more: Any) -> Sent:
        body = {**({"model": model or STAND_IN} if self.api not in ("gemini", "bedrock") else {}), **row_body}
        if self.api == "anthropic":
            body = {"max_tokens": 4096, **body}
        return post(self.running, body, model=_path_model(body, model), stream=stream, **more)

    def made(self, body: Any) -> Any:
        """A body as if what it sends back had been made here."""
        if isinstance(body, list):
            return [self.made(entry) for entry in body]
        if not isinstance(body, dict):
            return self.told["seal"] if isinstance(body, str) and body in STAND_INS.get(self.api, ()) else body
        changed = {key: self.made(value) for key, value in body.items()}
        if "responses" not in self.api and self.api != "azure-foundry":
            return changed
        if changed.get("type") == "item_reference" or set(changed) == {"id"}:
            changed["id"] = {"msg_1": self.told["msg"], "fc_1": self.told["thought msg"]}.get(
                changed["id"], self.told["rs"][0]
            )
        elif changed.get("type") == "reasoning" and "encrypted_content" not in changed and "id" in changed:
            changed["id"] = self.told["rs"][str(changed["id"]).startswith("rs_1123")]
        if "previous_response_id" in changed and str(changed["previous_response_id"]) not in self.told["resp"]:
            answers = any(item.get("type") == "function_call_output" for item in changed.get("input", ()))
            asks = any(item.get("type") == "function_call" for item in changed.get("input", ()))
            changed["previous_response_id"] = self.told["resp"][answers and not asks]
        return changed

    def _anthropic(self) -> None:
        asked = {"messages": [bodies_anthropic.Q], "thinking": bodies_anthropic.ON}
        blocks = self.post(asked, bodies_anthropic.OLD).body["content"]
        self.told["seal"] = next(block["signature"] for block in blocks if block["type"] == "thinking")

    def _bedrock(self) -> None:
        asked = {"messages": [bodies_bedrock.Q], **bodies_bedrock.ON}
        blocks = self.post(asked, bodies_bedrock.CLAUDE).body["output"]["message"]["content"]
        self.told["seal"] = next(
            block["reasoningContent"]["reasoningText"]["signature"] for block in blocks if "reasoningContent" in block
        )

    def _gemini(self) -> None:
        asked = bodies_gemini.declares({"name": "f"})
        parts = self.post(asked, bodies_gemini.NEW).body["candidates"][0]["content"]["parts"]
        self.told["seal"] = next(part["thoughtSignature"] for part in parts if "thoughtSignature" in part)

    def _openai_responses(self) -> None:
        sealing: Body = {"input": "q", "include": ["reasoning.encrypted_content"]}
        thoughts = [self.post(sealing, "gpt-5").body["output"] for _ in range(2)]
        talks = [self.post({"input": [r.USER, self._approval]}, "gpt-4.1").body for _ in range(2)]
        asks = self.post({"input": "q", "tools": [r.TOOL]}, "gpt-4.1").body
        self.told = {
            "seal": thoughts[0][0]["encrypted_content"],
            "rs": [items[0]["id"] for items in thoughts],
            "thought msg": thoughts[0][1]["id"],
            "msg": talks[0]["output"][0]["id"],
            "resp": (talks[1]["id"], asks["id"]),
        }

    @property
    def _approval(self) -> Body:
        return r.WHO if self.api == "openai-responses" else {**r.WHO, "id": bodies_foundry.name("mcpr")}

    _azure_foundry = _openai_responses


def _path_model(body: Body, model: str | None) -> str | None:
    named = body.pop("modelId", None)
    return model or (str(named) if named else None)


@pytest.fixture(scope="module")
def providers() -> Iterator[dict[tuple[str, str | None], Provider]]:
    running: dict[tuple[str, str | None], Provider] = {}
    yield _Started(running)
    for provider in running.values():
        provider.running.stop()


class _Started(dict[tuple[str, str | None], Provider]):
    def __init__(self, running: dict[tuple[str, str | None], Provider]) -> None:
        super().__init__()
        self._running = running

    def __missing__(self, key: tuple[str, str | None]) -> Provider:
        self[key] = self._running[key] = Provider(*key)
        return self[key]


Providers = dict[tuple[str, str | None], Provider]


# -------------------------------------------------------------------------------------------------- words, generalised

_CONCRETE = re.compile(r".*[\d…].*|.*\.\.\..*|<id>|\[X\]|.*\[X\].*")
# Tokens of a sample that stand for a value of the body though they do not look it.
VALUES = {
    "ANT-09": {"`advisor_tool_result`"},
    "ANT-24": {"`tool_use`."},
    "GEM-11": {'"id"'},
    "MIS-07": {"'user'"},
    "MIS-08": {"'user'"},
    "MIS-09": {"'tool'"},
    "COMP-23": {"'stream_options'"},
    "KIM-03": set[str](),
    "COMP-01": {"'reasoning_content'", "'role:assistant'"},
    "MIS-12": {"a.b"},
    "MIS-13": set[str](),
    "KIM-02": set[str](),
}
# What stands before the rulebook's quotation, or around it.
LEADS = {
    "ANT-08": r"messages\.\d+\.content\.\d+: ",
    "BED-01": r"\d+ validation errors? detected: (?:.+; )?",
    "BED-02": r"\d+ validation errors? detected: (?:.+; )?",
    "GEM-10": r"\* GenerateContentRequest\.",
    "BED-05": "",
}


def sentence(rule: str, text: str) -> re.Pattern[str]:
    """The rulebook's text with its concrete parts (places, numbers, ids) left open, as a pattern."""
    written: list[str] = []
    for token in text.split(" "):
        if token.startswith("'^"):
            written.append(re.sub(r"\d+", r"\\d+", re.escape(token)))
        elif _CONCRETE.fullmatch(token) or token in VALUES.get(rule, ()):
            end = token[-1] if token[-1] in ".,:;)" and not token.endswith("...") else ""
            written.append(r"[^ ]*(?:, [^ ]+)*?" + re.escape(end))
        else:
            written.append(re.escape(token))
    more = ".*" if text.endswith("...") else r"(?:; .+)?" if rule.startswith("BED-0") else ""
    return re.compile(LEADS.get(rule, "") + " ".join(written) + more + r"\n?", re.DOTALL)


def sentences(said: Said) -> list[str]:
    """What an error says: its message, and each of its findings with the place."""
    listed = [f"{one.get('message') or one.get('msg')} (param {one.get('param')})" for one in said.details if "@type" not in one]
    return [said.message, *listed]


def recalled(rule: str) -> bool:
    return "[Error wording recalled" in BOOK[rule]["rule"]


def told_otherwise(row: Row) -> str | bool:
    """Whether a breach is deliberately told in another sentence than the sample's, and in which, if that is noted."""
    other = openai_words.OTHERWISE.get(row.rule, {}).get(row.about)
    if other is not None:
        return other
    if row.about in claude_words.OTHERWISE.get(row.rule, ()):
        return claude_words.EXACTLY.get(row.api, {}).get(f"{row.rule} {row.about}", True)
    return False


# ------------------------------------------------------------------------------------------------------------ refusals

# Fragments that, put into a body, break other rules too: the one that the provider looks at first is told.
TOLD_FIRST: dict[str, str] = {}


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in violating()])
def test_breach_is_refused_in_the_words_of_the_provider(providers: Providers, row: Row) -> None:
    provider = providers[row.api, row.profile]
    sent = provider.post(row.body, row.model)
    record = provider.running.requests[-1]
    assert sent.status >= 400, record
    said = ENVELOPES[row.profile or row.api](sent)
    assert record.refused == said.message
    check_words(row, sent, said)


def check_words(row: Row, sent: Sent, said: Said) -> None:
    known = BOOK[row.rule]
    own = row.profile is not None or row.rule.startswith(openai_words.SPOKEN[row.api])
    other = told_otherwise(row)
    if row.about == "example" and row.rule in TOLD_FIRST:
        assert said.message.startswith(TOLD_FIRST[row.rule])
        return
    if isinstance(other, str):
        assert said.message == other
        return
    assert sent.status == ((known["error_status"] or 400) if own and not other else sent.status)
    if own and not other and known["error_text"] and not recalled(row.rule) and row.rule not in openai_words.SHORTENED:
        wanted = sentence(row.rule, known["error_text"])
        assert any(wanted.fullmatch(told) for told in sentences(said)), f"{sentences(said)} is not {wanted.pattern}"


# --------------------------------------------------------------------------------------------------------- lawful twins


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in lawful()])
def test_lawful_twin_is_answered(providers: Providers, row: Row) -> None:
    provider = providers[row.api, row.profile]
    body = provider.made(row.body)
    sent = provider.post(body, row.model)
    assert sent.status == 200, sent.data
    assert sent.headers["content-type"].startswith("application/json")
    streamed = provider.post(body, row.model, stream=True)
    assert streamed.status == 200, streamed.data
    framing = "application/vnd.amazon.eventstream" if row.api == "bedrock" else "text/event-stream"
    assert streamed.headers["content-type"].startswith(framing)
    assert segue.assemble(streamed.data, row.api).finish in ("stop", "tool_calls")
