"""Exports name the model, tokens and cost of each reply, and mark switches with what was carried and lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from segue.canonical.blocks import Message, Text, Thinking
from segue.canonical.request import Usage
from segue.store.conversation import StoredConversation
from segue.store.events import MessageAdded, Sent
from segue.store.sqlite import SqliteStore
from segue.view.html import render_html
from segue.view.markdown import render_markdown
from segue.view.page import Page, build_page
from tests.store.reply_bodies import MODELS, reply_body


def cost(provider: str, model: str, usage: Usage) -> float | None:
    return usage.input / 1000 if provider == "here" else None


@pytest.fixture
def page(tmp_path: Path) -> Callable[[], Page]:
    """The page of a conversation with a reply of Claude that thinks and calls, then two of Kimi."""
    store = SqliteStore(tmp_path / "kept.db")
    kept = StoredConversation.create(store)
    kept.switch("anthropic", MODELS["anthropic"], provider="here")
    kept.add_user("What is in it?")
    kept.render("anthropic", MODELS["anthropic"])
    body = reply_body("anthropic", thought="hm", text="I look.", calls=[("look", "call_1")], tokens=500)
    for call in kept.add_reply(body).calls:
        kept.add_result(call, "a cat")
    kept.render("kimi", MODELS["kimi"])
    kept.add_reply(reply_body("kimi", text="A cat.", tokens=40))
    kept.add_user("And?")
    kept.render("kimi", MODELS["kimi"])
    kept.add_reply(reply_body("kimi", text="A dog."))
    return lambda: build_page(store, store.get(kept.id), cost)


def test_first_request_after_a_switch_is_stored_with_its_findings(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "kept.db") as store:
        kept = StoredConversation.create(store)
        kept.add_user("a")
        for wire in ("anthropic", "anthropic", "kimi", "kimi"):
            kept.render(wire, MODELS[wire])
            kept.add_reply(reply_body(wire, thought="so", text="b"))
            kept.add_user("c")
        sent = [record.event for record in store.events(kept.id) if isinstance(record.event, Sent)]
        assert [bool(event.findings) for event in sent] == [False, False, True, False]
        assert any("reasoning" in finding or "thinking" in finding for finding in sent[2].findings)


def test_html_names_models_usage_and_switches(page: Callable[[], Page]) -> None:
    html = "".join(render_html(page()))
    assert html.count('<article class="ai m0">') == 1
    assert html.count('<article class="ai m1">') == 2
    assert html.count('<aside class="switch">') == 1
    head, _, rest = html.partition('<aside class="switch">')
    assert f"Switched from {MODELS['anthropic']} to {MODELS['kimi']}: 3 messages and 1 tool call carried" in rest
    assert "<li>lost: " in rest or "<li>changed: " in rest
    assert "$0.50" in head


def test_markdown_names_models_usage_and_switches(page: Callable[[], Page]) -> None:
    text = "".join(render_markdown(page()))
    assert text.count(f"## Assistant ({MODELS['kimi']})") == 2
    assert text.count("**Switched from") == 1
    assert "3 messages and 1 tool call carried" in text
    assert "tokens in" in text


def test_header_lists_the_models_in_order(page: Callable[[], Page]) -> None:
    facts = dict(page().facts)
    assert facts["model"] == f"{MODELS['anthropic']} → {MODELS['kimi']}"
    assert "tokens in" in facts["usage"]


def test_cost_of_an_unknown_model_makes_the_total_unknown(page: Callable[[], Page]) -> None:
    assert "$" not in dict(page().facts)["usage"]


def test_message_without_a_stored_model_has_no_note(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "kept.db") as store:
        conversation = store.create()
        store.append(conversation, 0, [MessageAdded(Message("ai", (Thinking("hm"), Text("yes"))))])
        html = "".join(render_html(build_page(store, store.get(conversation))))
    assert '<article class="ai">' in html
