"""The head of an HTTP/1.1 request.

Parsed strictly (RFC 9112): what is read laxly here is what a request smuggler hides from the hop before.
"""

from __future__ import annotations

HEAD_LIMIT = 32 * 1024
FIELD_LIMIT = 100

# By sets of bytes instead of patterns: importing `re` takes a fifth of the time in which a Function starts.
_TOKEN = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_VISIBLE = bytes((*range(0x21, 0x7F), *range(0x80, 0x100)))
_FIELD_VALUE = b"\t " + _VISIBLE
_METHOD_LIMIT = 32

# Clients on keep-alive repeat their heads byte for byte. Heads are never changed after parsing, so they are shared.
_MEMO_LENGTH = 128
_MEMO_HEAD_LIMIT = 2048
_memo: dict[bytes, RequestHead] = {}


class MalformedRequest(Exception):
    """A request that gets an error and a closed connection."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class RequestHead:
    """Method, target and fields (names in lower case), and what they say about the body that follows."""

    __slots__ = (
        "chunked", "content_length", "expects_continue", "fields", "headers", "http11", "keep_alive", "method",
        "query", "raw", "raw_path",
    )  # fmt: skip

    raw: bytes
    method: str
    raw_path: str
    """Still percent-encoded."""
    query: str
    http11: bool
    fields: list[tuple[str, str]]
    headers: dict[str, str]
    """Fields of one name are joined by commas."""
    content_length: int
    chunked: bool
    keep_alive: bool
    expects_continue: bool


def cut_head(buffer: bytes) -> tuple[RequestHead | None, bytes] | None:
    """The head at the beginning of the bytes, and what follows it; no head, of an empty line, which a client may send
    after a body (RFC 9112 section 2.2). None if there is more to come. Raises `MalformedRequest`."""
    end = buffer.find(b"\r\n\r\n", 0, HEAD_LIMIT)
    if buffer[:1] in b"\r\n":
        if buffer == b"\r":
            return None
        if buffer[:2] != b"\r\n" or buffer[2:4] == b"\r\n":
            raise MalformedRequest(400, "malformed request line")
        return None, buffer[2:]
    if end < 0:
        if len(buffer) >= HEAD_LIMIT:
            raise MalformedRequest(431, "request head too large")
        return None
    return parse_head(buffer[: end + 2]), buffer[end + 4 :]


def parse_head(raw: bytes) -> RequestHead:
    """Parses everything up to and including the CRLF of the last field. Raises `MalformedRequest`."""
    head = _memo.get(raw)
    if head is None:
        head = _parse(raw)
        head.raw = raw
        if len(raw) <= _MEMO_HEAD_LIMIT:
            if len(_memo) >= _MEMO_LENGTH:
                _memo.clear()
            _memo[raw] = head
    return head


def _parse(raw: bytes) -> RequestHead:
    line, _, block = raw.partition(b"\r\n")
    method, target, version = _parse_line(line)
    head = RequestHead()
    head.method = method
    head.raw_path, head.query = _parse_target(method, target)
    head.http11 = version != b"HTTP/1.0"
    head.fields = _parse_fields(block)
    head.headers = _join(head.fields)
    _frame(head)
    return head


def _parse_line(line: bytes) -> tuple[str, str, bytes]:
    parts = line.split(b" ")
    if len(parts) != 3:
        raise MalformedRequest(400, "malformed request line")
    method, target, version = parts
    if (
        not 0 < len(method) <= _METHOD_LIMIT
        or not target
        or method.translate(None, _TOKEN)
        or target.translate(None, _VISIBLE)
        or len(version) != 8
        or not version.startswith(b"HTTP/")
        or not (version[5:6] + version[7:]).isdigit()
        or version[6:7] != b"."
    ):
        raise MalformedRequest(400, "malformed request line")
    if version[5:6] != b"1":
        raise MalformedRequest(505, "HTTP version not supported")
    return method.decode("latin-1"), target.decode("latin-1"), version


def _parse_target(method: str, target: str) -> tuple[str, str]:
    if method == "CONNECT":
        raise MalformedRequest(405, "CONNECT is for proxies")
    if target[:7].lower() == "http://" or target[:8].lower() == "https://":
        slash = target.find("/", 8)
        target = target[slash:] if slash >= 0 else "/"
    elif target[0] != "/" and not (target == "*" and method == "OPTIONS"):
        raise MalformedRequest(400, "malformed request target")
    path, _, query = target.partition("?")
    return path, query


def _parse_fields(block: bytes) -> list[tuple[str, str]]:
    """`block` ends with the CRLF of the last field, and is empty if there is none."""
    if block.replace(b"\r\n", b"").translate(None, _FIELD_VALUE):
        raise MalformedRequest(400, "malformed header field")
    lines = block.decode("latin-1").split("\r\n")
    if len(lines) > FIELD_LIMIT + 1:
        raise MalformedRequest(431, "too many header fields")
    fields = []
    names = ""
    for line in lines[:-1]:
        name, colon, value = line.partition(":")
        if not name or not colon:
            raise MalformedRequest(400, "malformed header field")
        names += name
        fields.append((name.lower(), value.strip(" \t")))
    # Also of a folded line, or of one with a blank before the colon: the name is not a token.
    if names.encode("latin-1").translate(None, _TOKEN):
        raise MalformedRequest(400, "malformed header field")
    return fields


def _join(fields: list[tuple[str, str]]) -> dict[str, str]:
    headers = dict(reversed(fields))
    if len(headers) != len(fields):
        headers = {}
        for name, value in fields:
            if name not in headers:
                headers[name] = value
            elif name in ("host", "content-length", "content-type"):
                raise MalformedRequest(400, f"more than one {name}")
            else:
                headers[name] += ("; " if name == "cookie" else ", ") + value
    return headers


def _frame(head: RequestHead) -> None:
    headers = head.headers
    if head.http11 and "host" not in headers:
        raise MalformedRequest(400, "no host")
    connection = headers.get("connection", "").lower()
    head.keep_alive = "close" not in connection if head.http11 else "keep-alive" in connection
    encoding = headers.get("transfer-encoding")
    length = headers.get("content-length")
    head.chunked = False
    head.content_length = 0
    if encoding is not None:
        if length is not None or not head.http11:
            raise MalformedRequest(400, "ambiguous body length")
        if encoding.lower() != "chunked":
            raise MalformedRequest(501, "transfer encoding not supported")
        head.chunked = True
    elif length is not None:
        if not (length.isascii() and length.isdigit()) or len(length) > 18:
            raise MalformedRequest(400, "malformed content-length")
        head.content_length = int(length)
    expectation = headers.get("expect")
    head.expects_continue = expectation is not None and head.http11
    if expectation is not None and expectation.lower() != "100-continue":
        raise MalformedRequest(417, "expectation not supported")
