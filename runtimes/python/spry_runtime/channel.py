"""The frames that the server and a worker process exchange over a pair of stream sockets."""

from __future__ import annotations

import struct

from .body_buffer import BodyBuffer

# length of what follows, kind, exchange, number, length of the head, seconds
_PREFIX = struct.Struct("<IBIHId")
_SIZE = _PREFIX.size
_LARGE = 128 * 1024

# To the worker.
REQUEST = 1  # number: length of the peer's address, which precedes the head; body: the request's
CREDIT = 2  # number: thousands of bytes of a stream that have left for the client
CANCEL = 3  # the client of a stream has gone

# From the worker. `seconds` is how long the handler took.
READY = 16  # number: 0 = takes requests from here, 1 = listens itself; exchange: HAS_ROUTES, ONE_AT_A_TIME
REPLY = 17  # number: status; head: header lines; body: the whole of it
START = 18  # as REPLY, but the body follows in pieces; seconds: its length, or -1
PIECE = 19
END = 20
BROKEN = 21  # a stream ended in an error
FAILED = 22  # as REPLY, when the handler raised
NOT_LOADED = 23  # body: why, in one line; number: 1 = it may serve as the main program
REPLACE = 25  # a thread goes on with a call that is over: another process is to take its place
DECLINED = 24  # a request that came when the worker was to take no more; body: the request's, given back

HAS_ROUTES = 1
"""The handler is an application, whose paths are its own."""
ONE_AT_A_TIME = 2
"""The worker takes a request when it has answered the one before."""

Frame = tuple[int, int, int, bytes, bytes, float]
"""kind, exchange, number, head, body, seconds"""


def encode(kind: int, exchange: int, number: int = 0, head: bytes = b"", body: bytes = b"", seconds: float = 0.0) -> bytes:
    return begin_frame(kind, exchange, number, head, len(body), seconds) + body


def begin_frame(kind: int, exchange: int, number: int, head: bytes, length: int, seconds: float = 0.0) -> bytes:
    """All of a frame but its body, which is so long: a large one is not copied to be sent."""
    return _PREFIX.pack(len(head) + length, kind, exchange, number, len(head), seconds) + head


class FrameBuffer:
    """Cuts received bytes into frames. A large body is put together on its own, so that there is one copy of it."""

    __slots__ = ("_at", "_body", "_data", "_frame", "_missing")

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        self._frame: tuple | None = None
        self._body = BodyBuffer()
        self._missing = 0

    def feed(self, data: bytes) -> None:
        """To be called only after `next` has returned None."""
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at = 0

    def next(self) -> Frame | None:
        if self._frame is not None:
            return self._go_on()
        data, at = self._data, self._at
        available = len(data) - at
        if available >= _SIZE:
            length, kind, exchange, number, head_length, seconds = _PREFIX.unpack_from(data, at)
            head_at = at + _SIZE
            body_at = head_at + head_length
            if available >= _SIZE + length:
                self._at = end = head_at + length
                return kind, exchange, number, data[head_at:body_at], data[body_at:end], seconds
            if length > _LARGE and available >= _SIZE + head_length:
                self._frame = (kind, exchange, number, data[head_at:body_at], seconds)
                self._missing = length - head_length
                self._at = body_at
                return self._go_on()
        elif not available:
            self._data = b""
            self._at = 0
        return None

    def _go_on(self) -> Frame | None:
        data, at = self._data, self._at
        end = at + self._missing
        piece = data if at == 0 and len(data) <= end else data[at:end]
        self._body.append(piece)
        self._missing -= len(piece)
        if self._missing:
            self._data = b""
            self._at = 0
            return None
        self._at = at + len(piece)
        (kind, exchange, number, head, seconds), self._frame = self._frame, None
        return kind, exchange, number, head, self._body.take(), seconds
