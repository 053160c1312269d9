"""ASGI 3 applications, such as FastAPI's or Starlette's, as they are: HTTP and lifespan; `asgi_websocket` has the rest."""

from __future__ import annotations

import asyncio

from .exchange import Exchange
from .log import log_error
from .reply import check_status, header_lines, length_of
from .percent import unquote

_VERSION = {"version": "3.0", "spec_version": "2.3"}


async def call_asgi(app, exchange: Exchange, state: dict) -> int:
    """Answers the exchange. Returns the status."""
    call = _Call(exchange)
    await app(scope_of(exchange, state), call.receive, call.send)
    if not call.status:
        raise RuntimeError("the ASGI application sent no response")
    if not exchange.gone:
        raise RuntimeError("the ASGI application did not complete its response")
    return call.status


def scope_of(exchange: Exchange, state: dict) -> dict:
    """Of an HTTP request, as ASGI's HTTP message format has it."""
    head = exchange.head
    return {
        "type": "http",
        "asgi": _VERSION,
        "http_version": "1.1" if head.http11 else "1.0",
        "method": head.method,
        "scheme": head.headers.get("x-forwarded-proto", "http"),
        "path": unquote(head.raw_path),
        "raw_path": head.raw_path.encode("latin-1"),
        "query_string": head.query.encode("latin-1"),
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head.fields],
        "client": (exchange.peer, 0) if exchange.peer else None,
        "server": None,
        "state": dict(state),
        "extensions": {},
    }


class _Call:
    def __init__(self, exchange: Exchange) -> None:
        self.status = 0
        self._exchange = exchange
        self._fields = b""
        self._length: int | None = None
        self._received = False

    async def receive(self) -> dict:
        exchange = self._exchange
        if not self._received:
            self._received = True
            return {"type": "http.request", "body": exchange.body, "more_body": False}
        await exchange.ended()
        return {"type": "http.disconnect"}

    async def send(self, message: dict) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            if self.status:
                raise RuntimeError("http.response.start was sent twice")
            status = check_status(message["status"])
            pairs = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in message.get("headers", ())]
            self._fields = header_lines(pairs)
            length = next((value for name, value in pairs if name.lower() == "content-length"), None)
            self._length = length_of(length) if length is not None else None
            self.status = status
        elif kind == "http.response.body":
            body = message.get("body", b"")
            # A length may be that of other items than bytes.
            await self._send_body(body if type(body) is bytes else bytes(memoryview(body)), message.get("more_body", False))
        else:
            raise RuntimeError(f"ASGI message {kind} is not supported")

    async def _send_body(self, body: bytes, more: bool) -> None:
        exchange = self._exchange
        if not self.status:
            raise RuntimeError("http.response.body was sent before http.response.start")
        if exchange.gone:
            return
        if not more and not exchange.begun:
            # Of a HEAD request the application may have left out the body and kept its length.
            if exchange.head.method != "HEAD" or self._length is None:
                return exchange.respond(self.status, self._fields, body)
        if not exchange.begun:
            exchange.start(self.status, self._fields, self._length)
        exchange.write(body)
        if more:
            await exchange.drained()
        else:
            exchange.finish()


class Lifespan:
    """The application's own start and end. One that does not know of lifespans raises at once, which is fine."""

    def __init__(self, app) -> None:
        self.state: dict = {}
        self._app = app
        self._task: asyncio.Task | None = None
        self._inbox: asyncio.Queue = asyncio.Queue()
        self._outbox: asyncio.Queue = asyncio.Queue()

    async def startup(self) -> None:
        self._task = asyncio.create_task(self._run())
        await self._inbox.put({"type": "lifespan.startup"})
        message = await self._outbox.get()
        if message["type"] == "lifespan.startup.failed":
            raise RuntimeError(message.get("message") or "startup failed")

    async def shutdown(self) -> None:
        if self._task is None or self._task.done():
            return
        await self._inbox.put({"type": "lifespan.shutdown"})
        message = await self._outbox.get()
        if message["type"] == "lifespan.shutdown.failed":
            log_error("ending the application", RuntimeError(message.get("message") or "shutdown failed"))

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": _VERSION, "state": self.state}
        try:
            await self._app(scope, self._inbox.get, self._outbox.put)
        except BaseException:  # noqa: BLE001 - the specification's way to say "not supported"
            pass
        await self._outbox.put({"type": "none"})
