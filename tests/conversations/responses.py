"""Conversations in the Responses API: items, reasoning and what was made with it, namespaces, state elsewhere."""

from __future__ import annotations

from typing import Any

from .build import GONE, PNG, Body, Case, kept

API = "openai-responses"
SEALED = "gAAAABo5d2RhbGx5"


def item(kind: str, **members: Any) -> Body:
    return {"type": kind, **members}


def asks(content: Any) -> Body:
    return {"role": "user", "content": content}


def answer(text: str, item_id: str = "msg_1", **more: Any) -> Body:
    part = {"type": "output_text", "text": text, "annotations": []}
    return item("message", id=item_id, role="assistant", status="completed", content=[part], **more)


def thought(text: str | None, item_id: str = "rs_1", sealed: Any = SEALED) -> Body:
    summary = [{"type": "summary_text", "text": text}] if text else []
    return kept(type="reasoning", id=item_id, summary=summary, encrypted_content=sealed)


def called(call_id: Any, name: str = "read_file", arguments: str = '{"path": "a"}', **more: Any) -> Body:
    return item("function_call", call_id=call_id, name=name, arguments=arguments, **more)


def came(call_id: Any, output: Any, **more: Any) -> Body:
    return item("function_call_output", call_id=call_id, output=output, **more)


def function(name: str = "read_file", **more: Any) -> Body:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return item("function", name=name, description=f"The tool {name}.", parameters=schema, strict=False, **more)


def responses(*items: Body, model: str | None = "gpt-5.6-terra", tools: Any = GONE, **more: Any) -> Body:
    body: Body = {"model": model} if model else {}
    return {**body, "input": list(items), **kept(tools=[function()] if tools is GONE else tools), **more}


CRM = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers.",
    "tools": [function("find"), function("read_file")],
}

