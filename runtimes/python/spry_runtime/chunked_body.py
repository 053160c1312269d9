"""The chunked transfer coding of a request's body (RFC 9112 section 7.1), decoded as its bytes arrive."""

from __future__ import annotations

from .body_buffer import BodyBuffer
from .request_head import HEAD_LIMIT, MalformedRequest

_LINE_LIMIT = 256
_HEX = frozenset(b"0123456789abcdefABCDEF")


class ChunkedBody:
    """Feed it bytes until `done`; `rest` is then what belongs to the next request."""

    def __init__(self, limit: int) -> None:
        self.body = BodyBuffer()
        self.done = False
        self.rest = b""
        self._limit = limit
        self._buffer = b""
        self._at = 0
        # Plain functions: bound methods would tie body and decoder into a cycle that only the collector frees.
        self._state = ChunkedBody._size
        self._missing = 0
        self._trailer_length = 0

    def feed(self, data: bytes) -> None:
        """Raises `MalformedRequest`: 400 for broken framing, 413 past the limit."""
        self._buffer = self._buffer[self._at :] + data
        self._at = 0
        while self._state(self):
            pass
        if self.done:
            self.rest, self._buffer = self._buffer[self._at :], b""

    def _line(self, limit: int) -> bytes | None:
        end = self._buffer.find(b"\r\n", self._at, self._at + limit)
        if end < 0:
            if len(self._buffer) - self._at >= limit:
                raise MalformedRequest(400, "chunk line too long")
            if self._buffer.find(b"\n", self._at) >= 0:
                raise MalformedRequest(400, "malformed chunk")
            return None
        line = self._buffer[self._at : end]
        self._at = end + 2
        return line

    def _size(self) -> bool:
        line = self._line(_LINE_LIMIT)
        if line is None:
            return False
        digits = line.partition(b";")[0].rstrip(b" \t")
        # int() would also take signs, underscores and blanks.
        if not 0 < len(digits) <= 8 or not _HEX.issuperset(digits):
            raise MalformedRequest(400, "malformed chunk size")
        self._missing = int(digits, 16)
        if self.body.length + self._missing > self._limit:
            raise MalformedRequest(413, "the request body is larger than its limit (FUNC_BODY_MB_LIMIT)")
        self._state = ChunkedBody._data if self._missing else ChunkedBody._trailer
        return True

    def _data(self) -> bool:
        piece = self._buffer[self._at : self._at + self._missing]
        self._at += len(piece)
        if piece:
            self.body.append(piece)
        self._missing -= len(piece)
        if self._missing:
            return False
        self._state = ChunkedBody._end_of_chunk
        return True

    def _end_of_chunk(self) -> bool:
        if len(self._buffer) - self._at < 2:
            return False
        if self._buffer[self._at : self._at + 2] != b"\r\n":
            raise MalformedRequest(400, "malformed chunk")
        self._at += 2
        self._state = ChunkedBody._size
        return True

    def _trailer(self) -> bool:
        """Trailers are read and dropped: nothing here may depend on them."""
        line = self._line(HEAD_LIMIT)
        if line is None:
            return False
        self._trailer_length += len(line) + 2
        if self._trailer_length > HEAD_LIMIT:
            raise MalformedRequest(431, "trailers too large")
        self.done = not line
        return not self.done
