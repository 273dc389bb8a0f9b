"""`ReplyLimits`: how large one reply of a provider may be, so that a runaway reply cannot fill the memory.

A reply above a limit fails with an error that names the limit. The same request would fail again, so the error is of a
kind that clients do not retry.
"""

from __future__ import annotations

from msgspec import Struct

from segue.canonical.blocks import ToolCall
from segue.canonical.json import encode_json
from segue.canonical.request import Reply
from segue.errors import InputError, RemoteProtocolError
from segue.wire.base import ApiError
from segue.wire.replies import permanent_error


class ReplyLimits(Struct, frozen=True):
    """The limits of one reply: its `bytes` as received, its tool `calls`, and the `arguments` of each in characters.

    The defaults are far above what any model returns.
    """

    bytes: int = 64 * 1024 * 1024
    calls: int = 10_000
    arguments: int = 16 * 1024 * 1024

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError("a positive integer was expected", path=f"limits.{name}")


DEFAULT_LIMITS = ReplyLimits()


def bytes_error(limits: ReplyLimits) -> ApiError:
    return _limit_error(f"the reply is larger than {limits.bytes} bytes", "bytes")


def calls_error(limits: ReplyLimits) -> ApiError:
    count = "one tool call" if limits.calls == 1 else f"{limits.calls} tool calls"
    return _limit_error(f"the reply has more than {count}", "calls")


def arguments_error(limits: ReplyLimits) -> ApiError:
    return _limit_error(f"the arguments of a tool call are longer than {limits.arguments} characters", "arguments")


def require_limits(limits: object) -> None:
    """Raise `InputError` if an argument is not a `ReplyLimits`."""
    if not isinstance(limits, ReplyLimits):
        raise InputError(f"ReplyLimits were expected, not {type(limits).__name__}", path="limits")


def check_size(data: object, limits: ReplyLimits) -> None:
    """Raise `RemoteProtocolError` for a whole reply with too many bytes; a decoded one has no size."""
    if isinstance(data, bytes | bytearray | str) and len(data) > limits.bytes:
        raise _to_remote_error(bytes_error(limits))


def check_calls(reply: Reply, limits: ReplyLimits) -> None:
    """Raise `RemoteProtocolError` for a whole reply with too many calls or too long arguments."""
    calls = reply.calls
    if len(calls) > limits.calls:
        raise _to_remote_error(calls_error(limits))
    if any(_measure_arguments(call) > limits.arguments for call in calls):
        raise _to_remote_error(arguments_error(limits))


def _measure_arguments(call: ToolCall) -> int:
    return len(encode_json(call.arguments)) if call.arguments_text is None else len(call.arguments_text)


def _limit_error(message: str, limit: str) -> ApiError:
    return permanent_error(f"{message} (limit `{limit}`)")


def _to_remote_error(error: ApiError) -> RemoteProtocolError:
    return RemoteProtocolError(error.message, status=error.status, kind=error.kind, message=error.message)
