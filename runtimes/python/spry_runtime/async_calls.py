"""The calls of asynchronous handlers and ASGI applications, each in a task of its own: from a request to its answer."""

from __future__ import annotations

import asyncio
import time

from .exchange import ERROR_BODY, TEXT, Exchange
from .handler import ASGI
from .invocation import Invocation
from .log import log_error
from .reply import error_reply

_LARGE = 256 * 1024


class AsyncCalls:
    """`settle(exchange, status, failed)` is called when a handler is done with an exchange, in
    whatever way.
    """

    def __init__(self, settings, handler, settle) -> None:
        self._settings = settings
        self._handler = handler
        self._invocation = Invocation(settings, handler)
        self._call_handler = self._call_in_loop if handler.asynchronous else self._call_in_thread
        self._settle = settle
        self._sockets: set[asyncio.Task] = set()
        self._pool = None
        self.state: dict = {}
        """Of the application's lifespan."""

    def call(self, exchange: Exchange):
        """The coroutine that answers it."""
        if self._handler.kind is ASGI:
            return self._call_websocket(exchange) if "upgrade" in exchange.head.headers else self._call_application(exchange)
        return self._call(exchange)

    async def _call(self, exchange: Exchange) -> None:
        status, failed = 500, True
        try:
            reply = await self._call_handler(exchange)
            status, failed = reply.status, reply.failed
            await self._send(exchange, reply)
        except BaseException as error:  # noqa: BLE001
            failed = True
            self._fail(exchange, error)
        finally:
            self._settle(exchange, status, failed)

    def _call_in_loop(self, exchange: Exchange):
        return self._invocation.call_async(exchange.head, exchange.body, exchange.peer)

    def _call_in_thread(self, exchange: Exchange):
        import concurrent.futures

        if self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(self._settings.threads)
        return asyncio.get_running_loop().run_in_executor(
            self._pool, self._invocation.call, exchange.head, exchange.body, exchange.peer
        )

    async def _call_application(self, exchange: Exchange) -> None:
        from .asgi import call_asgi

        status, failed = 500, True
        self._invocation.begin(exchange.head)
        began = time.time_ns()
        try:
            status = await call_asgi(self._handler.call, exchange, self.state)
            failed = status >= 500
        except BaseException as error:  # noqa: BLE001
            failed = True
            self._fail(exchange, error)
        finally:
            self._invocation.end_if_forked()
            self._invocation.end(exchange.head, status, began)
            self._settle(exchange, status, failed)

    async def _call_websocket(self, exchange: Exchange) -> None:
        """A call, as limits and metrics count it, until it is accepted or refused."""
        from .asgi_websocket import call_asgi_websocket, is_websocket

        if not is_websocket(exchange.head):
            return await self._call_application(exchange)
        task = asyncio.current_task()

        def accepted() -> None:
            self._sockets.add(task)
            self._settle(exchange, 101, False)

        self._invocation.begin(exchange.head)
        failed = True
        try:
            await call_asgi_websocket(
                self._handler.call, exchange, self.state, self._settings.body_limit, accepted
            )
            failed = False
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001
            log_error("calling the function for a WebSocket", error)
        finally:
            self._sockets.discard(task)
            self._settle(exchange, 500 if failed else 403, failed)

    def _fail(self, exchange: Exchange, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError) and exchange.gone:
            raise error  # we have cancelled it; a handler's own is a failure like others, and somebody waits
        if exchange.begun:
            log_error("calling the function: its response was interrupted", error)
            exchange.break_off()
        else:
            error_reply(error)
            exchange.respond(500, TEXT, ERROR_BODY)

    async def _send(self, exchange: Exchange, reply) -> None:
        if reply.pieces is None and len(reply.body) <= _LARGE:
            return exchange.respond(reply.status, reply.fields, reply.body)
        pieces = reply.pieces
        if pieces is None:
            reply.length = len(reply.body)
            pieces = (reply.body[at : at + _LARGE] for at in range(0, reply.length, _LARGE))
        exchange.start(reply.status, reply.fields, reply.length)
        try:
            async for piece in _each(pieces):
                if exchange.gone:
                    return
                exchange.write(piece)
                await exchange.drained()
            exchange.finish()
        finally:
            if hasattr(pieces, "aclose"):
                await pieces.aclose()
            else:
                self._invocation.close(reply)


async def _each(pieces):
    """Of either kind of iterable. A synchronous one must not keep the loop to itself."""
    if hasattr(pieces, "__aiter__"):
        async for piece in pieces:
            yield piece
        return
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)
