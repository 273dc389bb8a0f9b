"""`segue` in processes that need not start: a server has everything imported, and forks a child for each request.

The child has streams, environment, folder and exit code of its own. What it does not do is start and shut down: an
import that is forgotten, and what the interpreter itself does with streams, are seen only in a new process.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

_WAIT = 100
# What segue imports only where it is used, and most commands use.
_IMPORTED_LATE = ("aiohttp", "jsonschema_rs", "platformdirs", "turbohtml")


@cache
def _server(root: Path, path: str | None) -> socket.socket:
    """The server of this test process, for as long as that lives."""
    from tests.leaks import keep_process  # not in the server itself: it would load pytest

    ours, theirs = socket.socketpair()
    environment = {"PYTHONUTF8": "1"} | ({} if path is None else {"PYTHONPATH": path})
    process = subprocess.Popen([sys.executable, "-m", __name__], stdin=theirs.fileno(), cwd=root, env=environment)
    keep_process(process.pid)
    theirs.close()
    ours.settimeout(_WAIT)

    def end() -> None:
        ours.close()
        process.wait(_WAIT)

    atexit.register(end)
    return ours


def run_forked(arguments: Sequence[str], environment: Mapping[str, str], streams: tuple[int, int, int]) -> int:
    """Runs the command on these file descriptors and gives its exit code."""
    server = _server(Path(__file__).parents[2], os.environ.get("PYTHONPATH"))
    wanted = {"arguments": arguments, "environment": environment, "folder": str(Path.cwd())}
    socket.send_fds(server, [json.dumps(wanted).encode() + b"\n"], streams)
    answer = server.recv(64)
    assert answer.endswith(b"\n"), f"the server gave {answer!r} for an exit code"
    return int(answer)


def _serve(channel: socket.socket) -> None:
    """Serves requests until the channel is closed."""
    import segue

    for module in pkgutil.walk_packages(segue.__path__, "segue."):
        if module.name != "segue.__main__":
            import_module(module.name)
    for name in _IMPORTED_LATE:
        import_module(name)
    gc.freeze()
    while True:
        request, streams, _, _ = socket.recv_fds(channel, 65_536, 3)
        while request and not request.endswith(b"\n"):
            request += channel.recv(65_536)
        if not request:
            return
        child = os.fork()
        if child == 0:
            channel.close()
            _become(json.loads(request), streams)
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        channel.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(wanted: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    """From here on as `python -m segue` begins, in UTF-8 mode."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["folder"])
    sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.argv = ["segue", *wanted["arguments"]]
    code: object = 0
    try:
        runpy.run_module("segue", run_name="__main__")
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)  # to take down all that is loaded would cost more than the command


if __name__ == "__main__":
    _serve(socket.socket(fileno=0))
