"""A request's body whose head says how long it is."""

from __future__ import annotations


class SizedBody:
    """Feed it bytes until `done`; `rest` is then what belongs to the next request. As `ChunkedBody`."""

    __slots__ = ("_missing", "_pieces", "body", "done", "rest")

    def __init__(self, length: int) -> None:
        self.body = b""
        self.done = False
        self.rest = b""
        self._pieces: list[bytes] = []
        self._missing = length

    def feed(self, data: bytes) -> None:
        missing = self._missing
        if len(data) < missing:
            self._pieces.append(data)
            self._missing = missing - len(data)
            return
        if len(data) > missing:
            self.rest = data[missing:]
            data = data[:missing]
        self.done = True
        if self._pieces:
            self._pieces.append(data)
            data = b"".join(self._pieces)
            self._pieces = []
        self.body = data
