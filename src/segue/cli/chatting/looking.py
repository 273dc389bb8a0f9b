"""Commands that only look: tools, servers, what was used, what is sent."""

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

# What a conversation used before, and in other chats, is not counted again.
_SINCE = "since this chat was opened"


async def _tools(chat: Chat, words: str) -> None:
    rows = [
        (harmless_line(tool.name), harmless_line((tool.description or "").partition("\n")[0]))
        for tool in chat.session.toolbox.declarations
    ]
    if not rows:
        chat.tell("there are no tools")
        return
    chat.say([[], *table(rows, ("class:name", ""), chat.width), []])


async def _mcp(chat: Chat, words: str) -> None:
    rows = [(harmless_line(name), harmless_line(state)) for name, state in chat.servers]
    if not rows:
        chat.tell("no MCP server; [mcp.NAME] in config.toml adds one")
        return
    chat.say([[], *table(rows, ("class:name", ""), chat.width), []])


async def _tokens(chat: Chat, words: str) -> None:
    book, meter = chat.session.book, chat.meter
    context = chat.endpoint.context
    holds = chat.holds
    share = f" of {short(context)} ({round(100 * holds / context)} %)" if context else ""
    rows = [("conversation", f"about {holds:,}{share}, {counted(len(book.messages), 'message')}")]
    chat.say([[], *table(rows, ("class:dim", ""), chat.width)])
    if not meter.requests:
        chat.tell(f"nothing was used {_SINCE} yet")
        return
    chat.tell(f"{_SINCE}:")
    total, cached = meter.total, hits(meter.total)
    rows = [("read", f"{total.input:,}{f', {cached} % of it from the cache' if cached is not None else ''}")]
    thought = f", {total.reasoning:,} of it thinking" if total.reasoning else ""
    rows.append(("written", f"{total.output:,}{thought}"))
    rows.append(("requests", f"{sum(meter.requests.values()):,}"))
    chat.say([*table(rows, ("class:dim", ""), chat.width), []])


async def _cost(chat: Chat, words: str) -> None:
    meter = chat.meter
    if not meter.used:
        chat.tell(f"nothing was used {_SINCE} yet")
        return
    rows: list[tuple[str, str, str]] = []
    for name, usage in meter.used.items():
        cost = meter.costs.get(name)
        told = f"{short(usage.input)} in, {short(usage.output)} out, {counted(meter.requests[name], 'request')}"
        rows.append(("/".join(map(harmless_line, name)), "no price" if cost is None else money(cost), told))
    cost = meter.cost
    if cost is not None and len(rows) > 1:
        rows.append(("together", money(cost), "" if meter.complete else "without those that have no price"))
    hint: list[Row] = [] if meter.complete else [[("class:dim", '  [prices."provider/model"] in config.toml adds one')]]
    chat.tell(f"{_SINCE}:")
    chat.say([*table(rows, ("class:name", "", "class:dim"), chat.width), *hint, []])


async def _diag(chat: Chat, words: str) -> None:
    from segue.cli.diagnosis import diagnosed
    from segue.scrubbing import scrub

    agent, endpoint = chat.agent, chat.endpoint
    if agent.store is None or agent.conversation is None:
        raise InputError("this conversation is not kept; there is nothing to look at")
    found = diagnosed(agent.store, agent.conversation, words or None, endpoint.api, endpoint.model)
    rows = [[("", "  "), ("", cut(harmless(scrub(line)).rstrip("\n"), chat.width - 2))] for line in found.lines()]
    chat.say([[], *rows, []])


async def _debug(chat: Chat, words: str) -> None:
    chat.surface.full = not chat.surface.full
    chat.tell("results and decisions are shown" if chat.surface.full else "results and decisions are folded")


async def _thinking(chat: Chat, words: str) -> None:
    thought = chat.surface.thought().strip()
    if not thought:
        chat.tell("nothing was thought yet")
        return
    chat.say([[], *wrapped(harmless(thought), chat.width, "class:thought", indent="  "), []])


TOOLS = (
    Command("tools", "the tools that there are", _tools),
    Command("mcp", "the servers that give tools", _mcp),
)
COMMANDS = (
    Command("tokens", "what the conversation holds, and what was read and written", _tokens),
    Command("cost", "what it cost, by model", _cost),
    Command("diag", "what is sent, what was decided, would it be taken", _diag, "[TURN]"),
    Command("debug", "show or fold results and decisions", _debug),
    Command("thinking", "the last thought, whole", _thinking),
)
