"""Chat commands that show information: tools, MCP servers, usage, cost, diagnosis, reasoning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from segue.cli.chat_ui.command import Command
from segue.cli.chat_ui.number_format import format_count, format_money, format_short
from segue.cli.chat_ui.styles import Row, format_table, truncate, wrap
from segue.cli.chat_ui.usage import cache_hit_percent
from segue.errors import InputError
from segue.view.sanitize import sanitize, sanitize_line

if TYPE_CHECKING:
    from segue.cli.chat_ui.chat import Chat

__all__ = ["COMMANDS", "TOOL_COMMANDS"]

# Usage of earlier chats, of this conversation too, is not included.
_SINCE = "since this chat was opened"


async def _tools(chat: Chat, arguments: str) -> None:
    rows = [
        (sanitize_line(tool.name), sanitize_line((tool.description or "").partition("\n")[0]))
        for tool in chat.session.toolbox.declarations
    ]
    if not rows:
        chat.print_line("no tools available")
        return
    chat.print_rows([[], *format_table(rows, ("class:name", ""), chat.width), []])


async def _mcp(chat: Chat, arguments: str) -> None:
    rows = [(sanitize_line(name), sanitize_line(state)) for name, state in chat.server_states]
    if not rows:
        chat.print_line("no MCP servers; add one as [mcp.NAME] in config.toml")
        return
    chat.print_rows([[], *format_table(rows, ("class:name", ""), chat.width), []])


async def _tokens(chat: Chat, arguments: str) -> None:
    log, usage = chat.session.log, chat.usage
    context = chat.endpoint.context
    tokens = chat.tokens
    share = f" of {format_short(context)} ({round(100 * tokens / context)} %)" if context else ""
    rows = [("conversation", f"about {tokens:,}{share}, {format_count(len(log.messages), 'message')}")]
    chat.print_rows([[], *format_table(rows, ("class:dim", ""), chat.width)])
    if not usage.requests:
        chat.print_line(f"no usage {_SINCE}")
        return
    chat.print_line(f"{_SINCE}:")
    total, cached = usage.total, cache_hit_percent(usage.total)
    rows = [("input", f"{total.input:,}{f', {cached} % from the prompt cache' if cached is not None else ''}")]
    reasoning = f", {total.reasoning:,} of it reasoning" if total.reasoning else ""
    rows.append(("output", f"{total.output:,}{reasoning}"))
    rows.append(("requests", f"{sum(usage.requests.values()):,}"))
    chat.print_rows([*format_table(rows, ("class:dim", ""), chat.width), []])


async def _cost(chat: Chat, arguments: str) -> None:
    totals = chat.usage
    if not totals.by_model:
        chat.print_line(f"no usage {_SINCE}")
        return
    rows: list[tuple[str, str, str]] = []
    for name, usage in totals.by_model.items():
        cost = totals.costs.get(name)
        requests = format_count(totals.requests[name], "request")
        counts = f"{format_short(usage.input)} in, {format_short(usage.output)} out, {requests}"
        rows.append(("/".join(map(sanitize_line, name)), "no price" if cost is None else format_money(cost), counts))
    cost = totals.cost
    if cost is not None and len(rows) > 1:
        rows.append(("total", format_money(cost), "" if totals.has_all_prices else "without models that have no price"))
    hint: list[Row] = (
        [] if totals.has_all_prices else [[("class:dim", '  add a price as [prices."provider/model"] in config.toml')]]
    )
    chat.print_line(f"{_SINCE}:")
    chat.print_rows([*format_table(rows, ("class:name", "", "class:dim"), chat.width), *hint, []])


async def _diag(chat: Chat, arguments: str) -> None:
    from segue.cli.diagnosis import diagnose
    from segue.redaction import redact

    agent, endpoint = chat.agent, chat.endpoint
    if agent.store is None or agent.conversation_id is None:
        raise InputError("this conversation is not stored (--no-store)")
    diagnosis = diagnose(agent.store, agent.conversation_id, arguments or None, endpoint.api, endpoint.model)
    rows = [
        [("", "  "), ("", truncate(sanitize(redact(line)).rstrip("\n"), chat.width - 2))] for line in diagnosis.lines()
    ]
    chat.print_rows([[], *rows, []])


async def _debug(chat: Chat, arguments: str) -> None:
    chat.ui.shows_details = not chat.ui.shows_details
    chat.print_line(
        "tool results and findings are shown" if chat.ui.shows_details else "tool results and findings are hidden"
    )


async def _thinking(chat: Chat, arguments: str) -> None:
    reasoning = chat.ui.last_reasoning().strip()
    if not reasoning:
        chat.print_line("no reasoning yet")
        return
    chat.print_rows([[], *wrap(sanitize(reasoning), chat.width, "class:thought", indent="  "), []])


TOOL_COMMANDS = (
    Command("tools", "list the tools", _tools),
    Command("mcp", "list the MCP servers", _mcp),
)
COMMANDS = (
    Command("tokens", "show the size of the conversation and the tokens used", _tokens),
    Command("cost", "show the cost by model", _cost),
    Command("diag", "show the findings of a request and whether it would be accepted", _diag, "[TURN]"),
    Command("debug", "show or hide tool results and findings", _debug),
    Command("thinking", "show the last reasoning in full", _thinking),
)
