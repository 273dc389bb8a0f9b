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
from segue.emulator.client import Response, post
from tests.bodies import Body
from tests.conformance import (
    bodies_anthropic,
    bodies_bedrock,
    bodies_foundry,
    bodies_gemini,
    bodies_profiles,
    bodies_types,
)
from tests.conformance import bodies_responses as r
from tests.conformance.test_rules import BODIES, CASES, EXAMPLES, MODELS, PREFIX, PROFILE_EXAMPLES, RULEBOOK, is_case
from tests.conformance.test_rules import _chat_body as chat_body
from tests.emulator import test_error_texts_claude_gemini as claude_texts
from tests.emulator import test_error_texts_openai as openai_texts
from tests.emulator.envelopes import ENVELOPES, ParsedError

PARSERS = [
    *((api, None) for api in PREFIX),
    *((conformance.profile_api(name), name) for name in conformance.profile_names()),
]
STAND_IN = "any"
"""A model without rules, for cases that name none."""


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


def violating_rows() -> Iterator[Row]:
    """The tables of the checker, then the rulebook's own samples."""
    for api, profile in PARSERS:
        for case in CASES[api] if profile is None else bodies_profiles.CASES[profile]:
            if case.severity == "reject":
                yield Row(api, profile, case.rule, case.about, case.violating, case.model)
    for api, rule, sample in (param.values for param in EXAMPLES):
        api, rule = str(api), str(rule)
        if is_case(rule, sample):
            continue
        yield Row(api, None, rule, "example", BODIES.get(api, chat_body)(rule, sample), SAMPLE_MODELS.get(rule))
    for profile, rule, sample in (param.values for param in PROFILE_EXAMPLES):
        if is_case(str(rule), sample):
            continue
        yield Row("openai-chat", str(profile), str(rule), "example", chat_body(str(rule), sample), None)


def valid_rows() -> Iterator[Row]:
    seen: set[str] = set()
    for api, profile in PARSERS:
        for case in CASES[api] if profile is None else bodies_profiles.CASES[profile]:
            same = f"{api} {profile} {case.model} {case.valid}"
            if same not in seen:
                seen.add(same)
                yield Row(api, profile, case.rule, case.about, case.valid, case.model)


# Models on which the rulebook's sample is refused, where the rule depends on one.
SAMPLE_MODELS = {**MODELS, "GEM-15": "gemini-3.1-pro-preview", "ANT-26": "claude-sonnet-4-5-20250929"}


# ------------------------------------------------------------------------------------------- one provider for each API

# What the model says first; from then on it speaks for itself.
SCRIPTS = {
    "anthropic": "think x\nsay a\n---\nthink y\nsay a",
    "bedrock": "think x\nsay a",
    "gemini": "call f {}",
    "openai-responses": "\n---\n".join(
        ("think x\nsay a", "think y\nsay b", "say c", "say d", "say e", "call[call_1] f {}")
    ),
}
SCRIPTS["azure-foundry"] = SCRIPTS["openai-responses"]
# What the bodies of the tables bear for seals.
STAND_INS = {
    "anthropic": {bodies_anthropic.SIGNED["signature"], "a+b/cA=="},
    "bedrock": {bodies_anthropic.SIGNED["signature"], "c2ln"},
    "gemini": {bodies_gemini.SIGNATURE, "-_-_", "KO4J"},
    "openai-responses": {r.ENCRYPTED},
    "azure-foundry": {"gAAAAx"},
}


