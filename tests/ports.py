"""Ports for servers that tests start, stop and start again."""

from __future__ import annotations

import random
import socket

_BELOW_EPHEMERAL = range(20_000, 32_000)


def free_port() -> int:
    """A free port below the range from which systems take the ports of connections.

    A port from that range may be taken by any connection of another process between two starts of a server.
    """
    for port in random.SystemRandom().sample(_BELOW_EPHEMERAL, 100):
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
    raise AssertionError("no free port was found")
