"""A request's body whose head says how long it is."""

from __future__ import annotations

from .body_buffer import BodyBuffer


class SizedBody:
    """Feed it bytes until `done`; `rest` is then what belongs to the next request. As `ChunkedBody`."""

    __slots__ = ("_missing", "body", "done", "rest")

    def __init__(self, length: int) -> None:
        self.body = BodyBuffer()
        self.done = False
        self.rest = b""
        self._missing = length

    def feed(self, data: bytes) -> None:
        if len(data) > self._missing:
            self.rest = data[self._missing :]
            data = data[: self._missing]
        self._missing -= len(data)
        self.body.append(data)
        self.done = self._missing == 0