class Provider:
    """A running provider and its state so far."""

    def __init__(self, api: str, profile: str | None) -> None:
        self.api = api
        self.running = emulator.start(api, profile=profile, script=SCRIPTS.get(api) if profile is None else None)
        self.state: dict[str, Any] = {}
        if profile is None and api in SCRIPTS:
            getattr(self, f"_{api.replace('-', '_')}")()

    def post(self, row_body: Body, model: str | None = None, *, stream: bool = False, **more: Any) -> Response:
        body = {**({"model": model or STAND_IN} if self.api not in ("gemini", "bedrock") else {}), **row_body}
        if self.api == "anthropic":
            body = {"max_tokens": 4096, **body}
            more = {"headers": {"anthropic-beta": "compact-2026-01-12,compact-2026-09-04"}, **more}
        model = _path_model(body, model)
        if self.api in ("gemini", "bedrock") and "model" not in body:
            model = model or "any"
        return post(self.running, body, model=model, stream=stream, **more)

    def localize(self, body: Any) -> Any:
        """A body as if what it sends back had been made here."""
        if isinstance(body, list):
            return [self.localize(entry) for entry in body]
        if (
            isinstance(body, dict)
            and body.get("type") == "compaction"
            and STAND_INS[self.api] & {body.get("signature"), body.get("encrypted_content")}
        ):
            made = self.state["compaction"]
            return {**made, "content": body["content"]} if body.get("content", "") is None else made
        if not isinstance(body, dict):
            return self.state["seal"] if isinstance(body, str) and body in STAND_INS.get(self.api, ()) else body
        changed = {key: self.localize(value) for key, value in body.items()}
        if self.api == "anthropic" and changed.get("type") == "thinking" and not changed["thinking"]:
            changed["signature"] = self.state["blank"]
        if "responses" not in self.api and self.api != "azure-foundry":
            return changed
        if changed.get("type") == "item_reference" or set(changed) == {"id"}:
            named = {"msg_1": self.state["msg"], "rs_1": self.state["rs"][0]}
            # A call that is named is a call that is answered; behind reasoning it is the message that came with it.
            named["fc_1"] = self.state["fc" if "type" not in changed else "thought msg"]
            changed["id"] = named.get(changed["id"], changed["id"])
        elif changed.get("type") == "reasoning" and "encrypted_content" not in changed and "id" in changed:
            changed["id"] = self.state["rs"][str(changed["id"]).startswith("rs_1123")]
        if "previous_response_id" in changed:
            sorts = {item.get("type") for item in changed.get("input", ())}
            answers = sorts & self.state["resp"].keys() - {None} if "function_call" not in sorts else ()
            changed["previous_response_id"] = self.state["resp"][next(iter(answers), None)]
        return changed

    def _anthropic(self) -> None:
        asked = {"messages": [bodies_anthropic.Q], "thinking": bodies_anthropic.ON}
        blocks = self.post(asked, bodies_anthropic.OLD).body["content"]
        self.state["seal"] = next(block["signature"] for block in blocks if block["type"] == "thinking")
        omitted = {**asked, "thinking": {**bodies_anthropic.ON, "display": "omitted"}}
        block = self.post(omitted, bodies_anthropic.OLD).body["content"][0]
        assert block["thinking"] == ""
        self.state["blank"] = block["signature"]
        asked = {"messages": [bodies_anthropic.Q], **bodies_anthropic.ON_DEMAND}
        self.state["compaction"] = self.post(asked, bodies_anthropic.NEW).body["content"][0]

    def _bedrock(self) -> None:
        asked = {"messages": [bodies_bedrock.Q], **bodies_bedrock.ON}
        blocks = self.post(asked, bodies_bedrock.CLAUDE).body["output"]["message"]["content"]
        self.state["seal"] = next(
            block["reasoningContent"]["reasoningText"]["signature"] for block in blocks if "reasoningContent" in block
        )

    def _gemini(self) -> None:
        asked = bodies_gemini.declares({"name": "f"})
        parts = self.post(asked, bodies_gemini.NEW).body["candidates"][0]["content"]["parts"]
        self.state["seal"] = next(part["thoughtSignature"] for part in parts if "thoughtSignature" in part)

    def _openai_responses(self) -> None:
        sealing: Body = {"input": "q", "include": ["reasoning.encrypted_content"]}
        thoughts = [self.post(sealing, "gpt-5").body["output"] for _ in range(2)]
        talks = [self.post({"input": given}, "gpt-4.1").body for given in ("q", "q", [r.USER, self._approval])]
        asks = self.post({"input": "q", "tools": [r.TOOL]}, "gpt-4.1").body
        compacts = {"context_management": [{"type": "compaction", "compact_threshold": 1000}], "input": "q" * 5000}
        self.state = {
            "compaction": self.post(compacts, "gpt-4.1").body["output"][0],
            "seal": thoughts[0][0]["encrypted_content"],
            "rs": [items[0]["id"] for items in thoughts],
            "thought msg": thoughts[0][1]["id"],
            "msg": talks[0]["output"][0]["id"],
            "fc": asks["output"][0]["id"],
            "resp": {None: talks[1]["id"], "mcp_approval_response": talks[2]["id"], "function_call_output": asks["id"]},
        }

    @property
    def _approval(self) -> Body:
        return r.WHO if self.api == "openai-responses" else {**r.WHO, "id": bodies_foundry.make_id("mcpr")}

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
    "KIM-03": {""},
    "OAI-CHAT-15": {"c"},
    "COMP-01": {"'reasoning_content'", "'role:assistant'"},
    "MIS-12": {"a.b"},
}
# What stands before the rulebook's quotation, or around it.
LEADS = {
    "ANT-08": r"messages\.\d+\.content\.\d+: ",
    "BED-01": r"\d+ validation errors? detected: (?:.+; )?",
    "BED-02": r"\d+ validation errors? detected: (?:.+; )?",
    "GEM-10": r"\* GenerateContentRequest\.",
}


def sentence(rule: str, text: str) -> re.Pattern[str]:
    """The rulebook's text with its concrete parts (places, numbers, ids) left open, as a pattern."""
    written: list[str] = []
    for token in text.split(" "):
        if token.startswith("'^"):
            written.append(re.sub(r"\d+", r"\\d+", re.escape(token)))
        elif _CONCRETE.fullmatch(token) or token in VALUES.get(rule, ()):
            end = token[-1:] if token[-1:] in (*".,:;)",) and not token.endswith("...") else ""
            written.append(r"[^ ]*(?:, [^ ]+)*?" + re.escape(end))
        else:
            written.append(re.escape(token))
    more = ".*" if text.endswith("...") else r"(?:; .+)?" if rule.startswith("BED-0") else ""
    return re.compile(LEADS.get(rule, "") + " ".join(written) + more + r"\n?", re.DOTALL)


def sentences(error: ParsedError) -> list[str]:
    """The sentences of an error: its message, and each finding with its place."""
    listed = [one for one in error.details if "@type" not in one]
    return [error.message, *(f"{one.get('message') or one.get('msg')} (param {one.get('param')})" for one in listed)]


def recalled(rule: str) -> bool:
    return "[Error wording recalled" in RULEBOOK[rule].rule


