"""Properties of an output body for any scenario: each function asserts one, with a message."""

from __future__ import annotations

import json
import re
from itertools import dropwhile, pairwise, takewhile
from typing import Any

import segue
from tests import converse
from tests.api_types import decode_messages
from tests.properties.readers import Reading, read
from tests.properties.scenario import Event, Picture, Reply, Result, Scenario, System, UserText, find_marker

try:
    from tests.conformance import vendor_foundry as foundry
except ImportError:  # the server library is not installed
    foundry = None

Body = dict[str, Any]

TARGETS = tuple(row.name for row in segue.formats() if getattr(row, "kind", "wire") != "text")
MODELS: dict[str, tuple[str | None, ...]] = {
    "openai-chat": (None, "gpt-4.1", "gpt-5"),
    "openai-responses": (None, "gpt-4.1", "gpt-5", "gpt-5.6-terra"),
    "azure-foundry": (None, "gpt-4.1", "gpt-5"),
    "anthropic": (*(None, "claude-3-5-sonnet-20241022", "claude-sonnet-4-5", "claude-opus-4-6", "claude-fable-5-1"),),
    "gemini": (None, "gemini-2.0-flash", "gemini-2.5-pro", "gemini-3-pro-preview", "gemini-4-argon"),
    "bedrock": (
        None,
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "amazon.nova-pro-v1:0",
        "meta.llama3-3-70b-instruct-v1:0",
        "mistral.mistral-large-2407-v1:0",
        "writer.palmyra-x5-v1:0",
    ),
    "kimi": (None, "kimi-k2-0905-preview", "kimi-k2-thinking", "kimi-k3"),
    "mistral": (*(None, "open-mixtral-8x22b", "mistral-small-2501", "magistral-medium-2509", "mistral-large-2512"),),
    "deepseek": (None, "deepseek-r1", "deepseek-reasoner", "deepseek-v3.2", "deepseek-v4-pro"),
    "qwen": (None, "qwen3.5-plus", "qwq-plus", "qwen3-coder-plus"),
}
INTERRUPTED = "[interrupted: no result was recorded]"
UNSUPPORTED = "not supported here"
ERROR = "[error]"

_CANONICAL = re.compile(r"hist_tool_[A-Za-z0-9_-]{1,54}")
_PROJECTED_IDS = {
    "openai-chat": re.compile(r"call_.{1,35}"),
    "openai-responses": re.compile(r"call_.{1,59}"),
    "azure-foundry": re.compile(r"call_.{1,59}"),
    "anthropic": re.compile(r"toolu_[A-Za-z0-9_-]+"),
    "bedrock": re.compile(r"tooluse_[A-Za-z0-9_-]{1,56}|[A-Za-z0-9]{9}"),
    "mistral": re.compile(r"[A-Za-z0-9]{9}"),
    "deepseek": re.compile(r"call_.{1,59}"),
    "qwen": re.compile(r"call_.{1,59}"),
}
# Left open under `pending=keep`: an unanswered call, and with it an ending that the target would not take.
_PENDING = {
    "ANT-04",
    "OAI-CHAT-03",
    "OAI-RESP-04",
    "KIM-02",
    "MIS-03",
    "MIS-10",
    "DS-05",
    "DS-08",
    "QWEN-01",
    "GEM-01",
    "GEM-05",
    "BED-04",
}
# Dialects of the Chat wire that have no role for later system text.
PLAIN_ROLES = ("kimi", "mistral", "deepseek", "qwen")
_PROVIDERS = {row.name: row.provider for row in segue.formats() if row.kind != "text"}
_MADE = ("reasoning", "function_call", "custom_tool_call")


def is_same_provider(source: str, target: str) -> bool:
    """Whether two APIs are of one provider, so that ids are valid on both."""
    return _PROVIDERS[source] == _PROVIDERS[target]


def messages_of(body: Body) -> list[Body]:
    """The messages of a body, under the key of its API."""
    return next((body[key] for key in ("messages", "input", "contents") if isinstance(body.get(key), list)), [])


def model_of(body: Body) -> str | None:
    """The model of a body."""
    return body.get("modelId", body.get("model"))


