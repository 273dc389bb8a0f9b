"""What must hold for an output body, whatever the story: each function fails with what it saw."""

from __future__ import annotations

import json
import re
from itertools import dropwhile, pairwise, takewhile
from typing import Any

import segue
from tests import converse

from .readers import Reading, read
from .story import Event, Picture, Reply, Result, Say, Story, System, word_of

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
_ABROAD = {
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


def kin(source: str, target: str) -> bool:
    """Whether two APIs are one provider's, so that ids of the one are the other's own."""
    return _PROVIDERS[source] == _PROVIDERS[target]


def said(body: Body) -> list[Body]:
    """What a body holds of the conversation, whatever its API calls that."""
    return next((body[key] for key in ("messages", "input", "contents") if isinstance(body.get(key), list)), [])


def model_of(body: Body) -> str | None:
    """The model that a body names."""
    return body.get("modelId", body.get("model"))


def models(api: str) -> tuple[str | None, ...]:
    """Target models worth telling apart; a new wire starts with its default."""
    return MODELS.get(api, (None,))


def dumped(value: Any) -> str:
    """JSON text: key order and the difference of int and float count."""
    return json.dumps(value, ensure_ascii=False)


def accepted(body: Body, api: str, model: str | None, *, pending: bool = False, typed: bool = True) -> None:
    """No `reject`, on Kimi no foreign id (KIM-01), and nothing that botocore's service model speaks against.

    `typed` False: what nobody models may be of any type."""
    if api == "bedrock" and typed:
        assert not converse.complaints(body), dumped(body)
    allowed = _PENDING if pending else set()
    bad = [
        str(violation)
        for violation in segue.check(body, api, model=model)
        if (violation.severity == "reject" and violation.rule not in allowed) or violation.rule == "KIM-01"
    ]
    if api == "azure-foundry" and foundry is not None:
        bad += [refused] if (refused := foundry.refusal(body)) else []
    assert not bad, "\n".join([*bad, dumped(body)])


def words_meet(reading: Reading, story: Story, *, flagged: bool = False) -> None:
    """Each call holds its arguments, and the result that was meant for it stands at its id.

    `flagged`: the source said which results are errors, so the target has to say so too, by flag or by mark.
    """
    assert not reading.surplus, f"results at no call: {reading.surplus}"
    for call in story.calls:
        found = reading.at(call.word)
        assert len(found) == 1, f"the call {call.word} stands {len(found)} times"
        (one,) = found
        if isinstance(call.arguments, dict):
            assert dumped(one.arguments) == dumped(call.arguments), f"arguments of {call.word} changed"
        expected = story.answers[call.word]
        assert one.text is not None, f"the call {call.word} has no result"
        if expected is None:
            assert INTERRUPTED in one.text, f"the call {call.word} was never answered, but has {one.text!r}"
        else:
            result_is(one.text, expected)
            failed = one.error or one.text.startswith(ERROR)
            assert not flagged or failed == expected.error, f"an error: {expected.error}, but {one} is there"


def result_is(text: str, expected: Result) -> None:
    """The text of the result; a mark before an error and a note about a picture may stand beside it."""
    word = word_of(expected.text)
    if word:
        assert word in text, f"{expected.text!r} was meant, {text!r} is there"
    else:
        assert word_of(text.replace(expected.picture.word, "") if expected.picture else text) is None, text
        assert INTERRUPTED not in text, f"an empty result is a result, not {text!r}"
    if not expected.error and not expected.picture:
        assert text == expected.text, f"{expected.text!r} became {text!r}"


def nothing_lost(body: Body, report: Any, story: Story) -> None:
    """Every word that the policy keeps stands in the body; losers of duplicates stand in the report instead."""
    spoken = dumped(body)
    lost = {word for word in story.kept_words() if word not in spoken}
    assert not lost, f"lost: {sorted(lost)}"
    for picture in story.pictures():
        assert picture.token in spoken or UNSUPPORTED in spoken, f"lost the picture {picture}"
    told = dumped(report.to_dict())
    for word in story.lost_words():
        assert word not in spoken, f"the losing result {word} stands in the body"
        assert word in told, f"the losing result {word} is not in the report"


def words_in_order(body: Body, story: Story) -> None:
    """Words stay where they were: in the order said, an orphan in its place, a result's picture before what follows."""
    spoken = dumped(said(body))
    order: list[str] = []
    before: Event | None = None
    for at, event in enumerate(story.events):
        in_run = isinstance(before, Result) or (isinstance(before, Reply) and bool(before.calls))
        match event:
            case Say(texts=texts):
                order.extend(word for text in texts if (word := word_of(text)))
            case Reply(text=str(text)) if word_of(text):
                order.append(str(word_of(text)))
            case Result(call=None) if not in_run:
                order.append(str(word_of(event.text)))
            case Result(picture=Picture() as picture) if picture.token in spoken:
                following = next(
                    (one for one in story.events[at:] if isinstance(one, Say) and word_of(one.texts[0])), None
                )
                if following:
                    late = spoken.index(picture.token) > spoken.index(str(word_of(following.texts[0])))
                    assert not late, f"the picture {picture} stands behind the words that followed it"
            case _:
                pass
        before = event
    places = [spoken.index(word) for word in order]
    assert places == sorted(places), f"said in another order: {order}"


def ids_in_order(reading: Reading, report: Any, *, home: bool, api: str, model: str | None) -> None:
    """Ids are one to one, in the form of the target, the same in report and body."""
    ids = reading.ids
    if not home:
        told = [one for one in ids if one is not None]
        assert len(set(told)) == len(told), f"ids repeat: {ids}"
    calls, results = [tuple(pair) for pair in report.emitted_calls], [tuple(pair) for pair in report.emitted_results]
    if "legacy" not in ids and api != "gemini":
        assert [wire for _, wire in calls] == ids
    if api == "gemini":  # where ids may be left out (GEM-11)
        assert [wire if given is not None else None for given, (_, wire) in zip(ids, calls, strict=True)] == ids
    canonical = [name for name, _ in calls]
    assert len(set(canonical)) == len(canonical), f"canonical ids repeat: {canonical}"
    assert all(_CANONICAL.fullmatch(name) for name in canonical), canonical
    assert sorted(calls) == sorted(results), "calls and results of the report differ"
    if not home and api == "gemini":
        older = model in ("gemini-2.0-flash", "gemini-2.5-pro")
        assert all((one is None) == older for one in ids), ids
    elif not home and api in _ABROAD:
        assert all(_ABROAD[api].fullmatch(one) for one in ids), ids
    if not home and api == "kimi" and model != "kimi-k3":
        assert ids == [f"functions.{one.name}:{index}" for index, one in enumerate(reading.interactions)]


def _later(story: Story) -> tuple[list[System], list[System]]:
    """System texts that lead the story, and those that come after words; a blank message before one decides nothing."""
    lead = list(takewhile(lambda event: isinstance(event, System), story.events))
    rest = story.events[len(lead) :]
    said = dropwhile(lambda event: isinstance(event, System) or not _says_something(event), rest)
    return [one for one in lead if isinstance(one, System)], [one for one in said if isinstance(one, System)]


def _says_something(event: Event) -> bool:
    match event:
        case Say(texts=texts, picture=picture):
            return bool(picture) or any(text.strip() for text in texts)
        case Reply(text=text, calls=calls):
            return bool(calls) or bool(text and text.strip())
        case _:
            return True


def anthropic_abroad(body: Body, story: Story) -> None:
    """What Messages bodies from elsewhere hold to: turns alternate, a tool is declared where one was called (ANT-36),
    only leading system text is lifted, later one stands in its place as words of a user (ANT-20)."""
    roles = [message["role"] for message in body["messages"]]
    assert set(roles) <= {"user", "assistant"}, roles
    assert all(one != other for one, other in pairwise(roles)), f"turns do not alternate: {roles}"
    assert body.get("tools") or not story.calls, "calls, and no tool is declared"
    lifted = dumped(body.get("system"))
    leading, later = _later(story)
    assert all(str(word_of(event.text)) in lifted for event in leading), f"not lifted: {leading}"
    assert not any(str(word_of(event.text)) in lifted for event in later), f"lifted: {later}"


def bedrock_abroad(body: Body, story: Story) -> None:
    """What Converse bodies from elsewhere hold to: turns alternate (BED-10), a tool is declared where one was called
    (BED-03), leading system text on top."""
    roles = [message["role"] for message in body["messages"]]
    assert set(roles) <= {"user", "assistant"}, roles
    assert all(one != other for one, other in pairwise(roles)), f"turns do not alternate: {roles}"
    assert body.get("toolConfig") or not story.calls, "calls, and no tool is declared"
    lifted = dumped(body.get("system"))
    assert all(str(word_of(event.text)) in lifted for event in _later(story)[0])


def gemini_abroad(body: Body, story: Story) -> None:
    """What Gemini bodies from elsewhere hold to: results alone (GEM-04), replies in one piece (GEM-08), an end that is
    not the model's (GEM-05), leading system text on top."""
    roles = [content["role"] for content in body["contents"]]
    assert not any(one == other == "model" for one, other in pairwise(roles)), roles
    assert roles[0] == roles[-1] == "user", roles
    for content in body["contents"]:
        assert len({"functionResponse" in part for part in content["parts"]}) == 1, content
    lifted = dumped(body.get("systemInstruction"))
    assert all(str(word_of(event.text)) in lifted for event in _later(story)[0])


def chat_abroad(body: Body, story: Story, developer: str) -> None:
    """Later system text keeps its place: as developer text where the API has that, else as marked words of a user."""
    for event in _later(story)[1]:
        (message,) = [one for one in said(body) if str(word_of(event.text)) in dumped(one)]
        assert message["role"] == developer, message


def responses_abroad(body: Body, story: Story) -> None:
    """Leading system text is lifted into the instructions; later text keeps its place as developer's (OAI-RESP-24)."""
    lifted = dumped(body.get("instructions"))
    leading, later = _later(story)
    assert all(str(word_of(event.text)) in lifted for event in leading), f"not lifted: {leading}"
    assert not any(str(word_of(event.text)) in lifted for event in later), f"lifted: {later}"
    chat_abroad(body, story, "developer")


def results_together(body: Body) -> None:
    """ANT-04, by the letter: where a turn had to be completed, all its results stand in the very next message."""
    messages = body["messages"]
    for at, message in enumerate(messages):
        content = message["content"]
        if message["role"] != "user" or not isinstance(content, list) or INTERRUPTED not in dumped(content):
            continue
        if any(block.get("type") == "tool_result" for block in content):
            following = messages[at + 1] if at + 1 < len(messages) else {"role": "", "content": ""}
            split = following["role"] == "user" and '"tool_result"' in dumped(following["content"])
            assert not split, f"the results of one turn are split over messages[{at}] and the next"
            assert messages[at - 1]["role"] == "assistant", f"messages[{at}] holds results and follows no reply"


# Items of Responses that say something to the API, or name what the body does not hold.
SILENT = ("item_reference", "compaction", "mcp_list_tools", "additional_tools", "compaction_trigger")


def in_nobodys_voice(body: Body) -> None:
    """What is no part of the conversation is not told as if somebody had said it."""
    words = dumped(said(body))
    assert not [kind for kind in SILENT if f"[{kind} not supported here]" in words]


RESPONSES = ("openai-responses", "azure-foundry")


def asks_in_words(body: Body, api: str) -> None:
    """Where JSON is asked for, some message says so: these APIs refuse it otherwise, or can be told no more."""
    form = (body.get("text") or {}).get("format") if api in RESPONSES else body.get("response_format")
    if api not in ("openai-chat", *RESPONSES, "deepseek", "qwen") or not form:
        return
    assert api != "deepseek" or form["type"] != "json_schema", "a schema is asked for where there is no such form"
    said_so = "json" in json.dumps(said(body)).lower()
    wanted = form["type"] == "json_object" or (api == "qwen" and form["type"] == "json_schema")
    assert said_so or not wanted, "JSON is asked for and nobody says so"


def still_bound(given: Body, body: Body) -> None:
    """ANT-28: a thinking block that is sent again stands behind exactly what it was made with."""

    def prefixes(of: Body) -> dict[str, str]:
        head = dumped([of.get("system"), of.get("tools")])
        found: dict[str, str] = {}
        for at, message in enumerate(of["messages"]):
            content = message.get("content")
            for position, block in enumerate(content if isinstance(content, list) else ()):
                if block.get("type") == "thinking":
                    before = [of["messages"][:at], message["role"], content[:position]]
                    found[dumped(block)] = head + dumped(before)
        return found

    made_with = prefixes(given)
    for block, before in prefixes(body).items():
        assert made_with.get(block) == before, f"bound to another prefix: {block}"


def converted(story: Story, given: Body, out: Any, source: str, target: str, model: str | None) -> None:
    """All of the above for one conversion with the default policy. `model`: by whose rules the output is judged."""
    abroad = source != target
    accepted(out.body, target, model)
    reading = read(out.body, target)
    words_meet(reading, story, flagged=source in ("anthropic", "gemini", "bedrock"))
    nothing_lost(out.body, out.report, story)
    words_in_order(out.body, story)
    ids_in_order(reading, out.report, home=kin(source, target), api=target, model=model)
    if target == "anthropic":
        results_together(out.body)
    if abroad and target == "anthropic":
        anthropic_abroad(out.body, story)
    if abroad and target == "bedrock":
        bedrock_abroad(out.body, story)
    if abroad and target == "gemini":
        gemini_abroad(out.body, story)
    if abroad and target in ("openai-responses", "azure-foundry") and source not in (*PLAIN_ROLES, "gemini", "bedrock"):
        responses_abroad(out.body, story)
    if abroad and target == "openai-chat" and source not in (*PLAIN_ROLES, "gemini", "bedrock"):
        chat_abroad(out.body, story, "developer")
    if abroad and target in ("kimi", "mistral", "deepseek", "qwen"):
        chat_abroad(out.body, story, "user")
    if not abroad and target == "anthropic" and model == "claude-fable-5-1" == given.get("model"):
        still_bound(given, out.body)


# KIM-01 by the contract; two results for one call are only a risk on Kimi, but no output holds them (design §4.1); nor
# a message without any content, which is a risk where nobody knows more.
NOT_HOME = {"KIM-01", "OAI-CHAT-05", "OAI-CHAT-06", "OAI-CHAT-11", "BED-08", "BED-10"}


def home(given: Body, body: Body, api: str) -> None:
    """At home a body that the judge takes comes back as it was: every field, in the same order, int and float apart."""
    verdict = segue.check(given, api)
    if verdict and not any(violation.rule in NOT_HOME for violation in verdict) and not _is_odd(given, api):
        assert dumped(body) == dumped(given), "a lawful body was changed at home"


def _is_odd(body: Body, api: str) -> bool:
    """Whether a body holds what its judge takes and no output has."""
    # «requires the last turn in the conversation to be a user message»: which models do, the rulebook does not say.
    begun = api == "bedrock" and body["messages"][-1]["role"] == "assistant"
    # Where no model is named, ids are held to what the default one takes.
    foreign = api == "bedrock" and not body.get("modelId") and re.search(r'"toolUseId": "[^"]*[.:]', dumped(body))
    # AZF-06: Foundry takes the reasoning of the newest turn, and gets none: it would be taken away a turn later.
    thinks = api == "azure-foundry" and any(item.get("type") == "reasoning" for item in said(body))
    return bool(begun or foreign or thinks or _answered_twice(body))


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
    items = said(body)
    last = max((at for at, item in enumerate(items) if _is_reply(item)), default=-1)
    return [dumped(item) for item in items[: last + 1]]


def _is_reply(item: Body) -> bool:
    return item.get("role") in ("assistant", "model") or item.get("type") in _MADE
