"""`handle(event, context)` of OpenFaaS' template python3-http, and `handle(req)` of python3-flask and the classic one."""

from __future__ import annotations

import os

from .reply import Reply, check_status, header_lines, reply_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request import Request

_PARTS = frozenset(("statusCode", "body", "headers"))
_HTML = b"content-type: text/html; charset=utf-8\r\n"


def event_handler(handle):
    """`handle` as a handler that takes our request."""

    def call(request: Request):
        return handle(Event(request), Context())

    return call, parts_reply


def body_handler(handle):
    """The same of one that gets the body: text, or with RAW_BODY bytes."""
    is_raw = os.environ.get("RAW_BODY", "").lower() in ("true", "1")

    def call(request: Request):
        return handle(request.content if is_raw else request.get_data(as_text=True))

    return call, lambda value: reply_to(value, True)


class Event:
    def __init__(self, request: Request) -> None:
        self.body = request.content
        self.headers = request.headers
        self.method = request.method
        self.query = request.args
        self.path = request.path


class Context:
    def __init__(self) -> None:
        self.hostname = os.environ.get("HOSTNAME", "localhost")


def parts_reply(value) -> Reply:
    """A dict is status, body and headers; without any of them, and of any other kind, it is what Flask makes of it."""
    if not isinstance(value, dict) or value and not _PARTS & value.keys():
        return reply_to(value, True)
    body = value.get("body")
    if isinstance(body, dict):
        reply = reply_to(body, True)
    elif isinstance(body, (bytes, bytearray)):
        reply = Reply(200, _HTML, bytes(body))
    else:
        reply = Reply(200, _HTML, b"" if body is None else str(body).encode())
    headers = value.get("headers") or ()
    pairs = list(headers.items() if isinstance(headers, dict) else headers)
    if any(str(name).lower() == "content-type" for name, _ in pairs):
        reply.fields = b""
    reply.fields += header_lines(pairs)
    reply.status = check_status(int(value.get("statusCode", 200)))
    return reply
