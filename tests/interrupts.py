"""SIGINT and SIGHUP as a child process inherits them, whatever the tests themselves inherited.

A shell starts a background job (`make test &`) with SIGINT ignored, `nohup` starts one with SIGHUP ignored, and every
child inherits that. A child of a process that handles the signal starts with the default. Tests that send one of these
signals to a child start it inside one of the two.
"""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager

_HANDLERS = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: lambda *_: None}


@contextmanager
def default_interrupt() -> Generator[None]:
    """A child that is started inside begins with the default, as in the foreground."""
    ignored = [number for number in _HANDLERS if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, _HANDLERS[number])
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def ignored_interrupt() -> Generator[None]:
    """A child that is started inside begins with SIGINT ignored, as in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