# Models of other vendors: the emulated provider has no such model.
MODEL_NOT_SERVED = {
    *(f"openai-responses OAI-RESP-06 {item} between, to DeepSeek" for item in ("a message", "reasoning")),
    *(f"openai-chat COMP-09 MiniMax by its name, {arguments!r}" for arguments in ("{path:", "", "None")),
}


def different_text(row: Row) -> str | bool:
    """Whether a broken is deliberately told in another sentence than the sample's, and in which, if that is noted."""
    other = openai_texts.DIFFERENT_TEXTS.get(row.rule, {}).get(row.about)
    if other is not None:
        return other
    if bodies_types.has_text_of_its_own(row.rule, row.body) or row.id in MODEL_NOT_SERVED:
        return True
    if row.about in claude_texts.DIFFERENT_TEXTS.get(row.rule, ()):
        return claude_texts.EXACT_TEXTS.get(row.api, {}).get(f"{row.rule} {row.about}", True)
    return False


# ------------------------------------------------------------------------------------------------------------ refusals

# Fragments that, put into a body, break other rules too: the one that the provider looks at first is told.
_UNREAD = "Failed to deserialize the JSON body into the target type: messages[1]: missing field "
_LAST = "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
_OPEN = "must be followed by tool messages responding to each"
REPORTED_FIRST: dict[str, str] = {
    # The form of the JSON comes before what it says.
    "ANT-03": "messages.1.content.0.tool_use.input: Field required",
    "ANT-24": "thinking.enabled.budget_tokens: Field required",
    "ANT-30": "thinking.enabled.budget_tokens: Field required",
    "BED-06": "1 validation error detected: Value at 'messages.1.member.content' failed to satisfy constraint",
    "DS-01": f"{_UNREAD}`name`",
    "DS-05": f"{_UNREAD}`name`",
    "DS-06": f"{_UNREAD}`content`",
    "DS-07": f"{_UNREAD}`content`",
    "GEM-07": "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.",
    "KIM-01": "Invalid request: unsupported tool call type ''",
    "KIM-02": "Invalid request: unsupported tool call type ''",
    "KIM-04": "Invalid request: unsupported tool call type ''",
    "KIM-06": "Invalid request: unsupported tool call type ''",
    "MIS-03": "Field required",
    "MIS-07": "Field required",
    "MIS-08": "Field required",
    "MIS-10": "Field required",
    "MIS-12": "Field required",
    "OAI-CHAT-15": "Missing required parameter: 'messages[1].tool_calls[0].type'.",
    "OAI-CHAT-17": "Invalid type for 'tools[0]': expected an object, but got a string instead.",
    "QWEN-01": "'name' is a required property - 'messages.1.tool_calls.0.function'",
    "QWEN-02": "<400> InternalError.Algo.InvalidParameter: The content field is a required field.",
    "QWEN-04": "<400> InternalError.Algo.InvalidParameter: The content field is a required field.",
    "COMP-09": "Missing required parameter: 'messages[1].tool_calls[0].function.name'.",
    "COMP-11": "Invalid type for 'messages[1].tool_calls[0]': expected an object, but got a string instead.",
    "COMP-17": "Missing required parameter: 'messages[1].tool_calls[0].function.name'.",
    "COMP-18": "All non-assistant messages must contain 'content'",
    # The order of turns comes before what is in them.
    "ANT-26": "messages.1.content.0: When thinking is disabled, an `assistant` message in the final position cannot",
    "BED-08": "A conversation must alternate between user and assistant roles.",
    "DS-02": "The last message of deepseek-reasoner must be a user message",
    "GEM-01": "Please ensure that function call turn comes immediately after a user turn",
    "GEM-02": "Please ensure that single turn requests end with a user role",
    "GEM-04": "Please ensure that function response turn comes immediately after a function call turn.",
    "KIM-03": f"an assistant message with 'tool_calls' {_OPEN}",
    "MIS-01": _LAST,
    "MIS-02": _LAST,
    "MIS-11": _LAST,
    "OAI-RESP-08": "No tool output found for function call call_1.",
    "OAI-RESP-11": "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    # What is foreign is so under any id.
    "OAI-RESP-28": "The encrypted content gAAA...AABo could not be verified.",
    "QWEN-03": f'<400> InternalError.Algo.InvalidParameter: An assistant message with "tool_calls" {_OPEN}',
}
# Samples of rules that hold for some deployments or older models only; taken by the one that is emulated.
LET_PASS = {
    "ANT-16": "empty replies in the middle were refused by older versions",
    "ANT-20": "newer models take messages of the system",
    "COMP-12": "the server's own endpoint wants an object; the one that is emulated takes text",
    "GEM-11": "older endpoints and proxies",
    "GEM-12": "a proxy's check",
    "OAI-CHAT-22": "some deployments",
}
# Their text is a client library's, or what was left of it in a report.
REPORTED_BY_OTHER_RULE = {"BED-09", *openai_texts.SHORTENED}
WITH_STATE = {"OAI-RESP-04"}
# The provider reports these before the checker parses the body.
BEFORE_THE_CHECKER = {
    "gemini GEM-09 contents missing",
    *(f"{api} {bodies_types.RULES[api]} messages as null" for api in ("anthropic", "deepseek", "kimi", "openai-chat")),
    *(f"{api} {rule} a number as model" for api, rule in bodies_types.RULES.items() if api != "gemini"),
}


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in violating_rows()])
def test_violation_gets_the_provider_error(providers: Providers, row: Row) -> None:
    provider = providers[row.api, row.profile]
    body = row.body if row.rule.startswith("AZF-") or row.rule not in WITH_STATE else provider.localize(row.body)
    sent = provider.post(body, row.model)
    record = provider.running.requests[-1]
    assert row.rule in {violation.rule for violation in record.violations} or row.id in BEFORE_THE_CHECKER
    if row.about == "example" and row.rule in LET_PASS:
        assert sent.status == 200
        return
    assert sent.status >= 400, record
    error = ENVELOPES[row.profile or row.api](sent)
    assert record.refused == error.message
    check_text(row, sent, error)


