"""Which request a line of the log is about: its `X-Request-Id`, which the gateway gives each request and its response has, or a
new id, which the answer names then."""

from __future__ import annotations

import os
import time

from .log import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request_head import RequestHead

_PUNCTUATION = "_.:+/=-"
_LONGEST_ID, _LONGEST_PATH = 128, 200
_LINES_PER_SECOND = 50
"""Clients that often send too much must not fill the log."""
_second, _lines, _left = 0, 0, 0


def given_id(headers: dict[str, str]) -> str | None:
    """The id in its header; None if there is none, or none that may stand in a line."""
    given = headers.get("x-request-id", "")
    if not 0 < len(given) <= _LONGEST_ID or not given.isascii():
        return None
    return given if all(each.isalnum() or each in _PUNCTUATION for each in given) else None


def new_id() -> str:
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def named(head: RequestHead) -> tuple[str, str]:
    """Its id, and `request <id> (GET /path)`: without the query, which may hold a secret, and without what a terminal would
    act on (ECMA-48 has control characters beyond ASCII, too)."""
    request_id = given_id(head.headers) or new_id()
    path = head.raw_path if len(head.raw_path) <= _LONGEST_PATH else head.raw_path[:_LONGEST_PATH] + "…"
    if not path.isprintable():
        path = "".join(each if each.isprintable() else "\ufffd" for each in path)
    return request_id, f"request {request_id} ({head.method} {path})"


def id_field(request_id: str) -> bytes:
    return f"x-request-id: {request_id}\r\n".encode()


def log_refused(head: RequestHead, why: str) -> bytes:
    """One line for a request that gets no answer of the Function's; the answer's field with its id."""
    global _second, _lines, _left
    request_id, name = named(head)
    now = int(time.monotonic())
    if now != _second:
        if _left:
            log(f"{_left} more requests were refused within a second")
        _second, _lines, _left = now, 0, 0
    _lines += 1
    if _lines > _LINES_PER_SECOND:
        _left += 1
    else:
        log(f"{name}: {why}", request_id)
    return id_field(request_id)
