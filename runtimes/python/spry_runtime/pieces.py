"""The pieces of an answer that is streamed, from whatever a handler makes them of, as bytes.

The first is fetched before the answer's head leaves: a handler that fails until then has failed like any other, and
is answered 500. Server-sent events are not waited for, as who listens to them waits for the head.
"""

from __future__ import annotations

_EVENTS = b"text/event-stream"


def begin(reply):
    """Of a `Reply` with pieces, which is returned. Raises what the handler raises."""
    reply.pieces = Pieces(reply.pieces)
    if _EVENTS not in reply.fields:
        reply.pieces.begin()
    return reply


async def begin_async(reply):
    """Of a `Reply` whose pieces an asynchronous handler makes: they are of either kind."""
    if not hasattr(reply.pieces, "__aiter__"):
        return begin(reply)
    reply.pieces = AsyncPieces(reply.pieces)
    if _EVENTS not in reply.fields:
        await reply.pieces.begin()
    return reply


def as_bytes(piece) -> bytes:
    """Other things have a length too, of items that are more than a byte, or are numbers."""
    if isinstance(piece, str):
        return piece.encode()
    if isinstance(piece, (bytes, bytearray, memoryview)):
        return bytes(piece)
    raise TypeError(f"the function's response has a part of type {type(piece).__name__}, which is neither text nor bytes")


class Pieces:
    def __init__(self, source) -> None:
        if not hasattr(source, "__iter__"):
            raise TypeError(f"the function returned {type(source).__name__}, which needs an asynchronous function")
        self._source = source
        self._iterator = iter(source)
        self._first: bytes | None = None

    def begin(self) -> None:
        try:
            for piece in self._iterator:
                self._first = as_bytes(piece)
                return
        except BaseException:
            self.close()
            raise

    def __iter__(self):
        first, self._first = self._first, None
        if first is not None:
            yield first
        for piece in self._iterator:
            yield as_bytes(piece)

    def close(self) -> None:
        if hasattr(self._source, "close"):
            self._source.close()


class AsyncPieces:
    def __init__(self, source) -> None:
        self._source = source
        self._iterator = source.__aiter__()
        self._first: bytes | None = None

    async def begin(self) -> None:
        try:
            async for piece in self._iterator:
                self._first = as_bytes(piece)
                return
        except BaseException:
            await self.aclose()
            raise

    async def __aiter__(self):
        first, self._first = self._first, None
        if first is not None:
            yield first
        async for piece in self._iterator:
            yield as_bytes(piece)

    async def aclose(self) -> None:
        if hasattr(self._source, "aclose"):
            await self._source.aclose()
