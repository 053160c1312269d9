"""Where a body is put together: once, however large it is."""

from __future__ import annotations

import io


class BodyBuffer:
    """Most bodies come in one piece. Of others there is never a second copy: the file in memory grows in place, and hands
    out what it has."""

    __slots__ = ("_file", "_first", "length")

    def __init__(self) -> None:
        self._first = b""
        self._file: io.BytesIO | None = None
        self.length = 0

    def append(self, piece: bytes) -> None:
        self.length += len(piece)
        if self._file is not None:
            self._file.write(piece)
        elif not self._first:
            self._first = piece
        else:
            self._file = io.BytesIO()
            self._file.write(self._first)
            self._file.write(piece)
            self._first = b""

    def take(self) -> bytes:
        """All of it, which is no longer here then."""
        first, self._first = self._first, b""
        if self._file is None:
            return bytes(first)
        file, self._file = self._file, None
        self.length = 0
        return file.getvalue()