def models(api: str) -> tuple[str | None, ...]:
    """Target models that differ in rules; a new wire starts with its default."""
    return MODELS.get(api, (None,))


def dump_json(value: Any) -> str:
    """JSON text that keeps key order and the difference of int and float."""
    return json.dumps(value, ensure_ascii=False)


def check_accepted(body: Body, api: str, model: str | None, *, pending: bool = False, typed: bool = True) -> None:
    """No `reject`, on Kimi no id of another form (KIM-01), and no violation of botocore's service model.

    `typed` False: unknown fields may have any type."""
    if api == "bedrock" and typed:
        assert not converse.complaints(body), dump_json(body)
    allowed = _PENDING if pending else set()
    bad = [
        str(violation)
        for violation in segue.check(body, api, model=model)
        if (violation.severity == "reject" and violation.rule not in allowed) or violation.rule == "KIM-01"
    ]
    if api == "azure-foundry" and foundry is not None:
        bad += [refused] if (refused := foundry.refusal(body)) else []
    assert not bad, "\n".join([*bad, dump_json(body)])


def check_pairing(reading: Reading, scenario: Scenario, *, flagged: bool = False) -> None:
    """Each call has its arguments, and its intended result at its id.

    `flagged`: the source marks results as errors, so the target must too, by flag or by text.
    """
    assert not reading.surplus, f"results at no call: {reading.surplus}"
    for call in scenario.calls:
        found = reading.find(call.marker)
        assert len(found) == 1, f"the call {call.marker} stands {len(found)} times"
        (one,) = found
        if isinstance(call.arguments, dict):
            assert dump_json(one.arguments) == dump_json(call.arguments), f"arguments of {call.marker} changed"
        expected = scenario.results[call.marker]
        assert one.text is not None, f"the call {call.marker} has no result"
        if expected is None:
            assert INTERRUPTED in one.text, f"the call {call.marker} was never answered, but has {one.text!r}"
        else:
            check_result_text(one.text, expected)
            failed = one.error or one.text.startswith(ERROR)
            assert not flagged or failed == expected.error, f"an error: {expected.error}, but {one} is there"


def check_result_text(text: str, expected: Result) -> None:
    """The result has the expected text; an error prefix and a note about an image may be added."""
    marker = find_marker(expected.text)
    if marker:
        assert marker in text, f"{expected.text!r} was meant, {text!r} is there"
    else:
        assert find_marker(text.replace(expected.picture.marker, "") if expected.picture else text) is None, text
        assert INTERRUPTED not in text, f"an empty result is a result, not {text!r}"
    if not expected.error and not expected.picture:
        assert text == expected.text, f"{expected.text!r} became {text!r}"


def check_nothing_lost(body: Body, report: Any, scenario: Scenario) -> None:
    """Every marker that the policy keeps is in the body; discarded duplicates are in the report instead."""
    body_text = dump_json(body)
    lost = {marker for marker in scenario.kept_markers() if marker not in body_text}
    assert not lost, f"lost: {sorted(lost)}"
    for picture in scenario.pictures():
        assert picture.token in body_text or UNSUPPORTED in body_text, f"lost the picture {picture}"
    report_text = dump_json(report.to_dict())
    for marker in scenario.discarded_markers():
        assert marker not in body_text, f"the losing result {marker} stands in the body"
        assert marker in report_text, f"the losing result {marker} is not in the report"


def check_text_order(body: Body, scenario: Scenario) -> None:
    """Texts keep their order: an orphan in its place, a result's image before the following text."""
    body_text = dump_json(messages_of(body))
    order: list[str] = []
    before: Event | None = None
    for at, event in enumerate(scenario.events):
        in_run = isinstance(before, Result) or (isinstance(before, Reply) and bool(before.calls))
        match event:
            case UserText(texts=texts):
                order.extend(marker for text in texts if (marker := find_marker(text)))
            case Reply(text=str(text)) if find_marker(text):
                order.append(str(find_marker(text)))
            case Result(call=None) if not in_run:
                order.append(str(find_marker(event.text)))
            case Result(picture=Picture() as picture) if picture.token in body_text:
                following = next(
                    (one for one in scenario.events[at:] if isinstance(one, UserText) and find_marker(one.texts[0])),
                    None,
                )
                if following:
                    late = body_text.index(picture.token) > body_text.index(str(find_marker(following.texts[0])))
                    assert not late, f"the picture {picture} stands behind the words that followed it"
            case _:
                pass
        before = event
    places = [body_text.index(marker) for marker in order]
    assert places == sorted(places), f"said in another order: {order}"


