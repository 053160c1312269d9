"""What Knative's func puts around a Function's `handle`: health paths, and CloudEvents for those that use them.

The package `func-python` has one server for HTTP and one for CloudEvents; which is meant is not in the Function's code. So a
request that is a CloudEvent is decoded if the code has imported `cloudevents.core`, and `send` takes ASGI's messages too.
"""

from __future__ import annotations

import sys

from .body_content import is_json, media_type, without_mark
from .cloud_event import STRUCTURED, MalformedCloudEvent

_HEALTH = {"/health/liveness": "alive", "/health/readiness": "ready"}


def application_of(handle, instance=None):
    """An ASGI application. `instance` may have `alive` and `ready`, which return true, or true and a text."""

    async def application(scope, receive, send):
        check = _HEALTH.get(scope.get("path", ""))
        if scope["type"] != "http":
            await handle(scope, receive, send)
        elif check is not None:
            found = getattr(instance, check, None)
            healthy, text = _verdict(found() if found is not None else True)
            await _respond(send, 200 if healthy else 500, text)
        elif "cloudevents.core" not in sys.modules:
            await handle(scope, receive, send)
        else:
            await _with_event(handle, scope, receive, send)

    return application


def _verdict(result) -> tuple[bool, str]:
    return (bool(result[0]), str(result[1])) if isinstance(result, tuple) else (bool(result), "OK")


async def _respond(send, status: int, text: str) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": text.encode()})


async def _with_event(handle, scope, receive, send) -> None:
    from cloudevents.core.bindings.http import HTTPMessage, from_http_event

    message = await receive()  # the whole of it: requests come here complete
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    scope = _Scope(scope)
    if media_type(headers) == STRUCTURED or "ce-type" in headers:
        body = message["body"]
        try:
            scope["event"] = from_http_event(
                HTTPMessage(headers=headers, body=without_mark(body) if is_json(media_type(headers)) else body)
            )
        except Exception as error:  # noqa: BLE001 - of the package: whatever it cannot read
            return await _respond(send, 400, f"malformed CloudEvent: {error}\n")
    messages = iter((message,))

    async def receive_again():
        return next(messages, None) or await receive()

    try:
        await handle(scope, receive_again, _Sender(send))
    except MalformedCloudEvent as error:
        await _respond(send, 400, f"malformed CloudEvent: {error}\n")


class _Scope(dict):
    """Without an event there is none to ask for."""

    def __missing__(self, key):
        if key == "event":
            raise MalformedCloudEvent("the request is not a CloudEvent")
        raise KeyError(key)


class _Sender:
    """`send` of a handler: of an event, structured or `binary`, or of ASGI's messages (also by `http`)."""

    def __init__(self, send) -> None:
        self.http = send

    async def __call__(self, message, status: int = 200) -> None:
        if isinstance(message, dict):
            await self.http(message)
        else:
            await self.structured(message, status)

    async def structured(self, event, status: int = 200) -> None:
        from cloudevents.core.bindings.http import to_structured_event

        await self._send(to_structured_event(event), status)

    async def binary(self, event, status: int = 200) -> None:
        from cloudevents.core.bindings.http import to_binary_event

        await self._send(to_binary_event(event), status)

    async def _send(self, message, status: int) -> None:
        headers = [(name.encode(), value.encode()) for name, value in message.headers.items()]
        await self.http({"type": "http.response.start", "status": status, "headers": headers})
        await self.http({"type": "http.response.body", "body": message.body})
