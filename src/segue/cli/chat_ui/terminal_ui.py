"""The chat on a terminal: finished rows scroll up, live rows and the input line stay at the bottom.

New rows are printed above the live part, which is redrawn in the same write, so that nothing flickers.
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    VerticalAlign,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import Style

from segue.cli.chat_ui.approvals import format_choices, format_question
from segue.cli.chat_ui.calls import SHOWN
from segue.cli.chat_ui.event_view import EventView
from segue.cli.chat_ui.styles import PROMPT, STYLES, Row, truncate
from segue.cli.chat_ui.ui import InputHandler
from segue.runtime.events import Event, ExchangeStarted
from segue.runtime.tool_types import ApprovalRequest
from segue.view.sanitize import sanitize_line

if TYPE_CHECKING:
    from segue.cli.chat_ui.ui import InputHandler


_MIN_WIDTH, _MAX_WIDTH = 20, 110
_RULE = "─" * _MIN_WIDTH
"""The line above the input. It is short because a longer one wraps when the window is made narrower, and its wrapped
rows could not be erased."""
_REDRAW_SECONDS = 0.03
_TICK_SECONDS = 0.5
_MENU_HEIGHT = 6
_INPUT_HEIGHT = 10
_LEAVE_HINT = "press Ctrl-C again to exit"
_LEAVE_SECONDS = 2.0
"""How long a second Ctrl-C exits."""
_DEFAULT_SIZE = Size(rows=24, columns=80)


class TerminalUI:
    """A `ChatUI` for interactive terminals. `queued` returns the messages that will be sent next."""

    def __init__(
        self,
        *,
        completer: Completer,
        history: History,
        footer: Callable[[int], Row],
        queued: Callable[[], Sequence[str]],
        coloured: bool = True,
        shown: tuple[int, int] = SHOWN,
    ) -> None:
        self._footer = footer
        self._queued = queued
        self._pending_rows: list[Row] = []
        self._question: ApprovalRequest | None = None
        self._answer: asyncio.Future[str | None] | None = None
        self._question_shown = False
        """Whether the question is on the screen. Input typed before that is not an answer to it."""
        self._height = 0
        self._ended = False
        self.hint = ""
        self._input = create_input()
        self._output = _BufferedOutput(sys.stdout, coloured=coloured)
        self._style = Style.from_dict(STYLES)
        self.view = EventView(self._push, width=self.width, shown=shown)
        self.draft = Buffer(
            completer=completer, complete_while_typing=True, history=history, multiline=True, name="draft"
        )
        self.reply = Buffer(multiline=False, name="reply")
        self._is_asking_filter = Condition(lambda: self._question is not None)
        self._draft_window = self._build_draft()
        self._reply_window = Window(BufferControl(self.reply), height=1, get_line_prefix=self._approval_prefix)
        self._depth = None if coloured else ColorDepth.DEPTH_1_BIT
        self._layout = Layout(self._build_layout(), focused_element=self._draft_window)
        self._app: Application[None] | None = None

    # ------------------------------------------------------------------------------------------------------- surface

    @property
    def shows_details(self) -> bool:
        return self.view.shows_details

    @shows_details.setter
    def shows_details(self, value: bool) -> None:
        self.view.shows_details = value

    def width(self) -> int:
        return max(_MIN_WIDTH, min(self._output.get_size().columns, _MAX_WIDTH))

    def print_rows(self, rows: list[Row]) -> None:
        self.view.print_rows(rows)

    def on_event(self, event: Event) -> None:
        if isinstance(event, ExchangeStarted):
            self.hint = ""
        self.view.on_event(event)
        self.redraw()

    def last_reasoning(self) -> str:
        return self.view.reasoning

    def restore_input(self, text: str) -> None:
        self.draft.text = "\n".join(filter(None, [text, self.draft.text]))
        self.draft.cursor_position = len(self.draft.text)

    def redraw(self) -> None:
        if self._app is not None:
            self._app.invalidate()

    async def ask_approval(self, question: ApprovalRequest, *, again: bool = False) -> str | None:
        if not again:
            self.view.print_rows(format_question(question, self.width()))
        self._answer = asyncio.get_running_loop().create_future()
        self._question, self._question_shown = question, False
        self.reply.reset()
        self._layout.focus(self._reply_window)
        self.redraw()
        try:
            return await self._answer
        finally:
            self._question = self._answer = None
            self.reply.reset()
            self._layout.focus(self._draft_window)
            self.redraw()

    def withdraw_question(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(None)

    async def run(self, handler: InputHandler) -> None:
        self._app = Application(
            layout=self._layout,
            key_bindings=_make_bindings(self, handler),
            style=self._style,
            output=self._output,
            input=self._input,
            color_depth=self._depth,
            erase_when_done=True,
            min_redraw_interval=_REDRAW_SECONDS,
            before_render=lambda _: self._before_render(),
            after_render=lambda _: self._after_render(),
        )
        self._app.ttimeoutlen = 0.05
        ticking = asyncio.create_task(self._tick())
        try:
            with suppress(EOFError):  # the terminal went away
                await self._app.run_async()
        finally:
            ticking.cancel()
            self._app, self._ended = None, True
            self._output.is_buffering = False
            self._print_new()

    def stop(self) -> None:
        if self._app is not None and self._app.is_running and not self._app.is_done:
            self._app.exit()

    # ------------------------------------------------------------------------------------------------------ for keys

    @property
    def is_asking(self) -> bool:
        return self._question is not None

    def submit_answer(self) -> None:
        """Submit the answer to a question."""
        if self._answer is not None and self._question_shown and not self._answer.done() and self.reply.text.strip():
            self._answer.set_result(self.reply.text)

    def print_outputs(self) -> None:
        """Print all that the tools printed last."""
        if not self.view.print_outputs():
            self.hint = "no tool has printed anything yet"

    def toggle_reasoning(self) -> None:
        """Show or hide the last reasoning."""
        self.view.shows_reasoning = not self.view.shows_reasoning
        if not self.view.reasoning:
            self.hint = "no reasoning yet"

    # -------------------------------------------------------------------------------------------------------- frames

    def _push(self, rows: list[Row]) -> None:
        self._pending_rows += rows
        if self._ended:
            self._print_new()
        self.redraw()

    def _before_render(self) -> None:
        """Print new rows above the live part, and erase the live part first where it became smaller."""
        app = self._app
        if app is None:
            return
        if self._question is not None and not self._question_shown:
            self._discard_typed(app)
        size = self._output.get_size()
        height = self._layout.container.preferred_height(size.columns, size.rows).preferred
        if self._pending_rows or height < self._height:
            self._output.is_buffering = True
            app.renderer.erase()
            self._print_new()
        self._height = height

    def _after_render(self) -> None:
        self._output.release()
        self._question_shown = self._question is not None

    def _discard_typed(self, app: Application[None]) -> None:
        """Discard what was typed before the question was shown."""
        with suppress(termios.error, OSError, ValueError):
            termios.tcflush(self._input.fileno(), termios.TCIFLUSH)
        self._input.flush_keys()
        app.key_processor.empty_queue()
        self.reply.reset()

    def _print_new(self) -> None:
        rows, self._pending_rows = self._pending_rows, []
        if rows:
            fragments: StyleAndTextTuples = [*chain.from_iterable([*row, ("", "\n")] for row in rows)]
            print_formatted_text(self._output, fragments, self._style, color_depth=self._depth)

    async def _tick(self) -> None:
        """Redraw running times."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            if self.view.is_active:
                self.redraw()

    # -------------------------------------------------------------------------------------------------------- layout

    def _build_layout(self) -> HSplit:
        live_window = Window(
            FormattedTextControl(self._live_text), wrap_lines=True, dont_extend_height=True, always_hide_cursor=True
        )
        return HSplit(
            [
                ConditionalContainer(live_window, Condition(lambda: bool(self._live_rows()))),
                Window(height=1),
                Window(FormattedTextControl([("class:rule", _RULE)]), height=1),
                ConditionalContainer(self._draft_window, ~self._is_asking_filter),
                ConditionalContainer(self._reply_window, self._is_asking_filter),
                ConditionalContainer(
                    CompletionsMenu(max_height=_MENU_HEIGHT), has_completions & ~self._is_asking_filter
                ),
                Window(FormattedTextControl(self._footer_text), height=1, always_hide_cursor=True),
            ],
            align=VerticalAlign.TOP,
        )

    def _build_draft(self) -> Window:
        empty = Condition(lambda: not self.draft.text and not self.view.is_active)
        placeholder = AfterInput("ask anything, or / for commands", style="class:dim")
        control = BufferControl(self.draft, input_processors=[ConditionalProcessor(placeholder, empty)])
        return Window(
            control,
            wrap_lines=True,
            height=Dimension(min=1, max=_INPUT_HEIGHT),
            dont_extend_height=True,
            get_line_prefix=_draft_prefix,
        )

    def _live_rows(self) -> list[Row]:
        size = self._output.get_size()
        queued_rows: list[Row] = [[("class:dim", f"  + {_shorten(text)}")] for text in self._queued()]
        rows = [*self.view.live_rows(max(3, size.rows - 9 - len(queued_rows))), *queued_rows]
        return [[], *rows] if rows and self.view.has_gap else rows

    def _live_text(self) -> StyleAndTextTuples:
        fragments: StyleAndTextTuples = [*chain.from_iterable([*row, ("", "\n")] for row in self._live_rows())]
        return fragments[:-1]

    def _footer_text(self) -> StyleAndTextTuples:
        columns = self._output.get_size().columns
        if self._question is not None:
            return [*format_choices(columns, self._question)]
        return [("class:warn", f"  {self.hint}")] if self.hint else [*self._footer(columns)]

    def _approval_prefix(self, line: int, wrap: int) -> StyleAndTextTuples:
        return [("class:ask", "? ")]


