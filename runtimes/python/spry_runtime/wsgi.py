"""WSGI applications (PEP 3333), such as Flask's, as they are."""

from __future__ import annotations

from .reply import Reply, check_status, header_lines, length_of
from .wsgi_environ import wsgi_environ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request_head import RequestHead


def call_wsgi(app, head: RequestHead, content: bytes, peer: str) -> Reply:
    """The application is called; its body is left to be iterated, and closed, by the sender."""
    start = _Start()
    result = app(wsgi_environ(head, content, peer), start)
    if isinstance(result, (list, tuple)) and start.status and not start.written:
        body = b"".join(result)
        if start.length in (None, len(body)):
            return Reply(start.status, start.fields, body)
    pieces = _Pieces(result, start)
    pieces.begin()
    if not start.status:
        pieces.close()
        raise RuntimeError("the WSGI application did not call start_response")
    reply = Reply(start.status, start.fields, pieces=pieces)
    # Also of a HEAD request, for which the application leaves out the body. A shorter body is an aborted response.
    reply.length = start.length
    return reply


class _Start:
    def __init__(self) -> None:
        self.status = 0
        self.fields = b""
        self.length: int | None = None
        """Of the body, if the application says it."""
        self.written: list[bytes] = []

    def __call__(self, status: str, headers: list, exc_info=None):
        if self.status and exc_info is None:
            raise AssertionError("start_response was called twice")
        code = check_status(int(status.split(None, 1)[0]))
        self.fields = header_lines(headers)
        self.length = _length_in(headers)
        self.status = code
        return self.written.append


class _Pieces:
    """An application may call start_response as late as with its first piece that is not empty, so that is fetched at once."""

    def __init__(self, result, start: _Start) -> None:
        self._result = result
        self._iterator = iter(result)
        self._start = start
        self._first: bytes | None = None

    def begin(self) -> None:
        for piece in self._iterator:
            if piece or self._start.status:
                self._first = piece
                return

    def __iter__(self):
        yield from self._start.written
        if self._first is not None:
            yield self._first
            yield from self._iterator

    def close(self) -> None:
        if hasattr(self._result, "close"):
            self._result.close()


def _length_in(headers) -> int | None:
    text = next((value for name, value in headers if name.lower() == "content-length"), None)
    return None if text is None else length_of(text)