def check_text(row: Row, sent: Response, error: ParsedError) -> None:
    known = RULEBOOK[row.rule]
    own = row.profile is not None or row.rule.startswith(openai_texts.RULE_PREFIXES[row.api])
    other = own and different_text(row)
    if row.about == "example" and row.rule in REPORTED_FIRST:
        assert error.message.startswith(REPORTED_FIRST[row.rule])
        return
    if isinstance(other, str):
        assert error.message == other
        return
    if not own or other:
        return
    assert sent.status == (known.error_status or 400)
    codes = re.findall(r"compaction_[a-z_]+", known.rule.partition("details.error_code")[2])
    assert error.code in codes or not codes
    if known.error_text and not recalled(row.rule) and row.rule not in REPORTED_BY_OTHER_RULE:
        wanted = sentence(row.rule, known.error_text)
        assert any(wanted.fullmatch(told) for told in sentences(error)), f"{sentences(error)} is not {wanted.pattern}"


# --------------------------------------------------------------------------------------------------------- lawful twins


# Lawful to the judge, which looks at history; the provider itself refuses their form.
ILL_FORMED = {
    "anthropic ANT-12 no type": "messages.1.content.0: Input tag 'new' found using 'type' does not match any of",
    **dict.fromkeys(
        (f"openai-responses OAI-RESP-06 {item} between, to DeepSeek" for item in ("a message", "reasoning")),
        "The model `deepseek-v4-flash` does not exist",
    ),
    "openai-responses OAI-RESP-07 mixed ids, another maker": "The model `grok-4` does not exist",
    "openai-responses OAI-RESP-11 OpenAI's, on Bedrock Mantle": "The encrypted content rsn_...5ZVr could",
    "openai-responses OAI-RESP-06 a message between": "The model `qwen3-max` does not exist",
    "openai-responses OAI-RESP-19 choice as in chat": "Tool choice 'f' not found in 'tools' parameter.",
}


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in valid_rows()])
def test_valid_twin_is_accepted(providers: Providers, row: Row) -> None:
    provider = providers[row.api, row.profile]
    body = provider.localize(row.body)
    sent = provider.post(body, row.model)
    if row.id in ILL_FORMED:
        assert ENVELOPES[row.api](sent).message.startswith(ILL_FORMED[row.id])
        return
    assert sent.status == 200, sent.data
    assert sent.headers["content-type"].startswith("application/json") or body.get("stream")
    streamed = provider.post(body, row.model, stream=True)
    assert streamed.status == 200, streamed.data
    framing = "application/vnd.amazon.eventstream" if row.api == "bedrock" else "text/event-stream"
    assert streamed.headers["content-type"].startswith(framing)
    assert segue.assemble(streamed.data, row.api).finish in ("stop", "tool_calls", "pause")


# ------------------------------------------------------------------------------------- what only the maker can see

KEY, OTHER_KEY = "account-one", "account-two"
BETA = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
BOUND = "claude-fable-5-1"
LOOSE = bodies_anthropic.OLD
CLAUDE_ON = {"type": "enabled", "budget_tokens": 1024}


@pytest.fixture(scope="module")
def fresh() -> Iterator[dict[str, Emulator]]:
    """Providers that speak for themselves, for conversations that go on over several requests."""
    running = {
        api: emulator.start(api)
        for api in ("anthropic", "bedrock", "gemini", "openai-responses", "azure-foundry", "kimi")
    }
    yield running
    for one in running.values():
        one.stop()


def claude_begins(anthropic: Emulator, model: str) -> dict[str, Any]:
    """A conversation with Claude up to a call, which the client has answered."""
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": 2000,
        "system": "Be brief.",
        "thinking": CLAUDE_ON,
        "tools": [bodies_anthropic.TOOL],
        "messages": [{"role": "user", "content": "Use f."}],
    }
    error = post(anthropic, body, key=KEY).body
    assert error["content"][0]["type"] == "thinking"
    call = next(block for block in error["content"] if block["type"] == "tool_use")
    answer = {"type": "tool_result", "tool_use_id": call["id"], "content": "42"}
    body["messages"] = [*body["messages"], {"role": "assistant", "content": error["content"]}]
    body["messages"].append({"role": "user", "content": [answer]})
    return body


def rebuilt(body: dict[str, Any], **blocks: Any) -> dict[str, Any]:
    """The same with the thinking block of the reply changed."""
    asked, error, answered = body["messages"]
    content = [{**block, **blocks} if block["type"] == "thinking" else block for block in error["content"]]
    return {**body, "messages": [asked, {**error, "content": content}, answered]}


SIGNATURE_REFUSED = "messages.1.content.0: Invalid `signature` in `thinking` block"
MODIFIED = (
    "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
)


