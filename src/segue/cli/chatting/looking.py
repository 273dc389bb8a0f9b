"""Chat commands that show information: tools, MCP servers, usage, cost, diagnosis, reasoning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from segue.cli.chatting.command import Command
from segue.cli.chatting.figures import counted, money, short
from segue.cli.chatting.looks import Row, cut, table, wrapped
from segue.cli.chatting.meter import hits
from segue.errors import InputError
from segue.view.clean import harmless, harmless_line

if TYPE_CHECKING:
    from segue.cli.chatting.loop import Chat

__all__ = ["COMMANDS", "TOOLS"]

# Usage of earlier chats, of this conversation too, is not included.
_SINCE = "since this chat was opened"


async def _tools(chat: Chat, arguments: str) -> None:
    rows = [
        (harmless_line(tool.name), harmless_line((tool.description or "").partition("\n")[0]))
        for tool in chat.session.toolbox.declarations
    ]
    if not rows:
        chat.tell("no tools available")
        return
    chat.say([[], *table(rows, ("class:name", ""), chat.width), []])


async def _mcp(chat: Chat, arguments: str) -> None:
    rows = [(harmless_line(name), harmless_line(state)) for name, state in chat.servers]
    if not rows:
        chat.tell("no MCP servers; add one as [mcp.NAME] in config.toml")
        return
    chat.say([[], *table(rows, ("class:name", ""), chat.width), []])


async def _tokens(chat: Chat, arguments: str) -> None:
    log, usage = chat.session.book, chat.meter
    context = chat.endpoint.context
    tokens = chat.holds
    share = f" of {short(context)} ({round(100 * tokens / context)} %)" if context else ""
    rows = [("conversation", f"about {tokens:,}{share}, {counted(len(log.messages), 'message')}")]
    chat.say([[], *table(rows, ("class:dim", ""), chat.width)])
    if not usage.requests:
        chat.tell(f"no usage {_SINCE}")
        return
    chat.tell(f"{_SINCE}:")
    total, cached = usage.total, hits(usage.total)
    rows = [("input", f"{total.input:,}{f', {cached} % from the prompt cache' if cached is not None else ''}")]
    reasoning = f", {total.reasoning:,} of it reasoning" if total.reasoning else ""
    rows.append(("output", f"{total.output:,}{reasoning}"))
    rows.append(("requests", f"{sum(usage.requests.values()):,}"))
    chat.say([*table(rows, ("class:dim", ""), chat.width), []])


async def _cost(chat: Chat, arguments: str) -> None:
    meter = chat.meter
    if not meter.used:
        chat.tell(f"no usage {_SINCE}")
        return
    rows: list[tuple[str, str, str]] = []
    for name, usage in meter.used.items():
        cost = meter.costs.get(name)
        counts = f"{short(usage.input)} in, {short(usage.output)} out, {counted(meter.requests[name], 'request')}"
        rows.append(("/".join(map(harmless_line, name)), "no price" if cost is None else money(cost), counts))
    cost = meter.cost
    if cost is not None and len(rows) > 1:
        rows.append(("total", money(cost), "" if meter.complete else "without models that have no price"))
    hint: list[Row] = (
        [] if meter.complete else [[("class:dim", '  add a price as [prices."provider/model"] in config.toml')]]
    )
    chat.tell(f"{_SINCE}:")
    chat.say([*table(rows, ("class:name", "", "class:dim"), chat.width), *hint, []])


async def _diag(chat: Chat, arguments: str) -> None:
    from segue.cli.diagnosis import diagnosed
    from segue.scrubbing import scrub

    agent, endpoint = chat.agent, chat.endpoint
    if agent.store is None or agent.conversation is None:
        raise InputError("this conversation is not stored (--no-store)")
    diagnosis = diagnosed(agent.store, agent.conversation, arguments or None, endpoint.api, endpoint.model)
    rows = [[("", "  "), ("", cut(harmless(scrub(line)).rstrip("\n"), chat.width - 2))] for line in diagnosis.lines()]
    chat.say([[], *rows, []])


async def _debug(chat: Chat, arguments: str) -> None:
    chat.surface.full = not chat.surface.full
    chat.tell("tool results and findings are shown" if chat.surface.full else "tool results and findings are hidden")


async def _thinking(chat: Chat, arguments: str) -> None:
    reasoning = chat.surface.thought().strip()
    if not reasoning:
        chat.tell("no reasoning yet")
        return
    chat.say([[], *wrapped(harmless(reasoning), chat.width, "class:thought", indent="  "), []])


TOOLS = (
    Command("tools", "list the tools", _tools),
    Command("mcp", "list the MCP servers", _mcp),
)
COMMANDS = (
    Command("tokens", "show the size of the conversation and the tokens used", _tokens),
    Command("cost", "show the cost by model", _cost),
    Command("diag", "show what is sent, the findings, and whether it would be accepted", _diag, "[TURN]"),
    Command("debug", "show or hide tool results and findings", _debug),
    Command("thinking", "show the last reasoning in full", _thinking),
)
