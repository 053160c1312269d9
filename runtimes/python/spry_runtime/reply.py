"""What a handler's return value means as an HTTP response."""

from __future__ import annotations

from .log import log_error
from .exchange import ERROR_BODY

_HTML = b"content-type: text/html; charset=UTF-8\r\n"
_JSON = b"content-type: application/json\r\n"
_BYTES = (bytes, bytearray, memoryview)
# Framing belongs to the server.
_OURS = frozenset(("connection", "content-length", "date", "keep-alive", "transfer-encoding", "upgrade"))


class Reply:
    """Either `body`, or `pieces` (an iterable of str and bytes) of `length` bytes if that is known."""

    __slots__ = ("body", "failed", "fields", "length", "pieces", "status")

    def __init__(self, status: int, fields: bytes, body: bytes = b"", pieces=None, failed: bool = False) -> None:
        self.status = status
        self.fields = fields
        self.body = body
        self.pieces = pieces
        self.length: int | None = None
        self.failed = failed


def reply_to(value, new_api: bool) -> Reply:
    """A dict is JSON, text and bytes are themselves, iterators are streams, response objects say it all.

    The classic API keeps Bottle's rules: other falsy values are an empty body, a list of strings is their
    concatenation. `(body, status)` and `(body, status, headers)` work in both.
    """
    if isinstance(value, str):
        return Reply(200, _HTML, value.encode())
    if isinstance(value, dict):
        return Reply(200, _JSON, _json(value))
    if isinstance(value, _BYTES):
        return Reply(200, _HTML, bytes(value))
    if value is None or not new_api and not value and isinstance(value, (bool, int, float, list, tuple)):
        return Reply(200, _HTML)
    if isinstance(value, tuple) and _is_response_tuple(value):
        return _from_tuple(value, new_api)
    if isinstance(value, (list, tuple)):
        if not new_api and all(isinstance(item, str) for item in value):
            return Reply(200, _HTML, "".join(value).encode())
        if not new_api and all(isinstance(item, _BYTES) for item in value):
            return Reply(200, _HTML, b"".join(value))
        return Reply(200, _JSON, _json(value))
    if isinstance(value, (bool, int, float)):
        return Reply(200, _JSON, _json(value))
    if isinstance(value, Reply):
        return value
    response = _from_response(value, new_api)
    if response is not None:
        return response
    if hasattr(value, "read"):
        return Reply(200, _HTML, pieces=_read(value))
    if hasattr(value, "__iter__") or hasattr(value, "__aiter__"):
        return Reply(200, _HTML, pieces=value)
    raise TypeError(f"the function returned {type(value).__name__}, which is not a response")


def error_reply(error: BaseException, head: RequestHead | None = None) -> Reply:
    """A response that was raised, as by `abort()`, is an answer; everything else is logged, with the request's id, and a 500."""
    response = _from_response(error, False)
    if response is not None:
        return response
    fields = b"content-type: text/plain; charset=utf-8\r\n"
    what = "calling the function"
    if head is not None:
        from .request_log import id_field, named

        request_id, name = named(head)
        what = f"{name}: {what}"
        fields += id_field(request_id)
    log_error(what, error)
    return Reply(500, fields, ERROR_BODY, failed=True)


def header_lines(headers) -> bytes:
    """Finished lines of name-value pairs, without those that belong to the server."""
    lines = []
    for name, value in headers:
        name, value = str(name), str(value)
        if "\r" in value or "\n" in value or "\0" in value or not name or not name.isascii() or set(name) & _BREAKING:
            raise ValueError(f"response header {name!r}: contains a character that is not allowed in headers")
        if name.lower() not in _OURS:
            lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode("latin-1", "replace")


_BREAKING = frozenset("\r\n\0:; \t")


def _json(value) -> bytes:
    import json

    return json.dumps(value, default=_plain).encode()


def _plain(value):
    from .flask_json import plain

    return plain(value)


def _is_response_tuple(value: tuple) -> bool:
    return len(value) in (2, 3) and isinstance(value[1], int) and not isinstance(value[1], bool) or (
        len(value) == 2 and isinstance(value[1], dict)
    )


def _from_tuple(value: tuple, new_api: bool) -> Reply:
    reply = reply_to(value[0], new_api)
    headers = value[-1] if not isinstance(value[-1], int) else {}
    if isinstance(value[1], int):
        reply.status = check_status(value[1])
    pairs = list(headers.items() if hasattr(headers, "items") else headers)
    if any(str(name).lower() == "content-type" for name, _ in pairs):
        reply.fields = b""
    reply.fields += header_lines(pairs)
    return reply


def _from_response(value, new_api: bool) -> Reply | None:
    """Bottle's HTTPResponse has `headerlist` and `body`; Flask's and Werkzeug's `headers` and `iter_encoded`;
    Starlette's `raw_headers`; an exception of Werkzeug's makes its response by `get_response`."""
    if hasattr(value, "get_response") and isinstance(value, BaseException):
        value = value.get_response()
    status = getattr(value, "status_code", None)
    if not isinstance(status, int):
        return None
    if hasattr(value, "headerlist"):
        reply = reply_to(value.body, new_api)
        pairs = list(value.headerlist)
    elif hasattr(value, "iter_encoded"):
        streamed = getattr(value, "is_streamed", False)
        reply = Reply(200, b"", b"" if streamed else b"".join(value.iter_encoded()))
        reply.pieces = value.iter_encoded() if streamed else None
        pairs = list(value.headers.items())
    elif hasattr(value, "raw_headers") and isinstance(getattr(value, "body", None), bytes):
        reply = Reply(200, b"", value.body)
        pairs = [(name.decode("latin-1"), text.decode("latin-1")) for name, text in value.raw_headers]
    else:
        return None
    if any(name.lower() == "content-type" for name, _ in pairs) and not (
        # Bottle lists its default type also when the body has turned out to be JSON.
        reply.fields == _JSON and dict(pairs).get("Content-Type") == "text/html; charset=UTF-8"
    ):
        reply.fields = b""
    elif reply.fields == _JSON:
        pairs = [(name, text) for name, text in pairs if name.lower() != "content-type"]
    reply.status = check_status(status)
    reply.fields += header_lines(pairs)
    return reply


def length_of(text: str) -> int:
    """What the header `content-length` says."""
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise ValueError(f"response header content-length: must be a number, not {text[:40]!r}")
    return int(text)


def check_status(status: int) -> int:
    if not 200 <= status <= 999:
        raise ValueError(f"response status {status}: must be 200 to 999")
    return status


def _read(file):
    try:
        while piece := file.read(64 * 1024):
            yield piece
    finally:
        if hasattr(file, "close"):
            file.close()