CASES = (
    Case(
        "items_parallel_calls",
        API,
        "a run of items is one reply; outputs come in another order and apart (OAI-RESP-06)",
        responses(
            *(asks("Read a and b."), answer("Reading."), called("call_1"), called("call_2", arguments='{"path": "b"}')),
            *(came("call_2", "B"), asks("Hurry."), came("call_1", [{"type": "input_text", "text": "A"}])),
            instructions="Be brief.",
        ),
    ),
    Case(
        "items_reasoning_home",
        API,
        "sealed reasoning goes home with the items that were made with it, ids and all (OAI-RESP-07, OAI-RESP-08)",
        responses(
            *(asks("Go."), thought("I should read a."), answer("Reading."), called("call_1", id="fc_1")),
            *(called("call_2", id="fc_2"), came("call_1", "A"), came("call_2", "A too")),
            *(thought(None, "rs_2"), answer("It is A.", "msg_2"), asks("And b?")),
            store=False,
            include=["reasoning.encrypted_content"],
            reasoning={"effort": "high", "summary": "auto"},
        ),
    ),
    Case(
        "items_reasoning_for_another_model",
        API,
        "another model can't open what was sealed: it goes, and the ids of what was made with it (OAI-RESP-08)",
        responses(asks("Go."), thought("Hm."), answer("Reading."), called("call_1", id="fc_1"), came("call_1", "A")),
        {API: "gpt-5"},
    ),
    Case(
        "items_reasoning_not_stored",
        API,
        "reasoning that is neither sealed nor stored can't be looked up (OAI-RESP-10)",
        responses(
            asks("Go."), thought("Hm.", sealed=GONE), called("call_1", id="fc_1"), came("call_1", "A"), store=False
        ),
    ),
    Case(
        "items_reasoning_torn",
        API,
        "reasoning without the item that follows it, and that item without its id (OAI-RESP-07, OAI-RESP-08)",
        responses(asks("Go."), thought("Hm."), asks("Hurry."), called("call_1", id="fc_1"), came("call_1", "A")),
    ),
    Case(
        "items_ids_of_a_wrong_form",
        API,
        "an item's id is not the call's; one that can't be is left out (OAI-RESP-02, OAI-RESP-13)",
        responses(
            *(asks("Go."), called("call_1", id="call_1"), came("call_1", "A"), answer("So.")),
            *(asks("Again."), called("call_1", id="fc_1"), came("call_1", "A"), answer("So.")),
        ),
    ),
    Case(
        "items_missing_and_lost",
        API,
        "a call without an output, an output without a call, a second output (OAI-RESP-04, OAI-RESP-05)",
        responses(
            *(asks("Go."), called("call_1"), called("call_2"), came("call_2", "B"), came("call_2", "B again")),
            *(came("call_9", "lost"), asks("Well?")),
        ),
    ),
    Case(
        "items_namespaces",
        API,
        "two tools of one name in two namespaces, one of them declared in an item (OAI-RESP-18)",
        responses(
            item("additional_tools", role="developer", tools=[CRM]),
            *(asks("Find x."), called("call_1", "find", namespace="crm"), came("call_1", "x")),
            *(
                called("call_2", "read_file", namespace="crm"),
                came("call_2", "y"),
                called("call_3"),
                came("call_3", "z"),
            ),
        ),
    ),
    Case(
        "items_free_text",
        API,
        "a free-text tool with a grammar, its call and its output (OAI-RESP-17)",
        responses(
            *(asks("Patch."), item("custom_tool_call", call_id="call_1", name="patch", input="*** Begin\n*** End")),
            item("custom_tool_call_output", call_id="call_1", output="done"),
            tools=[item("custom", name="patch", format=item("grammar", syntax="lark", definition="start: /.+/s"))],
        ),
    ),
    Case(
        "items_run_by_the_provider",
        API,
        "searches, code and pictures that the provider made are whole at home and pairs abroad (OAI-RESP-20)",
        responses(
            asks("Search."),
            item("web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "q"}),
            item("file_search_call", id="fs_1", status="completed", queries=["q"], results=[{"text": "found"}]),
            item(
                "code_interpreter_call",
                id="ci_1",
                status="completed",
                container_id="cntr_1",
                code="print(1)",
                outputs=[{"type": "logs", "logs": "1\n"}],
            ),
            item("image_generation_call", id="ig_1", status="completed", result=PNG),
            *(answer("There."), asks("Thanks.")),
            tools=[item("web_search"), function()],
        ),
    ),
    Case(
        "items_with_types_of_their_own",
        API,
        "a shell call and a failed patch; a computer call that nobody answered (OAI-RESP-16, OAI-RESP-17)",
        responses(
            asks("Run it."),
            item("shell_call", call_id="call_1", action={"commands": ["ls"]}),
            item(
                "shell_call_output",
                call_id="call_1",
                output=[{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 2}}],
            ),
            item(
                "apply_patch_call", call_id="call_2", status="completed", operation={"type": "delete_file", "path": "a"}
            ),
            item("apply_patch_call_output", call_id="call_2", status="failed", output="no such file"),
            item(
                "computer_call",
                id="cu_1",
                call_id="call_3",
                status="completed",
                pending_safety_checks=[],
                action={"type": "screenshot"},
            ),
            asks("Well?"),
        ),
    ),
    Case(
        "items_going_on",
        API,
        "outputs whose calls the provider holds stay at home and are told abroad (OAI-RESP-05)",
        responses(came("call_1", "A"), asks("And?"), previous_response_id="resp_1"),
    ),
    Case(
        "items_pictures",
        API,
        "pictures and files in words and in an output (OAI-RESP-16)",
        responses(
            asks(
                [
                    {"type": "input_text", "text": "Look."},
                    {"type": "input_image", "detail": "auto", "image_url": "https://x.example/a.png"},
                ]
            ),
            called("call_1"),
            came(
                "call_1",
                [
                    {"type": "input_image", "detail": "low", "image_url": f"data:image/png;base64,{PNG}"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
                ],
            ),
        ),
    ),
    Case(
        "items_easy",
        API,
        "messages as clients write them: strings, no types, no ids; a refusal; system text later on",
        responses(
            {"role": "system", "content": "Be brief."},
            *(asks("Hi."), {"role": "assistant", "content": "Hello."}, {"role": "developer", "content": "Be kind."}),
            *(
                asks("Do it."),
                item(
                    "message",
                    id="msg_1",
                    role="assistant",
                    status="completed",
                    content=[{"type": "refusal", "refusal": "No."}],
                ),
            ),
            asks([{"type": "input_text", "text": "Why?"}]),
            model="gpt-4.1",
            tools=GONE,
            text={"format": {"type": "json_object"}, "verbosity": "low"},
            max_output_tokens=200,
        ),
    ),
    Case(
        "items_just_words",
        API,
        "input may be a string",
        {"model": "gpt-4.1", "input": "Hi.", "instructions": "Be brief."},
    ),
)
