"""Random operations on a live conversation: each render equals a fresh one, and every API accepts it.

A target that is rendered again continues its cached render; more targets are rendered in turn than are cached. The
conversation is stored, so that it can be reopened, forked and rewound at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import segue
from segue.canonical.blocks import Media, Origin, Text, ToolResponse
from segue.canonical.compress import STRATEGIES
from segue.render.report import Finding
from segue.store.conversation import StoredConversation
from segue.store.sqlite import SqliteStore
from segue.wire.registry import SERVERS, WIRES
from segue.wire.text.registry import TEXT_FORMATS
from tests.budget import SOAK, examples
from tests.conversations import sdk
from tests.properties import checks
from tests.properties.live_replies import LiveReply, ordinary_replies, replies
from tests.properties.readers import read

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("look", "read file", "run")
]
PICTURE = Media("image", "image/png", data="iVBORw0KGgo=")
DOCUMENT = Media("document", "application/pdf", data="JVBERi0=", name="a")


class Target(NamedTuple):
    """What the conversation is rendered for. `policy` holds pairs of name and value."""

    api: str
    model: str | None = None
    profile: str | None = None
    tool_format: str = "auto"
    policy: tuple[tuple[str, str], ...] = ()


POLICIES = (
    ("ids", "canonical"),
    ("ids", "native"),
    ("reasoning", "text"),
    ("reasoning", "none"),
    ("hosted", "text"),
    ("hosted", "drop"),
    ("orphans", "drop"),
)
apis = st.sampled_from(tuple(WIRES))
plain_targets = apis.map(Target)
model_targets = apis.flatmap(lambda api: st.sampled_from([Target(api, model) for model in checks.models(api)]))
profile_targets = st.sampled_from(list(SERVERS)).map(lambda name: Target(SERVERS[name].name, profile=name))
text_targets = st.sampled_from([Target(api, tool_format=name) for api in WIRES for name in TEXT_FORMATS])
policy_targets = st.sampled_from([Target(api, policy=(policy,)) for api in WIRES for policy in POLICIES])
targets = plain_targets | model_targets | profile_targets | policy_targets | text_targets
contents = st.sampled_from(
    ["go on", "and?", "", " ", [Text("see"), PICTURE], [PICTURE], [DOCUMENT], [Text(""), Text("x")]]
)
results: st.SearchStrategy[Any] = st.sampled_from(["done", "done", "", " ", {"n": 1}, [Text("see"), PICTURE], []])
shares = st.floats(0, 1, exclude_max=True)


def pick(values: list[Any], share: float) -> Any:
    return values[int(share * len(values))]


def find_findings(rendered: segue.Rendered) -> dict[Finding, tuple[set[str], set[str]]]:
    """The findings but those on compressions, which are reported once for each target."""
    findings = [finding for finding in rendered.report.findings if finding.kind != "compressed"]
    return {finding.key: (set(finding.call_ids), set(finding.paths)) for finding in findings}


def render_for(chat: Any, target: Target) -> segue.Rendered:
    return chat.render(
        target.api, target.model, profile=target.profile, tool_format=target.tool_format, **dict(target.policy)
    )


def judge(rendered: segue.Rendered, target: Target) -> None:
    """The checker and the SDK's types accept the body, and no two calls have the same id."""
    api = target.api
    if target.profile is None:
        checks.check_accepted(rendered.body, api, target.model)
        assert not (found := sdk.complaints(rendered.body, api)), (target, *found, checks.dump_json(rendered.body))
    else:
        verdict = segue.check(rendered.body, api, profile=target.profile)
        refused = [str(violation) for violation in verdict if violation.severity == "reject"]
        assert not refused, (target, *refused, checks.dump_json(rendered.body))
    if target.tool_format == "auto":
        assert not checks.has_repeated_ids(read(rendered.body, api)), (target, checks.dump_json(rendered.body))


