"""Chat commands that undo: the last exchange or compression with its files, and redo of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from segue.canonical.blocks import calls_of, first_text
from segue.cli.chat_ui.command import Command, Suggestion
from segue.cli.chat_ui.styles import truncate
from segue.cli.undo import format_undo
from segue.errors import InputError, format_count
from segue.runtime.tool_types import ApprovalRequest
from segue.view.sanitize import sanitize_line

if TYPE_CHECKING:
    from segue.canonical.blocks import Message
    from segue.cli.chat_ui.chat import Chat
    from segue.runtime.checkpoints import UndoPlan
    from segue.store.base import ConversationStore
    from segue.store.conversation import StoredConversation

_FILES = "files"


def stored_conversation(chat: Chat) -> tuple[ConversationStore, StoredConversation]:
    """Return the store and the open conversation; raises `InputError` if it is not stored."""
    from segue.store.conversation import StoredConversation

    log = cast("object", chat.session.log)
    if chat.agent.store is None or not isinstance(log, StoredConversation):
        raise InputError("this conversation is not stored")
    return chat.agent.store, log


async def _undo(chat: Chat, arguments: str) -> None:
    """Undo the last compression or exchange, whichever came last, and the files that the exchange changed."""
    if arguments and arguments != _FILES:
        raise InputError(f"expected nothing, or {_FILES}, not {sanitize_line(arguments)!r}")
    # A command of an earlier process, which was killed.
    chat.agent.checkpoints.recover()
    if arguments:
        plan = chat.agent.checkpoints.plan_undo()
        if not plan.files:
            raise InputError("nothing to undo: no file was changed by tools")
        await _restore(chat, plan, "/redo reverts it")
        return
    store, log = stored_conversation(chat)
    if _is_compression_last(store, log):
        log.undo_compression()
        chat.print_line(f"compression undone: {format_count(len(log.messages), 'message')}")
        return
    index = _last_user_message(log.messages)
    if index is None:
        raise InputError("nothing to undo: there are no messages yet")
    calls = {call.id for message in log.messages[index:] for call in calls_of(message)}
    brings_back = "/redo brings the files back; removed messages stay removed"
    if not await _restore(chat, chat.agent.checkpoints.plan_undo(calls), brings_back, is_silent=True):
        return
    quoted = truncate(sanitize_line(first_text(log.messages[index].blocks)), 50)
    turn = next((message.turn_key for message in reversed(log.messages[:index]) if message.turn_key), None)
    if turn is None:
        chat.print_line(f"first exchange undone («{quoted}»): starting a new conversation")
        await chat.switch_to(chat.agent.new_log())
        return
    log.rewind(turn)
    chat.print_line(f"last exchange undone («{quoted}»)")


async def _redo(chat: Chat, arguments: str) -> None:
    await _restore(chat, chat.agent.checkpoints.plan_redo(), "/undo files reverts it")


async def _restore(chat: Chat, plan: UndoPlan, hint: str, *, is_silent: bool = False) -> bool:
    """Restore the files of a plan; return False if the user was asked and declined, so that nothing changes.

    The `hint` names the command that reverts it.

    The user is asked if files were changed since: they are overwritten, or kept while the others are restored.
    """
    conflicts = plan.of("conflict")
    overwrite = False
    if conflicts:
        names = "\n".join(file.display for file in conflicts)
        title = f"overwrite {format_count(len(conflicts), 'file')} that changed since"
        question = ApprovalRequest("undo", "", title, names)
        answer = (await chat.ui.ask_approval(question) or "").strip().lower()
        overwrite = answer in ("y", "yes")
        if not overwrite and answer not in ("k", "keep"):
            chat.print_line("nothing was changed", "class:dim")
            return False
    result = chat.agent.checkpoints.apply(plan, overwrite=overwrite, is_silent=is_silent)
    for line, is_problem in format_undo(result):
        chat.print_line(line, "class:warn" if is_problem else "class:dim")
    if result.restored:
        chat.print_line(hint)
    return True


def _is_compression_last(store: ConversationStore, log: StoredConversation) -> bool:
    from segue.store.events import MessageAdded

    state = log.state
    if not state.compressions:
        return False
    return not any(isinstance(record.event, MessageAdded) for record in store.events(log.id, state.compressions[-1]))


def _last_user_message(messages: tuple[Message, ...]) -> int | None:
    return next((index for index in reversed(range(len(messages))) if messages[index].speaker == "human"), None)


def _suggest_files(chat: Chat) -> list[Suggestion]:
    return [(_FILES, "only files, not messages")]


COMMANDS = (
    Command(
        "undo",
        "undo the last exchange and its files, or the last compression; files: files only",
        _undo,
        "[files]",
        allowed_while_busy=False,
        suggestions=_suggest_files,
    ),
    Command("redo", "bring back the files of the last undo", _redo, allowed_while_busy=False),
)
