"""The service's own rules: AZF-01 to AZF-11. The rules of the model behind the service are in `backend`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from segue.conformance.azure_foundry.request import FoundryRequest
from segue.conformance.lookup import list_objects
from segue.conformance.openai_responses.request import Item
from segue.conformance.rule import Problem, RuleTable, Severity
from segue.conformance.values import has_text, is_object, quote

table: RuleTable[FoundryRequest] = RuleTable()

PREFIXES = frozenset(
    {
        *("caresp", "msg", "om", "fc", "fco", "rs", "fs", "ws", "ci", "ig", "mcp", "mcpl", "mcpr", "mcpa"),
        *("ctc", "ctco", "cu", "cuo", "lsh", "lsho", "ap", "apo", "cmp", "wfa", "prog", "progo"),
    }
)
# Prefix, then partition key and entropy; the older format has 48 characters.
_ID = re.compile(r"([^_]+)_(?:.{50}|.{48})", re.DOTALL)


@table.rule("AZF-01")
def tools_with_agent(request: FoundryRequest) -> Iterator[Problem]:
    """With an agent no tools are sent: they are part of its definition."""
    if "tools" in request.body and any(request.body.get(key) is not None for key in ("agent_reference", "agent")):
        yield Problem("tools", "Not allowed when agent is specified.")


@table.rule("AZF-02")
def agent_by_reference(request: FoundryRequest) -> Iterator[Problem]:
    """An agent is referenced by agent_reference."""
    if "agent" in request.body:
        yield Problem("agent", "The 'agent' property is deprecated. Use 'agent_reference' instead.")


@table.rule("AZF-03")
def payload_valid(request: FoundryRequest) -> Iterator[Problem]:
    """The body has the types, members and values of the service's schema."""
    yield from request.problems.get("AZF-03", ())


@table.rule("AZF-03")
def settings_consistent(request: FoundryRequest) -> Iterator[Problem]:
    """A background request is stored, and only a stream has stream_options."""
    body = request.body
    if body.get("background") is True and body.get("store") is False:
        yield Problem("background", "background=true requires store=true")
    if is_object(body.get("stream_options")) and body.get("stream") is not True:
        yield Problem("stream_options", "stream_options requires stream=true")


@table.rule("AZF-03")
def no_null_status(request: FoundryRequest) -> Iterator[Problem]:
    """An unknown status is omitted, not null."""
    for item in request.responses.items:
        path = f"{item.path}.status"
        if "status" in item.data and item.data["status"] is None and path not in request.rejected_paths:
            yield Problem(path, "Value is 'null' but should be 'string'")


@table.rule("AZF-04")
def assistant_items_complete(request: FoundryRequest) -> Iterator[Problem]:
    """Assistant messages have a type, and their output_text has annotations, which may be empty."""
    for item in request.responses.items_of("message", "output_message"):
        if item.is_assistant and item.data.get("type") is None and f"{item.path}.type" not in request.rejected_paths:
            yield Problem(f"{item.path}.type", 'required: Required properties ["type"] are not present')
        for path, part in list_objects(item.data.get("content"), f"{item.path}.content"):
            if part.get("type") == "output_text" and "annotations" not in part:
                reason = 'required: Required properties ["annotations"] are not present'
                yield Problem(f"{path}.annotations", reason)


@table.rule("AZF-06")
def only_newest_reasoning(request: FoundryRequest) -> Iterator[Problem]:
    """Only the encrypted reasoning of the newest turn is sent back."""
    # Encrypted reasoning items with the numbers of their reply and exchange; items not by the model end a reply.
    encrypted: list[tuple[Item, int, int]] = []
    reply = exchange = last_exchange = 0
    in_reply = False
    for item in request.responses.items:
        is_prompt = item.type == "message" and not item.is_assistant
        by_model = not is_prompt and not item.type.endswith("_output") and item.type != "mcp_approval_response"
        reply += by_model and not in_reply
        exchange += is_prompt
        in_reply = by_model
        if item.type == "reasoning" and has_text(item.data.get("encrypted_content")):
            encrypted.append((item, reply, exchange))
        last_exchange = exchange if by_model else last_exchange
    for item, of_reply, of_exchange in encrypted:
        if of_reply < reply:
            # Within one exchange it is unknown which reasoning counts as older.
            severity: Severity = "reject" if of_exchange < last_exchange else "risk"
            yield Problem(item.path, "Invalid payload: the encrypted reasoning of an older turn", severity)


@table.rule("AZF-07")
def ids_valid(request: FoundryRequest) -> Iterator[Problem]:
    """previous_response_id is the id of a response (`caresp_`), and item ids have the service's format."""
    previous = request.body.get("previous_response_id")
    if has_text(previous) and _prefix(previous) != "caresp":
        yield Problem("previous_response_id", f"Malformed identifier. {quote(previous)} is not the id of a response.")
    for item in request.responses.items:
        # The id of a local_shell_call_output is that of its call.
        if has_text(item.id) and item.type != "local_shell_call_output" and _prefix(item.id) not in PREFIXES:
            seen = f"Malformed identifier. {quote(item.id)} is not an id of this service; omit it if it is optional"
            yield Problem(f"{item.path}.id", seen, "risk")


def _prefix(name: str) -> str:
    """Return the prefix of an id in the service's own format, else `""`."""
    match = _ID.fullmatch(name)
    return match[1] if match else ""


@table.rule("AZF-08")
def item_types_known(request: FoundryRequest) -> Iterator[Problem]:
    """Items are of a closed list of types; those of the service's own tools are only in replies."""
    yield from request.problems.get("AZF-08", ())


@table.rule("AZF-10")
def arguments_are_strings(request: FoundryRequest) -> Iterator[Problem]:
    """The arguments of a call are a string."""
    yield from request.problems.get("AZF-10", ())


@table.rule("AZF-11")
def reasoning_has_id(request: FoundryRequest) -> Iterator[Problem]:
    """A reasoning item has its id."""
    yield from request.problems.get("AZF-11", ())