def _draft_prefix(line: int, wrap: int) -> StyleAndTextTuples:
    return [("class:mark", PROMPT if not line and not wrap else "  ")]


def _shorten(text: str) -> str:
    return truncate(sanitize_line(text), 60)


def _make_bindings(terminal: TerminalUI, handler: InputHandler) -> KeyBindings:
    """Return the key bindings for a terminal and the handler of its input."""
    actions = _KeyActions(terminal, handler)
    keys = KeyBindings()
    asking = Condition(lambda: terminal.is_asking)
    keys.add("enter", filter=~asking)(actions.send)
    keys.add("enter", filter=asking)(actions.submit_answer)
    keys.add("escape", "enter", filter=~asking)(actions.new_line)
    keys.add("c-j", filter=~asking)(actions.new_line)
    keys.add("c-c", eager=True)(actions.interrupt)
    keys.add(Keys.SIGINT)(actions.interrupt)
    keys.add("c-d", eager=True)(actions.leave)
    keys.add("c-t", eager=True)(actions.toggle_reasoning)
    keys.add("c-o", eager=True)(actions.print_outputs)
    keys.add("c-l")(actions.clear)
    keys.add("c-v", filter=~asking)(actions.paste_picture)
    keys.add(Keys.BracketedPaste, filter=~asking)(actions.paste)
    keys.add("s-tab", filter=~has_completions)(actions.cycle_mode)
    terminal.draft.on_text_insert += actions.clear_hint
    terminal.reply.on_text_insert += actions.clear_hint
    return keys