@pytest.mark.parametrize("model", [LOOSE, BOUND])
def test_claude_signature_is_accepted(fresh: dict[str, Emulator], model: str) -> None:
    body = claude_begins(fresh["anthropic"], model)
    assert post(fresh["anthropic"], body, key=KEY).status == 200
    marked = rebuilt(body)
    marked["messages"][0] = {
        "role": "user",
        "content": [{"type": "text", "text": "Use f.", "cache_control": {"type": "ephemeral"}}],
    }
    assert post(fresh["anthropic"], marked, key=KEY).status == 200
    longer = {**body, "messages": [*body["messages"], {"role": "assistant", "content": "Done."}, bodies_anthropic.Q]}
    assert post(fresh["anthropic"], longer, key=KEY).status == 200


@pytest.mark.parametrize(
    ("rule", "changed", "message"),
    [
        ("ANT-26", {"signature": "EqQBCgIYAhIM"}, SIGNATURE_REFUSED),
        ("ANT-26", {"signature": "not base64!"}, SIGNATURE_REFUSED),
        ("ANT-25", {"thinking": "Something else."}, MODIFIED),
    ],
)
def test_thinking_that_was_forged_or_edited(
    fresh: dict[str, Emulator], rule: str, changed: dict[str, str], message: str
) -> None:
    sent = post(fresh["anthropic"], rebuilt(claude_begins(fresh["anthropic"], LOOSE), **changed), key=KEY)
    refused(fresh["anthropic"], sent, rule, 400, message)


def refused(provider: Emulator, sent: Response, rule: str, status: int, message: str) -> ParsedError:
    error = ENVELOPES[provider.api](sent)
    assert (sent.status, error.message[: len(message)]) == (status, message)
    assert rule in {violation.rule for violation in provider.requests[-1].violations}
    if rule in RULEBOOK:
        assert status == RULEBOOK[rule].error_status
        wanted = sentence(rule, RULEBOOK[rule].error_text or "")
        assert wanted.fullmatch(error.message), f"{error.message} is not {wanted.pattern}"
    return error


def test_a_signature_with_a_letter_changed(fresh: dict[str, Emulator]) -> None:
    body = claude_begins(fresh["anthropic"], LOOSE)
    signature = body["messages"][1]["content"][0]["signature"]
    for place in (0, len(signature) // 2, len(signature) - 5):
        other = "A" if signature[place] != "A" else "B"
        edited = signature[:place] + other + signature[place + 1 :]
        refused(
            fresh["anthropic"],
            post(fresh["anthropic"], rebuilt(body, signature=edited), key=KEY),
            "ANT-26",
            400,
            SIGNATURE_REFUSED,
        )


def test_thinking_of_another_account(fresh: dict[str, Emulator]) -> None:
    body = claude_begins(fresh["anthropic"], LOOSE)
    refused(fresh["anthropic"], post(fresh["anthropic"], body, key=OTHER_KEY), "ANT-26", 400, SIGNATURE_REFUSED)


def test_thinking_of_another_model_is_passed_over(fresh: dict[str, Emulator]) -> None:
    """ANT-29: it is dropped, not refused."""
    body = claude_begins(fresh["anthropic"], LOOSE)
    assert post(fresh["anthropic"], {**body, "model": "claude-opus-4-5"}, key=KEY).status == 200


def test_thinking_that_was_moved(fresh: dict[str, Emulator]) -> None:
    """ANT-25: one of two blocks left out, and their order turned round."""
    with emulator.start("anthropic", script="think one\ncall f {}\nthink two\ncall f {}") as provider:
        body = claude_begins_with_two(provider)
        blocks: list[dict[str, Any]] = body["messages"][1]["content"]
        thoughts = [place for place, block in enumerate(blocks) if block["type"] == "thinking"]
        assert len(thoughts) == 2
        assert post(provider, body, key=KEY).status == 200
        first, second = thoughts
        less = [block for place, block in enumerate(blocks) if place != second]
        turned = list(blocks)
        turned[first], turned[second] = blocks[second], blocks[first]
        for content in (less, turned):
            asked, error, answered = body["messages"]
            sent = post(provider, {**body, "messages": [asked, {**error, "content": content}, answered]}, key=KEY)
            refused(provider, sent, "ANT-25", 400, MODIFIED)


def claude_begins_with_two(provider: Emulator) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": LOOSE,
        "max_tokens": 2000,
        "thinking": CLAUDE_ON,
        "tools": [bodies_anthropic.TOOL],
        "messages": [bodies_anthropic.Q],
    }
    content = post(provider, body, key=KEY).body["content"]
    ids = [block["id"] for block in content if block["type"] == "tool_use"]
    answers = [{"type": "tool_result", "tool_use_id": call, "content": "r"} for call in ids]
    body["messages"] = [
        bodies_anthropic.Q,
        {"role": "assistant", "content": content},
        {"role": "user", "content": answers},
    ]
    return body


ELSEWHERE = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
)
DIFFERS = {
    "system": "The `system` prompt differs from the one this block was created with.",
    "tools": "The `tools` list differs from the one this block was created with.",
    "messages": "",
}