def check_ids(reading: Reading, report: Any, *, same_api: bool, api: str, model: str | None) -> None:
    """Ids are unique, in the form of the target, and the same in report and body."""
    ids = reading.ids
    assert not has_repeated_ids(reading), f"ids repeat: {ids}"
    calls, results = [tuple(pair) for pair in report.emitted_calls], [tuple(pair) for pair in report.emitted_results]
    if "legacy" not in ids and api != "gemini":
        assert [wire for _, wire in calls] == ids
    if api == "gemini":  # where ids may be left out (GEM-11)
        assert [wire if given is not None else None for given, (_, wire) in zip(ids, calls, strict=True)] == ids
    canonical = [name for name, _ in calls]
    assert len(set(canonical)) == len(canonical), f"canonical ids repeat: {canonical}"
    assert all(_CANONICAL.fullmatch(name) for name in canonical), canonical
    assert sorted(calls) == sorted(results), "calls and results of the report differ"
    if not same_api and api == "gemini":
        older = model in ("gemini-2.0-flash", "gemini-2.5-pro")
        assert all((one is None) == older for one in ids), ids
    elif not same_api and api in _PROJECTED_IDS:
        assert all(_PROJECTED_IDS[api].fullmatch(one) for one in ids), ids
    if not same_api and api == "kimi" and model != "kimi-k3":
        assert ids == [f"functions.{one.name}:{index}" for index, one in enumerate(reading.interactions)]


def _leading_and_later(scenario: Scenario) -> tuple[list[System], list[System]]:
    """Leading system texts, and those after other text; blank messages do not count."""
    lead = list(takewhile(lambda event: isinstance(event, System), scenario.events))
    rest = scenario.events[len(lead) :]
    following = dropwhile(lambda event: isinstance(event, System) or not _has_content(event), rest)
    return [one for one in lead if isinstance(one, System)], [one for one in following if isinstance(one, System)]


def _has_content(event: Event) -> bool:
    match event:
        case UserText(texts=texts, picture=picture):
            return bool(picture) or any(text.strip() for text in texts)
        case Reply(text=text, calls=calls):
            return bool(calls) or bool(text and text.strip())
        case _:
            return True


def check_anthropic_cross_api(body: Body, scenario: Scenario) -> None:
    """Cross-API Messages bodies: turns alternate, a tool is declared where one was called (ANT-36),
    only leading system text is lifted, later text keeps its place as user text (ANT-20)."""
    roles = [message["role"] for message in body["messages"]]
    assert set(roles) <= {"user", "assistant"}, roles
    assert all(one != other for one, other in pairwise(roles)), f"turns do not alternate: {roles}"
    assert body.get("tools") or not scenario.calls, "calls, and no tool is declared"
    lifted = dump_json(body.get("system"))
    leading, later = _leading_and_later(scenario)
    assert all(str(find_marker(event.text)) in lifted for event in leading), f"not lifted: {leading}"
    assert not any(str(find_marker(event.text)) in lifted for event in later), f"lifted: {later}"


def check_bedrock_cross_api(body: Body, scenario: Scenario) -> None:
    """Cross-API Converse bodies: turns alternate (BED-10), a tool is declared where one was called
    (BED-03), leading system text on top."""
    roles = [message["role"] for message in body["messages"]]
    assert set(roles) <= {"user", "assistant"}, roles
    assert all(one != other for one, other in pairwise(roles)), f"turns do not alternate: {roles}"
    assert body.get("toolConfig") or not scenario.calls, "calls, and no tool is declared"
    lifted = dump_json(body.get("system"))
    assert all(str(find_marker(event.text)) in lifted for event in _leading_and_later(scenario)[0])