class LiveConversation(RuleBasedStateMachine):
    """A stored conversation and the targets that it is rendered for."""

    store: SqliteStore

    @initialize(pool=st.lists(targets, min_size=1, max_size=5), system=st.sampled_from([None, "Be brief."]))
    def begin(self, pool: list[Target], system: str | None) -> None:
        self.pool = pool
        self.turn = 0
        self.sent_ids: dict[Target, dict[str, str]] = {}
        self.chat = StoredConversation.create(self.store, segue.Conversation(system=system, tools=TOOLS))
        self.chat.add_user("begin")

    def teardown(self) -> None:
        if hasattr(self, "chat"):
            self.chat.close()

    @rule(content=contents)
    def add_user(self, content: Any) -> None:
        self.chat.add_user(content)

    @rule(reply=replies)
    def add_reply(self, reply: LiveReply) -> None:
        with suppress(segue.SegueError):
            self.chat.add_reply(reply.read(self.chat) or reply.body(), source=reply.api)

    @rule(reply=ordinary_replies, render=st.booleans())
    def take_turn(self, reply: LiveReply, render: bool) -> None:
        """A reply and all its results, rendered in between."""
        self.chat.add_reply(reply.body(), source=reply.api)
        for call in self.chat.pending:
            self.chat.add_result(call, "done")
            if render:
                self.render_next()

    @rule(share=shares, content=results, error=st.booleans())
    def add_result(self, share: float, content: Any, error: bool) -> None:
        if pending := self.chat.pending:
            self.chat.add_result(pick(pending, share), content, error=error)

    @rule(share=shares, content=results)
    def add_late_result(self, share: float, content: Any) -> None:
        """Any call gets a result, also one that has one."""
        if calls := [entry.call for entry in self.chat.chat.state.history.ledger.values()]:
            with suppress(segue.SegueError):
                self.chat.add_result(pick(calls, share), content)

    @rule(share=shares, content=results)
    def add_result_by_raw_id(self, share: float, content: Any) -> None:
        if raw_ids := [call.raw_id for call in self.chat.chat.state.history.newest_calls if call.raw_id]:
            self.chat.add_result(pick(raw_ids, share), content)

    @rule(raw_id=st.sampled_from(["call_0", "toolu_0", "unknown"]))
    def add_orphan(self, raw_id: str) -> None:
        origin = Origin("openai", raw_id=raw_id)
        self.chat.add_blocks(ToolResponse("", "look", (Text("orphan"),), is_complete=True, origin=origin))

    @rule(cancelled=st.booleans(), share=shares)
    def give_up(self, cancelled: bool, share: float) -> None:
        if pending := self.chat.pending:
            call = pick(pending, share)
            self.chat.cancel(call) if cancelled else self.chat.interrupt(call, "stopped")

    @rule(share=shares)
    def pin(self, share: float) -> None:
        if messages := list(self.chat.messages):
            self.chat.pin(pick(messages, share))

    @rule(strategy=st.sampled_from(list(STRATEGIES)), budget=st.sampled_from([10, 50, 200]))
    def compress(self, strategy: str, budget: int) -> None:
        with suppress(segue.SegueError):
            self.chat.compress(strategy, budget, summarise=lambda _messages: "summary")
        self.sent_ids = {}

    @rule()
    def undo_compression(self) -> None:
        with suppress(segue.SegueError):
            self.chat.undo_compression()
        self.sent_ids = {}

    @rule(share=shares)
    def rewind(self, share: float) -> None:
        if turns := [message.turn_key for message in self.chat.messages if message.turn_key]:
            self.chat.rewind(pick(turns, share))

    @rule(share=shares, whole=st.booleans())
    def fork(self, share: float, whole: bool) -> None:
        turns = list(self.chat.state.turn_ends)
        copy = self.chat.fork(None if whole or not turns else pick(turns, share))
        self.chat.close()
        self.chat = copy

    @rule()
    def reopen(self) -> None:
        self.chat.close()
        self.chat = StoredConversation(self.store, self.chat.id)

    @rule()
    def load_dump(self) -> None:
        self.chat.close()
        self.chat = StoredConversation.create(self.store, segue.Conversation.load(self.chat.dump()))

    @rule(
        change=st.sampled_from(
            [
                {"system": "Be long."},
                {"system": None},
                {"tools": TOOLS[:1]},
                {"tools": []},
                {"tools": TOOLS},
                {"options": {"max_tokens": 2000}},
                {"options": {"reasoning": {"effort": "high"}}},
                {"options": {"reasoning": {"budget": 1024}, "max_tokens": 4000}},
                {"options": {"response_format": {"kind": "json"}}},
                {"options": {"tool_choice": {"mode": "required"}}},
                {"options": {}},
            ]
        )
    )
    def change_settings(self, change: dict[str, Any]) -> None:
        self.chat.update_settings(**change)
        self.sent_ids = {}

    @rule(count=st.integers(1, 5))
    def render_pool(self, count: int) -> None:
        for _ in range(count):
            self.render_next()

    def render_next(self) -> segue.Conversation:
        """Render the next target of the pool, compare it with a fresh render, and return the conversation of that."""
        target = self.pool[self.turn % len(self.pool)]
        self.turn += 1
        fresh_chat = segue.Conversation.load(self.chat.dump())
        fresh = render_for(fresh_chat, target)
        rendered = render_for(self.chat, target)
        assert rendered.data == fresh.data, target
        assert rendered.body == fresh.body
        assert rendered.report.seen == fresh.report.seen
        assert rendered.report.emitted_calls == fresh.report.emitted_calls
        assert rendered.report.emitted_results == fresh.report.emitted_results
        assert find_findings(rendered) == find_findings(fresh), target
        judge(rendered, target)
        sent_ids = self.sent_ids.setdefault(target, {})
        for call_id, sent in rendered.report.emitted_calls:
            assert sent_ids.setdefault(call_id, sent) == sent, target
        return fresh_chat

    @invariant()
    def every_api_accepts_it(self) -> None:
        if hasattr(self, "chat"):
            fresh = segue.Conversation.load(self.chat.dump())
            for api in WIRES:
                judge(fresh.render(api), Target(api))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    opened = SqliteStore(str(tmp_path_factory.mktemp("live") / "conversations.db"))
    yield opened
    opened.close()


def test_live_conversation(store: SqliteStore) -> None:
    class Here(LiveConversation):
        pass

    Here.store = store
    some = settings(examples(0.6), stateful_step_count=30 if SOAK else 12)
    run_state_machine_as_test(
        Here, settings=settings(some, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    )
