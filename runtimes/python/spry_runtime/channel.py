"""The frames that the server and a worker process exchange over a pair of stream sockets."""

from __future__ import annotations

import struct

# length of what follows, kind, exchange, number, length of the head, seconds
_PREFIX = struct.Struct("<IBIHId")
_SIZE = _PREFIX.size

# To the worker.
REQUEST = 1  # number: length of the peer's address, which precedes the head; body: the request's
CREDIT = 2  # number: thousands of bytes of a stream that have left for the client
CANCEL = 3  # the client of a stream has gone

# From the worker. `seconds` is how long the handler took.
READY = 16  # number: 0 = takes requests from here, 1 = listens itself; exchange: 1 = its paths are its own
REPLY = 17  # number: status; head: header lines; body: the whole of it
START = 18  # as REPLY, but the body follows in pieces; seconds: its length, or -1
PIECE = 19
END = 20
BROKEN = 21  # a stream ended in an error
FAILED = 22  # as REPLY, when the handler raised
NOT_LOADED = 23  # body: why, in one line
DECLINED = 24  # a request that came when the worker was to take no more

Frame = tuple[int, int, int, bytes, bytes, float]
"""kind, exchange, number, head, body, seconds"""


def encode(kind: int, exchange: int, number: int = 0, head: bytes = b"", body: bytes = b"", seconds: float = 0.0):
    return (
        _PREFIX.pack(len(head) + len(body), kind, exchange, number, len(head), seconds) + head + body
    )


class FrameBuffer:
    """Cuts received bytes into frames. A frame in many pieces is joined once, not with each piece."""

    __slots__ = ("_at", "_data", "_held", "_pieces", "_wanted")

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        self._pieces: list[bytes] = []
        self._held = 0
        self._wanted = 0

    def feed(self, data: bytes) -> None:
        """To be called only after `next` has returned None."""
        if self._pieces:
            self._pieces.append(data)
            self._held += len(data)
            if self._held < self._wanted:
                return
            data = b"".join(self._pieces)
            self._pieces = []
        self._data = data
        self._at = 0

    def next(self) -> Frame | None:
        data, at = self._data, self._at
        available = len(data) - at
        wanted = _SIZE
        if available >= _SIZE:
            length, kind, exchange, number, head_length, seconds = _PREFIX.unpack_from(data, at)
            wanted = _SIZE + length
            if available >= wanted:
                head_at = at + _SIZE
                body_at = head_at + head_length
                self._at = end = at + wanted
                return kind, exchange, number, data[head_at:body_at], data[body_at:end], seconds
        if available:
            self._pieces = [data[at:]]
            self._held = available
            self._wanted = wanted
        self._data = b""
        self._at = 0
        return None