def check_gemini_cross_api(body: Body, scenario: Scenario) -> None:
    """Cross-API Gemini bodies: results alone (GEM-04), replies in one content (GEM-08), an end that is
    not the model's (GEM-05), leading system text on top."""
    roles = [content["role"] for content in body["contents"]]
    assert not any(one == other == "model" for one, other in pairwise(roles)), roles
    assert roles[0] == roles[-1] == "user", roles
    for content in body["contents"]:
        assert len({"functionResponse" in part for part in content["parts"]}) == 1, content
    lifted = dump_json(body.get("systemInstruction"))
    assert all(str(find_marker(event.text)) in lifted for event in _leading_and_later(scenario)[0])


def check_chat_cross_api(body: Body, scenario: Scenario, developer: str) -> None:
    """Later system text keeps its place: as developer text where the API has that, else as marked user text."""
    for event in _leading_and_later(scenario)[1]:
        (message,) = [one for one in messages_of(body) if str(find_marker(event.text)) in dump_json(one)]
        assert message["role"] == developer, message


def check_responses_cross_api(body: Body, scenario: Scenario) -> None:
    """Leading system text is lifted into the instructions; later text keeps its place as developer's (OAI-RESP-24)."""
    lifted = dump_json(body.get("instructions"))
    leading, later = _leading_and_later(scenario)
    assert all(str(find_marker(event.text)) in lifted for event in leading), f"not lifted: {leading}"
    assert not any(str(find_marker(event.text)) in lifted for event in later), f"lifted: {later}"
    check_chat_cross_api(body, scenario, "developer")


def check_results_together(body: Body) -> None:
    """ANT-04, literally: where a turn was completed, all its results are in the next message."""
    messages = body["messages"]
    for at, message in enumerate(messages):
        content = message["content"]
        if message["role"] != "user" or not isinstance(content, list) or INTERRUPTED not in dump_json(content):
            continue
        if any(block.get("type") == "tool_result" for block in content):
            following = messages[at + 1] if at + 1 < len(messages) else {"role": "", "content": ""}
            split = following["role"] == "user" and '"tool_result"' in dump_json(following["content"])
            assert not split, f"the results of one turn are split over messages[{at}] and the next"
            assert messages[at - 1]["role"] == "assistant", f"messages[{at}] holds results and follows no reply"


# Items of Responses that are instructions to the API, or refer to state outside of the body.
SILENT = ("item_reference", "compaction", "mcp_list_tools", "additional_tools", "compaction_trigger")


def check_no_api_items_as_text(body: Body) -> None:
    """API items that are no messages are not rendered as text."""
    body_text = dump_json(messages_of(body))
    assert not [kind for kind in SILENT if f"[{kind} not supported here]" in body_text]


def check_compaction(given: Body, body: Body) -> None:
    """Where nothing but a compaction is left of the history, another API is told so."""
    items = given.get("input")
    if isinstance(items, list) and items[0].get("type") == "compaction":
        assert "the conversation so far was compacted" in dump_json(messages_of(body))


RESPONSES = ("openai-responses", "azure-foundry")


def check_json_instruction(body: Body, api: str) -> None:
    """Where JSON output is requested, a message mentions it: these APIs reject the request otherwise."""
    form = (body.get("text") or {}).get("format") if api in RESPONSES else body.get("response_format")
    if api not in ("openai-chat", *RESPONSES, "deepseek", "qwen") or not form:
        return
    assert api != "deepseek" or form["type"] != "json_schema", "a schema is asked for where there is no such form"
    said_so = "json" in json.dumps(messages_of(body)).lower()
    needed = form["type"] == "json_object" or (api == "qwen" and form["type"] == "json_schema")
    assert said_so or not needed, "JSON is asked for and nobody says so"


def check_thinking_prefix(given: Body, body: Body) -> None:
    """ANT-28: a thinking block that is sent again follows exactly the prefix it was made with."""

    def prefixes(of: Body) -> dict[str, str]:
        head = dump_json([of.get("system"), of.get("tools")])
        found: dict[str, str] = {}
        for at, message in enumerate(of["messages"]):
            content = message.get("content")
            for position, block in enumerate(content if isinstance(content, list) else ()):
                if block.get("type") == "thinking":
                    before = [of["messages"][:at], message["role"], content[:position]]
                    found[dump_json(block)] = head + dump_json(before)
        return found

    made_with = prefixes(given)
    for block, before in prefixes(body).items():
        assert made_with.get(block) == before, f"bound to another prefix: {block}"