class _KeyActions:
    """The actions of the keys."""

    def __init__(self, terminal: TerminalUI, handler: InputHandler) -> None:
        self._terminal = terminal
        self._handler = handler
        self._disarming: asyncio.TimerHandle | None = None

    def send(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if _accept_completion(buffer):
            return
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        elif text := buffer.text.strip():
            buffer.append_to_history()
            buffer.reset()
            self._terminal.hint = ""
            self._handler.submit(text)

    def paste(self, event: KeyPressEvent) -> None:
        """Insert the pasted text, unless it is the path of a picture or PDF file, which is attached."""
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        if not text or not self._handler.paste(text):
            event.current_buffer.insert_text(text)

    def paste_picture(self, event: KeyPressEvent) -> None:
        if not self._handler.paste(""):
            self._terminal.hint = "no picture on the clipboard"

    def submit_answer(self, event: KeyPressEvent) -> None:
        self._terminal.submit_answer()

    def new_line(self, event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    def interrupt(self, event: KeyPressEvent) -> None:
        if self._terminal.hint == _LEAVE_HINT:
            self._handler.leave()
            return
        if not self._handler.interrupt():
            self._terminal.draft.reset()
        self._terminal.hint = _LEAVE_HINT
        self._disarm_later()

    def _disarm_later(self) -> None:
        """Remove the hint after a while, so that a later Ctrl-C is a first one again."""
        loop = asyncio.get_running_loop()
        if self._disarming is not None:
            self._disarming.cancel()
        self._disarming = loop.call_later(_LEAVE_SECONDS, self._disarm)

    def _disarm(self) -> None:
        if self._terminal.hint == _LEAVE_HINT:
            self._terminal.hint = ""
            self._terminal.redraw()

    def leave(self, event: KeyPressEvent) -> None:
        if self._terminal.is_asking or not self._terminal.draft.text:
            self._handler.leave()
        else:
            self._terminal.draft.delete()

    def toggle_reasoning(self, event: KeyPressEvent) -> None:
        self._terminal.toggle_reasoning()

    def print_outputs(self, event: KeyPressEvent) -> None:
        self._terminal.print_outputs()

    def cycle_mode(self, event: KeyPressEvent) -> None:
        self._handler.cycle_mode()

    def clear(self, event: KeyPressEvent) -> None:
        event.app.renderer.clear()

    def clear_hint(self, buffer: Buffer) -> None:
        self._terminal.hint = ""


def _accept_completion(buffer: Buffer) -> bool:
    """Accept the selected completion and return whether there was one."""
    state = buffer.complete_state
    if state is None or state.current_completion is None:
        return False
    buffer.complete_state = None
    return True


class _BufferedOutput(Vt100_Output):
    """A terminal output. While `is_buffering`, a flush does nothing, so that a frame is written at once.

    The cursor position is never queried, because the terminal's answer could be taken for typed input.
    """

    def __init__(self, stdout: TextIO, *, coloured: bool) -> None:
        def size() -> Size:
            try:
                columns, rows = os.get_terminal_size(stdout.fileno())
            except (OSError, ValueError):
                return _DEFAULT_SIZE
            return Size(rows=rows or _DEFAULT_SIZE.rows, columns=columns or _DEFAULT_SIZE.columns)

        depth = None if coloured else ColorDepth.DEPTH_1_BIT
        super().__init__(stdout, size, term=os.environ.get("TERM"), default_color_depth=depth, enable_cpr=False)
        self.is_buffering = False

    def flush(self) -> None:
        if not self.is_buffering:
            super().flush()

    def release(self) -> None:
        """Stop buffering and flush."""
        self.is_buffering = False
        self.flush()
