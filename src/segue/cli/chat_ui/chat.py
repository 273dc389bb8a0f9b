"""The chat: runs the user's input as commands and exchanges, one exchange at a time."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import traceback
from base64 import b64encode
from collections import deque
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import click

from segue.canonical.blocks import Block, Media, Message, calls_of, responses_of, text_of
from segue.cli.attachments import build_content, pasted_media, quote_text, read_attachment
from segue.cli.chat_ui import commands
from segue.cli.chat_ui.approvals import MODE_LABELS, format_decision, parse_answer
from segue.cli.chat_ui.event_view import format_recap
from segue.cli.chat_ui.runner_totals import find_totals, format_totals
from segue.cli.chat_ui.styles import PROMPT, Row, display_width, truncate, wrap
from segue.cli.chat_ui.usage import UsageTotals, format_footer
from segue.errors import SegueError, format_count
from segue.runtime.permission_rules import SHELL_TOOLS
from segue.runtime.permissions import PermissionMode, Permissions
from segue.runtime.tool_types import ApprovalDecision, ApprovalRequest, Denial
from segue.view.fit import shorten_paths
from segue.view.sanitize import sanitize, sanitize_line

if TYPE_CHECKING:
    from segue.bridge.providers import Endpoint
    from segue.cli.agent import Agent
    from segue.cli.chat_ui.ui import ChatUI
    from segue.runtime.conversation_log import ConversationLog
    from segue.runtime.events import Event
    from segue.runtime.session import Session
    from segue.runtime.tool_types import Result
    from segue.store.base import ConversationStore


# A path such as /etc/hosts is not a command.
_COMMAND = re.compile(r"/[\w-]*(\s|$)")
_MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)
_MAX_TITLE_ROWS = 4
_MAX_CHANGED = 5
_OPEN_ELSEWHERE = "this conversation is open in another process; /fork continues in a copy"


class Chat:
    """Connects a UI and an agent. `strategy` is the default of `/compress`."""

    def __init__(self, *, strategy: str = "dense") -> None:
        self.compress_strategy = strategy
        self.usage = UsageTotals(self._price)
        self.ui: ChatUI
        self.agent: Agent
        self._turn_task: asyncio.Task[None] | None = None
        self._queue: deque[str] = deque()
        self._attached: dict[Path, Block] = {}
        self._command_outputs: list[str] = []
        self._pictures = 0
        self._commands: set[asyncio.Future[Result]] = set()
        """The user's own commands that are running."""
        self._approval_lock = asyncio.Lock()
        self._ended = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._command_lock = asyncio.Lock()

    # -------------------------------------------------------------------------------------------------- for commands

    @property
    def session(self) -> Session:
        return self.agent.session

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the next request, as far as it is known before the request."""
        return self.agent.next_endpoint

    @property
    def is_busy(self) -> bool:
        return self._turn_task is not None

    @property
    def tokens(self) -> int:
        """The estimated tokens of the conversation, including tools and system text."""
        log = self.session.log
        return log.chat.tokens if log.messages else 0

    @property
    def permissions(self) -> Permissions:
        return self.agent.toolbox.permissions

    @property
    def folder(self) -> Path:
        return self.agent.toolbox.folder

    @property
    def server_states(self) -> Sequence[tuple[str, str]]:
        """The MCP servers and the state of each."""
        servers = self.agent.tools.servers
        return tuple(servers.states.items()) if servers is not None else ()

    @property
    def width(self) -> int:
        return self.ui.width()

    @property
    def queued(self) -> Sequence[str]:
        """Messages that will be sent when the turn is over."""
        return tuple(self._queue)

    def print_rows(self, rows: list[Row]) -> None:
        self.ui.print_rows(rows)

    def print_line(self, text: str, style: str = "class:dim") -> None:
        self.print_rows(wrap(sanitize_line(text), self.width, style, indent="    ", first_indent="  "))

    def attach(self, file: Path) -> None:
        """Attach a file to the next message; `BadInputError` if it can't be read."""
        self._add_attachment(self.folder / file, read_attachment(self.folder / file, str(file)), str(file))

    def _add_attachment(self, file: Path, block: Block, name: str) -> None:
        self._attached[file.resolve()] = block
        self.print_line(f"attached to the next message: {name}")

    async def run_shell(self, command: str) -> None:
        """Run the user's own command; its output is shown, and sent with the next message."""
        from segue.runtime.masking import SecretMask, find_hidden_secrets
        from segue.runtime.tool_types import Context, ToolError
        from segue.runtime.tools.shell import shell

        tool = shell()
        mask = SecretMask(find_hidden_secrets())
        self.print_line(f"$ {command}", "class:bold")
        running = asyncio.ensure_future(cast("Awaitable[Result]", tool.run({"command": command}, Context(self.folder))))
        self._commands.add(running)
        try:
            result = await running
        except asyncio.CancelledError:
            self.print_line("cancelled", "class:warn")
            return
        except ToolError as error:
            self.print_line(f"✗ {error}", "class:bad")
            return
        finally:
            self._commands.discard(running)
        output = mask.mask_text(str(result.content)).rstrip("\n")
        self.print_rows([*wrap(sanitize(output), self.width, "", indent="  "), []])
        self._command_outputs.append(quote_text(f"$ {command}", output))

    async def switch_to(self, log: ConversationLog) -> None:
        """Continue with another conversation."""
        previous = self.session.log
        await self.agent.switch_log(log)
        self.agent.discard_if_empty(previous)
        self.print_conversation()

    def print_header(self) -> None:
        """Print version, model and conversation."""
        from importlib.metadata import version

        agent = self.agent
        name = sanitize_line(self.endpoint.name)
        head: Row = [("class:bold", f"segue {version('segue')}"), ("class:name", f"  {name}")]
        room = self.width - display_width(head) - 2
        reason = shorten_paths(sanitize_line(agent.model_reason), room)
        fits = display_width(reason) <= room
        self.print_rows([[*head, ("class:dim", f"  {reason}" if reason else "")] if fits else head])
        if not fits:
            self.print_line(reason, "class:dim")
        if agent.is_emulated:
            self.print_line("no real model is used: replies are emulated, tools run in this folder", "class:warn")
        self.print_conversation()

    def footer(self, width: int) -> Row:
        endpoint = self.endpoint
        return format_footer(
            width,
            model=endpoint.name,
            usage=self.usage,
            tokens=self.tokens,
            context=self.agent.context_of(endpoint),
            tool_format=endpoint.tool_format,
            mode=MODE_LABELS[self.permissions.mode],
            note="emulated" if self.agent.is_emulated else "",
        )

    def print_conversation(self) -> None:
        """Print the conversation id and its last exchange."""
        log = self.session.log
        name = f"conversation {self.agent.conversation_id}" if self.agent.conversation_id else "not stored"
        count = f", {format_count(len(log.messages), 'message')}" if log.messages else ""
        self.print_line(f"{name}{count}")
        if log.messages and (folder := self.agent.other_folder):
            self.print_line(f"it belongs to {folder}; tools run in this folder", "class:warn")
        self.print_rows(format_recap(log.messages, self.width))
        if _ConversationWatcher(self.agent.store, log).has_other_owner:
            self.print_line(_OPEN_ELSEWHERE, "class:warn")

    def leave(self) -> None:
        self._ended.set()
        self.ui.stop()

    # -------------------------------------------------------------------------------------------------- for the agent

    def on_event(self, event: Event) -> None:
        self.usage.on_event(event)
        self.ui.on_event(event)

    async def approve(self, question: ApprovalRequest) -> ApprovalDecision:
        """Ask the user for permission, one question at a time. The reason of a denial is sent to the model."""
        async with self._approval_lock:
            decision = await self._ask_approval(question)
        title = truncate(sanitize_line(question.title or question.tool), _MAX_TITLE_ROWS * self.width)
        self.print_line(*format_decision(decision, title))
        return decision

    async def _ask_approval(self, question: ApprovalRequest) -> ApprovalDecision:
        """Ask until there is an answer. A command (`/…`, `!…`) runs and is no answer, but may make one unnecessary."""
        is_shown = False
        while not self._ended.is_set():
            line = await self.ui.ask_approval(question, again=is_shown)
            is_shown = True
            text = (line or "").strip()
            if text.startswith("!") and text[1:].strip():
                await self._report_errors(self.run_shell(text[1:].strip()))
            elif _COMMAND.match(text):
                await self._report_errors(self._run_command(text))
            elif line is not None:
                return parse_answer(line, question)
            match self.permissions.decide(question):
                case "allow", _:
                    return "once"
                case "deny", rule:
                    return Denial(self.permissions.explain_denial(rule).removeprefix("denied: "))
                case _:
                    continue
        return "no"

    # ----------------------------------------------------------------------------------------------------- for the UI

    def submit(self, text: str) -> None:
        """Run a command at once, in order; queue a message until the turn and earlier commands are over."""
        if _COMMAND.match(text):
            self._spawn(self._run_command(text))
            return
        if text.startswith("!") and text[1:].strip():
            self._spawn(self.run_shell(text[1:].strip()))
            return
        self.send(text)

    def send(self, text: str) -> None:
        """Queue a message until the turn and earlier commands are over."""
        self._queue.append(text)
        self._start_next()
        self.ui.redraw()

    def paste(self, text: str) -> bool:
        """Attach a picture or PDF file: the file whose path was pasted, or the picture on the clipboard."""
        if not text:
            return self._attach_clipboard()
        file = pasted_media(text, self.folder)
        if file is None:
            return False
        with suppress(click.ClickException):
            self.attach(file)
            return True
        return False

    def _attach_clipboard(self) -> bool:
        from segue.cli.clipboard import read_picture

        picture = read_picture()
        if picture is None:
            return False
        self._pictures += 1
        name = f"picture {self._pictures} from the clipboard"
        self._add_attachment(Path(name), Media("image", "image/png", data=b64encode(picture).decode()), name)
        return True

    def cycle_mode(self) -> None:
        self.set_mode(_MODES[(_MODES.index(self.permissions.mode) + 1) % len(_MODES)])

    def set_mode(self, mode: PermissionMode) -> None:
        """Switch the permission mode. An open question that it answers is withdrawn."""
        self.permissions.mode = mode
        self.ui.withdraw_question()
        self.ui.redraw()

    def interrupt(self) -> bool:
        if not self.is_busy and not self._queue and not self._commands:
            return False
        for command in self._commands:
            command.cancel()
        if self.is_busy:
            self.session.cancel()
        self._restore_unsent()
        return True

    def _restore_unsent(self, *texts: str) -> None:
        """Put unsent messages back into the input line."""
        if unsent := [*texts, *self._queue]:
            self._queue.clear()
            self.ui.restore_input("\n".join(unsent))

    # ----------------------------------------------------------------------------------------------------------- turns

    async def wait_idle(self) -> None:
        """Wait until no turn and no command is running."""
        while self._turn_task is not None or self._tasks:
            await asyncio.wait([*([self._turn_task] if self._turn_task is not None else []), *self._tasks])

    async def close(self) -> None:
        """Cancel the turn and close the session."""
        self._ended.set()
        for command in self._commands:
            command.cancel()
        if self._turn_task is not None:
            self.session.cancel()
        await self.wait_idle()
        await self.session.close()

    def _start_next(self) -> None:
        """Send the next queued message, unless a turn or a command is running."""
        if self._queue and not self.is_busy and not self._tasks and not self._ended.is_set():
            self._turn_task = asyncio.create_task(self._run_message(self._queue.popleft()))

    async def _run_message(self, text: str) -> None:
        try:
            await self._report_errors(self._run_exchange(text))
        finally:
            self._turn_task = None
            self._start_next()
            self.ui.redraw()

    async def _run_exchange(self, text: str) -> None:
        """Run an exchange; a message that could not be stored is put back into the input line."""
        watcher = _ConversationWatcher(self.agent.store, self.session.log)
        if count := watcher.reload_changes():
            self.print_line(f"{format_count(count, 'new message')} from another process", "class:warn")
            self.print_rows(format_recap(self.session.log.messages, self.width))
        count = _count_user_messages(self.session.log)
        outputs, attached = tuple(self._command_outputs), dict(self._attached)
        content = build_content(text, attached, self.folder, outputs)
        first = len(self.session.log.messages)
        ended = await self.agent.ask(content)
        added = self.session.log.messages[first:]
        calls = {call.id: call.name for message in added for call in calls_of(message)}
        changes = self.agent.checkpoints.count_changes(set(calls)) if calls else ()
        parts = [f"changed {_format_changes(changes)}"] if changes else []
        parts += [format_totals(*totals)] if (totals := _find_last_totals(added, calls)) is not None else []
        if parts:
            self.print_line(f"  {'; '.join(parts)}", "class:dim")
        if failure := self.agent.checkpoints.take_failure():
            self.print_line(failure, "class:warn")
        if _count_user_messages(self.session.log) > count:
            del self._command_outputs[: len(outputs)]
            self._attached = {file: block for file, block in self._attached.items() if file not in attached}
        if ended.outcome == "failed" and _count_user_messages(self.session.log) == count:
            self._restore_unsent(text)

    async def _run_command(self, line: str) -> None:
        async with self._command_lock:
            self.print_rows([[], *wrap(sanitize_line(line), self.width, "class:dim", indent="  ", first_indent=PROMPT)])
            await commands.run(self, line)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task: asyncio.Task[None] = asyncio.create_task(self._report_errors(work))
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._start_next()

    async def _report_errors(self, work: Coroutine[Any, Any, object]) -> None:
        """Await `work` and print its error, if any; the chat continues."""
        try:
            await work
        except click.ClickException as error:
            self.print_line(f"✗ {error.format_message()}", "class:bad")
        except Exception as error:  # noqa: BLE001  a user never sees a traceback
            description = f"{type(error).__name__}: {error}"
            self.print_line(f"✗ this is a bug in segue, please report it: {description}", "class:bad")
            if os.environ.get("SEGUE_DEBUG"):
                self.print_rows(wrap(sanitize(traceback.format_exc()), self.width, "class:dim", indent="    "))

    def _price(self, provider: str, model: str, usage: Any) -> float | None:
        return self.agent.price(provider, model, usage)