def check_conversion(scenario: Scenario, given: Body, out: Any, source: str, target: str, model: str | None) -> None:
    """All of the above for one conversion with the default policy. `model`: whose rules the output must satisfy."""
    cross_api = source != target
    check_accepted(out.body, target, model)
    if cross_api:
        decode_messages(out.body, target)
    reading = read(out.body, target)
    check_pairing(reading, scenario, flagged=source in ("anthropic", "gemini", "bedrock"))
    check_nothing_lost(out.body, out.report, scenario)
    check_text_order(out.body, scenario)
    check_ids(reading, out.report, same_api=is_same_provider(source, target), api=target, model=model)
    if target == "anthropic":
        check_results_together(out.body)
    if cross_api and target == "anthropic":
        check_anthropic_cross_api(out.body, scenario)
    if cross_api and target == "bedrock":
        check_bedrock_cross_api(out.body, scenario)
    if cross_api and target == "gemini":
        check_gemini_cross_api(out.body, scenario)
    if (
        cross_api
        and target in ("openai-responses", "azure-foundry")
        and source not in (*PLAIN_ROLES, "gemini", "bedrock")
    ):
        check_responses_cross_api(out.body, scenario)
    if cross_api and target == "openai-chat" and source not in (*PLAIN_ROLES, "gemini", "bedrock"):
        check_chat_cross_api(out.body, scenario, "developer")
    if cross_api and target in ("kimi", "mistral", "deepseek", "qwen"):
        check_chat_cross_api(out.body, scenario, "user")
    if not cross_api and target == "anthropic" and model == "claude-fable-5-1" == given.get("model"):
        check_thinking_prefix(given, out.body)


# KIM-01 by the contract; two results for one call are only a risk on Kimi, but no output holds them (design §4.1); nor
# a message without any content, which is a risk on unknown servers.
SAME_API_EXCEPTIONS = {"KIM-01", "OAI-CHAT-05", "OAI-CHAT-06", "OAI-CHAT-11", "BED-08", "BED-10"}


def check_same_api(given: Body, body: Body, api: str) -> None:
    """A valid body is unchanged for the same API: every field, in the same order, int and float distinct."""
    verdict = segue.check(given, api)
    if verdict and not any(violation.rule in SAME_API_EXCEPTIONS for violation in verdict) and not _is_odd(given, api):
        assert dump_json(body) == dump_json(given), "a lawful body was changed at home"


def _is_odd(body: Body, api: str) -> bool:
    """Whether a body has something valid that segue never renders."""
    # «requires the last turn in the conversation to be a user message»: the rulebook does not define which models do.
    begun = api == "bedrock" and body["messages"][-1]["role"] == "assistant"
    # Where no model is named, ids are held to what the default one takes.
    foreign = api == "bedrock" and not body.get("modelId") and re.search(r'"toolUseId": "[^"]*[.:]', dump_json(body))
    return bool(begun or foreign or _answered_twice(body) or has_repeated_ids(read(body, api)))


def has_repeated_ids(reading: Reading) -> bool:
    """Whether two calls have the same id; calls of legacy functions have none."""
    given = [one for one in reading.ids if one and one != "legacy"]
    return len(set(given)) < len(given)


def _answered_twice(body: Body) -> bool:
    """Gemini counts results and does not look at their ids; still no output holds two of one call (design §4.1)."""
    for content in body.get("contents", ()):
        results = [part["functionResponse"].get("id") for part in content["parts"] if "functionResponse" in part]
        named = [one for one in results if one]
        if len(set(named)) < len(named):
            return True
    return False


def up_to_last_reply(body: Body) -> list[str]:
    """The encoded messages up to and including the last assistant message."""
    items = messages_of(body)
    last = max((at for at, item in enumerate(items) if _is_reply(item)), default=-1)
    return [dump_json(item) for item in items[: last + 1]]


def _is_reply(item: Body) -> bool:
    return item.get("role") in ("assistant", "model") or item.get("type") in _MADE
