"""`handler(context, event)` of Nuclio, and `init_context(context)`, which is called before the first request."""

from __future__ import annotations

from . import nuclio_sdk
from .reply import Reply, check_status, header_lines, reply_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request import Request
    from .settings import Settings

_OF_REQUEST = frozenset(("content-type", "host"))
"""What of a request's header fields says nothing about an answer, when a handler hands them back."""


def nuclio_handler(handler, settings: Settings):
    """`handler` as a handler that takes our request, what makes a reply of its result, and its context."""
    context = nuclio_sdk.Context(nuclio_sdk.Platform(settings.namespace))

    def call(request: Request):
        return handler(context, _event(request))

    return call, _reply, context


def _event(request: Request) -> nuclio_sdk.Event:
    import uuid

    body = request.content
    content_type = request.raw_headers.get("content-type", "")
    if content_type == "application/json":
        body = request.parse_json(body)
    return nuclio_sdk.Event(
        body=body,
        content_type=content_type,
        trigger=nuclio_sdk.TriggerInfo("http", "default-http"),
        fields=dict(request.query),
        headers={_capital(name): value for name, value in request.raw_headers.items()},
        _id=str(uuid.uuid4()),
        method=request.method,
        path=request.path,
        size=len(request.content),
        timestamp=nuclio_sdk.now(),
        url=request.full_path,
        shard_id=0,
        num_shards=0,
        _type="",
        type_version="",
        version="",
        topic="",
    )


def _capital(name: str) -> str:
    return "-".join(part.capitalize() for part in name.split("-"))


def _reply(value) -> Reply:
    """Text, `(status, body)`, an object with the members of a `Response`; what is a dict or a list is JSON."""
    if value is None:
        return Reply(200, _type("text/plain"))
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], int):
        reply = _body(value[1], "text/plain")
        reply.status = check_status(value[0])
        return reply
    if not all(hasattr(value, name) for name in ("body", "headers", "status_code", "content_type")):
        return reply_to(value, True) if hasattr(value, "status_code") else _body(value, "text/plain")
    reply = _body("" if value.body is None else value.body, value.content_type or "text/plain", (dict,))
    fields = (value.headers or {}).items()
    reply.fields += header_lines((name, each) for name, each in fields if str(name).lower() not in _OF_REQUEST)
    reply.status = check_status(int(value.status_code))
    return reply


def _body(value, content_type: str, as_json=(dict, list, tuple)) -> Reply:
    if isinstance(value, (bytes, bytearray)):
        return Reply(200, _type(content_type), bytes(value))
    if not isinstance(value, as_json):
        return Reply(200, _type(content_type), str(value).encode())
    import json

    return Reply(200, _type("application/json"), json.dumps(value, default=str).encode())


def _type(content_type: str) -> bytes:
    return header_lines((("content-type", content_type),))