def _count_user_messages(log: ConversationLog) -> int:
    return sum(message.speaker == "human" for message in log.messages)


class _ConversationWatcher:
    """Watches the open conversation for leases and changes of other processes.

    Read errors are ignored, because the next write reports them.
    """

    def __init__(self, store: ConversationStore | None, log: ConversationLog) -> None:
        self._store = store
        self._log = log

    @property
    def has_other_owner(self) -> bool:
        """Whether another process holds the lease of the conversation."""
        if self._store is None:
            return False
        with suppress(SegueError):
            lease = self._store.lease(self._log.id)
            return lease is not None and not lease.owner.startswith(f"{socket.gethostname()}:{os.getpid()}:")
        return False

    def reload_changes(self) -> int:
        """Reload the conversation if another process has changed it and return the number of new messages."""
        from segue.store.conversation import StoredConversation

        log: object = self._log
        if self._store is None or not isinstance(log, StoredConversation):
            return 0
        with suppress(SegueError):
            if self._store.get(log.id).seq != log.state.seq:
                before = len(log.messages)
                log.reload()
                return max(0, len(log.messages) - before)
        return 0


def _find_last_totals(messages: Sequence[Message], calls: Mapping[str, str]) -> tuple[int, int] | None:
    """Return how many tests passed and failed in the last run of tests by a command."""
    for message in reversed(messages):
        for response in reversed(responses_of(message)):
            if calls.get(response.call_id) in SHELL_TOOLS:
                totals = find_totals(text_of(response.content))
                if totals is not None:
                    return totals
    return None


def _format_changes(changes: Sequence[tuple[str, int, int]]) -> str:
    """Return files with their added and removed lines; of many the first ones."""
    texts = [f"{sanitize_line(name)} (+{added} −{removed})" for name, added, removed in changes[:_MAX_CHANGED]]
    hidden = len(changes) - len(texts)
    return ", ".join([*texts, *([f"{format_count(hidden, 'more file')}"] if hidden > 0 else [])])