@pytest.mark.parametrize("part", DIFFERS)
def test_thinking_of_another_conversation(fresh: dict[str, Emulator], part: str) -> None:
    anthropic = fresh["anthropic"]
    body = claude_begins(anthropic, BOUND)
    _, error, answered = body["messages"]
    moved = {
        "system": {**body, "system": "Be long."},
        "tools": {**body, "tools": [*body["tools"], {**bodies_anthropic.TOOL, "name": "g"}]},
        "messages": {**body, "messages": [{"role": "user", "content": "Use f!"}, error, answered]},
    }[part]
    sent = post(anthropic, moved, key=KEY)
    told = anthropic_message(sent)
    assert sent.status == RULEBOOK["ANT-28"].error_status
    assert told.startswith(ELSEWHERE)
    assert told.endswith(DIFFERS[part])
    if part == "system":
        assert told == RULEBOOK["ANT-28"].error_text
    # An older model does not mind, nor does one that was told to drop the block, if the header says so too.
    loose = claude_begins(anthropic, LOOSE)
    assert post(anthropic, {**loose, **({part: moved[part]} if part != "messages" else {})}, key=KEY).status == 200
    dropping = {**moved, "thinking": {**CLAUDE_ON, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    assert post(anthropic, dropping, key=KEY, headers=BETA).status == 200
    assert post(anthropic, dropping, key=KEY).status == 400


def anthropic_message(sent: Response) -> str:
    error = ENVELOPES["anthropic"](sent)
    assert error.kind == "invalid_request_error"
    return error.message


def test_claude_signature_in_bedrock(fresh: dict[str, Emulator]) -> None:
    """BED-11: the same rules, told by the service."""
    bedrock = fresh["bedrock"]
    body: dict[str, Any] = {"messages": [bodies_bedrock.Q], "toolConfig": bodies_bedrock.TOOLS, **bodies_bedrock.ON}
    content = post(bedrock, body, model=bodies_bedrock.CLAUDE, key=KEY).body["output"]["message"]["content"]
    calls = [block["toolUse"]["toolUseId"] for block in content if "toolUse" in block]
    body["messages"] = [bodies_bedrock.Q, {"role": "assistant", "content": content}]
    body["messages"].append(
        {"role": "user", "content": [bodies_bedrock.result(call) for call in calls] or [bodies_bedrock.TEXT]}
    )
    assert post(bedrock, body, model=bodies_bedrock.CLAUDE, key=KEY).status == 200
    sent = post(bedrock, body, model=bodies_bedrock.CLAUDE, key=OTHER_KEY)
    told = "The model returned the following errors: messages.1.content.0: Invalid `signature` in `thinking` block"
    assert (sent.status, bedrock_message(sent)) == (400, told)


def bedrock_message(sent: Response) -> str:
    error = ENVELOPES["bedrock"](sent)
    assert error.kind == "ValidationException"
    return error.message


@pytest.mark.parametrize("spelt", ["thoughtSignature", "thought_signature"])
def test_signatures_of_gemini(fresh: dict[str, Emulator], spelt: str) -> None:
    gemini = fresh["gemini"]
    body = bodies_gemini.declares({"name": "f"}, {"name": "g"})
    parts = post(
        gemini, {**body, "contents": [bodies_gemini.user({"text": "Use f."})]}, model=bodies_gemini.NEW, key=KEY
    ).body["candidates"][0]["content"]["parts"]
    call = next(part for part in parts if "functionCall" in part)
    signature = call.pop("thoughtSignature")
    answer: Body = {"functionResponse": {**{key: call["functionCall"][key] for key in ("id", "name")}, "response": {}}}

    def again(seal: str, key: str = KEY) -> Response:
        error = bodies_gemini.model({**call, spelt: seal})
        return post(gemini, bodies_gemini.body(error, bodies_gemini.user(answer)), model=bodies_gemini.NEW, key=key)

    assert again(signature).status == 200
    assert again(bodies_gemini.SKIP).status == 200
    middle = len(signature) // 2
    tampered = signature[:middle] + ("A" if signature[middle] != "A" else "B") + signature[middle + 1 :]
    for sent in (again(tampered), again(bodies_gemini.SIGNATURE), again(signature, OTHER_KEY)):
        refused(gemini, sent, "GEM-18", 400, "Corrupted thought signature.")


# ------------------------------------------------------------------------------------- what a server keeps of items


class Kept(NamedTuple):
    """A reply with reasoning, a message and a call, that was kept or not."""

    input: list[Any]
    reply: dict[str, Any]
    answered: list[Any]

    def item(self, sort: str) -> dict[str, Any]:
        return next(item for item in self.reply["output"] if item["type"] == sort)


def reasoned(provider: Emulator, *, store: bool = True, seal: bool = True) -> Kept:
    given: list[Any] = [{"role": "user", "content": "Use f."}]
    more: Body = {"include": ["reasoning.encrypted_content"]} if seal else {}
    body: Body = {"model": "gpt-5", "input": given, "tools": [r.TOOL], "store": store, **more}
    reply = post(provider, body, key=KEY).body
    calls = [item for item in reply["output"] if item["type"] == "function_call"]
    assert calls
    answers = [r.result(call["call_id"]) for call in calls]
    return Kept(given, reply, answers)


def sent_back(provider: Emulator, kept: Kept, output: list[Any], *, key: str = KEY, **more: Any) -> Response:
    body = {"model": "gpt-5", "tools": [r.TOOL], "input": [*kept.input, *output, *kept.answered], **more}
    return post(provider, body, key=key)


RESPONSES = ["openai-responses", "azure-foundry"]


@pytest.mark.parametrize("api", RESPONSES)
def test_a_reply_is_taken_back_whole(fresh: dict[str, Emulator], api: str) -> None:
    kept = reasoned(fresh[api])
    assert sent_back(fresh[api], kept, kept.reply["output"]).status == 200
    references = [{"type": "item_reference", "id": item["id"]} for item in kept.reply["output"]]
    assert sent_back(fresh[api], kept, references).status == 200
    bare = [
        {key: value for key, value in item.items() if key != "id"}
        for item in kept.reply["output"]
        if item["type"] != "reasoning"
    ]
    assert sent_back(fresh[api], kept, bare).status == 200
    after = {"model": "gpt-5", "previous_response_id": kept.reply["id"], "input": kept.answered, "tools": [r.TOOL]}
    sent = post(fresh[api], after, key=KEY)
    assert (sent.status, sent.body["previous_response_id"]) == (200, kept.reply["id"])


def test_items_without_the_reasoning_that_they_came_with(fresh: dict[str, Emulator]) -> None:
    """OAI-RESP-08 and 09."""
    provider = fresh["openai-responses"]
    kept = reasoned(provider)
    without = [item for item in kept.reply["output"] if item["type"] != "reasoning"]
    call, thought = kept.item("function_call"), kept.item("reasoning")
    for item in (item for item in without if item["type"] == "message"):
        error = ENVELOPES[provider.api](sent_back(provider, kept, without))
        assert (
            error.message
            == f"Item '{item['id']}' was provided without its required 'reasoning' item: '{thought['id']}'."
        )
    sent = sent_back(provider, kept, [call])
    named = f"Item '{call['id']}' of type 'function_call'"
    words = f"{named} was provided without its required 'reasoning' item: '{thought['id']}'."
    refused(provider, sent, "OAI-RESP-08", 400, words)


def test_a_message_without_its_reasoning() -> None:
    """OAI-RESP-09"""
    with emulator.start("openai-responses", script="think x\nsay a") as provider:
        output = post(provider, {"model": "gpt-5", "input": "q"}, key=KEY).body["output"]
        thought, message = output
        sent = post(provider, {"model": "gpt-5", "input": [r.USER, message, r.USER]}, key=KEY)
        error = ENVELOPES[provider.api](sent)
        assert sent.status == RULEBOOK["OAI-RESP-09"].error_status
        assert error.message.startswith(f"Item '{message['id']}' ")
        assert error.message.endswith(f"was provided without its required 'reasoning' item: '{thought['id']}'.")
        assert post(provider, {"model": "gpt-5", "input": [r.USER, thought, message, r.USER]}, key=KEY).status == 200


@pytest.mark.parametrize("api", RESPONSES)
def test_encrypted_reasoning_of_another_provider(fresh: dict[str, Emulator], api: str) -> None:
    """OAI-RESP-11 and 12: tampered with, made up, or of another account."""
    provider = fresh[api]
    kept = reasoned(provider, store=False)
    assert sent_back(provider, kept, kept.reply["output"], store=False).status == 200
    seal = kept.item("reasoning")["encrypted_content"]
    middle = len(seal) // 2
    tampered = seal[:middle] + ("A" if seal[middle] != "A" else "B") + seal[middle + 1 :]
    patterns = [sentence(rule, RULEBOOK[rule].error_text or "") for rule in ("OAI-RESP-11", "OAI-RESP-12")]
    for written, key in ((tampered, KEY), ("gAAAAABoForeign0", KEY), (seal, OTHER_KEY)):
        output = [
            {**item, "encrypted_content": written} if item["type"] == "reasoning" else item
            for item in kept.reply["output"]
        ]
        sent = sent_back(provider, kept, output, key=key, store=False)
        error = ENVELOPES[api](sent)
        assert (sent.status, error.code) == (400, "invalid_encrypted_content")
        assert any(pattern.fullmatch(error.message) for pattern in patterns)


@pytest.mark.parametrize("api", RESPONSES)
def test_items_that_were_not_stored(fresh: dict[str, Emulator], api: str) -> None:
    """OAI-RESP-10: of a reply that was not to be stored, of another account, or of nobody."""
    provider = fresh[api]
    unkept = reasoned(provider, store=False, seal=False)
    thought = unkept.item("reasoning")
    sent = sent_back(provider, unkept, unkept.reply["output"], store=False)
    words = f"Item with id '{thought['id']}' not found. Items are not persisted when `store` is set to false."
    refused(provider, sent, "OAI-RESP-10", 404, words)
    kept = reasoned(provider, seal=False)
    sent = sent_back(provider, kept, kept.reply["output"], key=OTHER_KEY)
    assert sent.status == 404
    assert ENVELOPES[api](sent).message.startswith(f"Item with id '{kept.item('reasoning')['id']}' not found.")


def test_unknown_previous_response(fresh: dict[str, Emulator]) -> None:
    provider = fresh["openai-responses"]
    kept, unkept = reasoned(provider), reasoned(provider, store=False)
    for gone, key in (("resp_68f0", KEY), (unkept.reply["id"], KEY), (kept.reply["id"], OTHER_KEY)):
        sent = post(provider, {"model": "gpt-5", "input": "q", "previous_response_id": gone}, key=key)
        error = ENVELOPES["openai-responses"](sent)
        assert (sent.status, error.code) == (400, "previous_response_not_found")
        assert error.message == f"Previous response with id '{gone}' not found."
        assert sent.body["error"]["param"] == "previous_response_id"


def test_older_encrypted_reasoning_in_foundry() -> None:
    """AZF-06: that of the newest turn alone may be sent back."""
    asking: Body = {"model": "gpt-5", "store": False, "include": ["reasoning.encrypted_content"]}
    with emulator.start("azure-foundry", script="think x\nsay a\n---\nthink y\nsay b") as provider:
        older = [r.USER, *post(provider, {**asking, "input": [r.USER]}, key=KEY).body["output"], r.USER]
        newer = post(provider, {**asking, "input": older}, key=KEY).body["output"]
        assert [item["type"] for item in (older[1], newer[0])] == ["reasoning", "reasoning"]
        sent = post(provider, {**asking, "input": [*older, *newer, r.USER]}, key=KEY)
        error = ENVELOPES["azure-foundry"](sent)
        assert (sent.status, error.message, error.code) == (400, RULEBOOK["AZF-06"].error_text, "invalid_payload")
        less = [item for item in older if item.get("type") != "reasoning"]
        less = [{key: value for key, value in item.items() if key != "id"} for item in less]
        assert post(provider, {**asking, "input": [*less, *newer, r.USER]}, key=KEY).status == 200


def test_ids_that_derail_kimi(fresh: dict[str, Emulator]) -> None:
    """KIM-01: no error, but calls that are told as text."""
    kimi = fresh["kimi"]
    call = {"id": "call_abc", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    history = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_abc", "content": "r"},
    ]
    asked = [{"role": "user", "content": "Use f."}]
    sent = post(kimi, {"model": "kimi-k2-0905-preview", "messages": [*asked, *history], "tools": [tool]})
    message = sent.body["choices"][0]["message"]
    assert sent.status == 200
    assert kimi.requests[-1].confused
    assert not kimi.requests[-1].accepted
    assert "<|tool_calls_section_begin|>" in message["content"]
    assert not message.get("tool_calls")
    own = post(kimi, {"model": "kimi-k2-0905-preview", "messages": asked, "tools": [tool]})
    assert not kimi.requests[-1].confused
    assert own.body["choices"][0]["message"]["tool_calls"][0]["id"] == "functions.f:0"


# ----------------------------------------------------------------------------------------------------- none is left out

BY_STATE = {
    "ANT-25",
    "ANT-26",
    "ANT-28",
    "GEM-18",
    "OAI-RESP-08",
    "OAI-RESP-09",
    "OAI-RESP-10",
    "OAI-RESP-11",
    "OAI-RESP-12",
    "OAI-RESP-28",
    "AZF-06",
}
NOT_BY_A_BODY = {
    "OAI-CHAT-18": "about streams that a client reads; the text is a client library's",
    "OAI-CHAT-22": "refused by some deployments only; recorded as a risk",
    "GEM-08": "refused by some versions only; recorded as a risk",
    "GEM-11": "refused by older endpoints and proxies; recorded as a risk",
    "GEM-12": "a proxy's check; recorded as a risk",
    "ANT-06": "the older wording of ANT-04, which is said today",
    "ANT-50": "the limit is not known",
    "ANT-51": "an overload",
    "OAI-RESP-29": "about the body of /responses/compact",
    "GEM-16": "Vertex AI's wording of GEM-15; the Gemini API is emulated",
    "GEM-19": "a signature of Vertex AI is a foreign one here: GEM-18",
    "GEM-29": "about streams of the OpenAI-compatible endpoint; the text is a client library's",
    "AZF-12": "about streams that a client reads",
    "DS-03": "of the Anthropic-compatible endpoint, which is not emulated",
    "COMP-03": "about calls that the model makes",
    "COMP-20": "about how the server was started",
}
# ANT-40 is told where ANT-04 finds text behind a call.
REPORTED_WITH = {"ANT-40": ("ANT-04", "text behind it (ANT-40)")}


def test_every_rule_with_an_error_is_broken() -> None:
    wanted = {number for number, rule in RULEBOOK.items() if rule.error_text or rule.error_status}
    wanted = {number for number in wanted if not number.startswith("TPL-")}
    broken = {row.rule for row in violating_rows() if row.about != "example" and row.rule in wanted}
    assert not broken & NOT_BY_A_BODY.keys()
    assert broken | BY_STATE | NOT_BY_A_BODY.keys() | REPORTED_WITH.keys() == wanted
    for rule, about in REPORTED_WITH.values():
        assert any((row.rule, row.about) == (rule, about) for row in violating_rows())
    assert {
        rule.number for profile in profiles.PROFILES.values() for rule in profile.own_rules if rule.severity == "reject"
    } <= broken


def test_tables_have_only_used_rows() -> None:
    samples = {row.rule for row in violating_rows() if row.about == "example"}
    assert REPORTED_FIRST.keys() | LET_PASS.keys() <= samples
    assert not REPORTED_FIRST.keys() & LET_PASS.keys()
    assert VALUES.keys() | LEADS.keys() | REPORTED_BY_OTHER_RULE <= RULEBOOK.keys()
    assert WITH_STATE <= RULEBOOK.keys()
    assert BEFORE_THE_CHECKER <= {row.id for row in violating_rows()}
