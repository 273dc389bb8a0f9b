"""Ports for servers that tests start, stop and start again."""

from __future__ import annotations

import random
import socket
from collections.abc import Generator
from contextlib import closing, contextmanager

_BELOW_EPHEMERAL = range(20_000, 32_000)


@contextmanager
def reserve_port() -> Generator[int]:
    """A free TCP port that no other test takes, also while no server has it.

    It lies below the range from which systems take the ports of connections. Tests in other processes are kept off by a
    UDP socket with the same number.
    """
    for port in random.SystemRandom().sample(_BELOW_EPHEMERAL, 100):
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as reserved:
            try:
                reserved.bind(("127.0.0.1", port))
                socket.create_server(("127.0.0.1", port)).close()
            except OSError:
                continue
            yield port
            return
    raise AssertionError("no free port was found")
