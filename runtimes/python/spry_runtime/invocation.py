"""One call of the user's handler: from the request's bytes to a `Reply`."""

from __future__ import annotations

import os
import time

from . import trace
from .body_content import UnknownCharset
from .cloud_event import MalformedCloudEvent
from .event import context_from, event_from
from .exchange import TEXT
from .handler import EVENT, WSGI
from .memory_guard import TooLargeInMemory
from .reply import Reply, error_reply, reply_to
from .request import Request
from .stand_ins import request_variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .handler import Handler
    from .request_head import RequestHead
    from .settings import Settings


class Invocation:
    def __init__(self, settings: Settings, handler: Handler) -> None:
        self._settings = settings
        self._process_id = os.getpid()
        self._handler = handler
        self._context = context_from(settings, os.environ.get("FUNC_MEMORY_LIMIT"))
        self._takes_request = handler.takes_request
        if settings.trace_collector and trace.exporter is None:
            from .span_exporter import SpanExporter

            trace.exporter = SpanExporter(settings.trace_collector, settings.function_name)
        self._begin_log = None
        if settings.log_format:
            from .invocation_log import begin_invocation

            self._begin_log = begin_invocation

    def call(self, head: RequestHead, content: bytes, peer: str) -> Reply:
        """Of a synchronous handler. Whatever it raises has become the reply."""
        self.begin(head)
        began = time.time_ns()
        reply = self._call(head, content, peer)
        self.end_if_forked()
        self.end(head, reply.status, began)
        return reply

    def _call(self, head: RequestHead, content: bytes, peer: str) -> Reply:
        try:
            if self._handler.kind is WSGI:
                from .wsgi import call_wsgi

                return _begun(call_wsgi(self._handler.call, head, content, peer))
            value = self._handler.call(*self._arguments(head, content, peer))
            if hasattr(value, "__await__"):
                import asyncio

                value = asyncio.run(_await(value))
            return _begun(reply_to(value, self._settings.new_api))
        except (MalformedCloudEvent, UnknownCharset, TooLargeInMemory) as error:
            return _unreadable(error, head)
        except BaseException as error:  # noqa: BLE001 - sys.exit() in a handler must not end the server
            return error_reply(error, head)

    def end_if_forked(self) -> None:
        """In a process that the handler has forked and allowed to return: it must not keep serving
        requests of its parent.
        """
        if os.getpid() != self._process_id:
            os._exit(0)

    def end(self, head: RequestHead, status: int, began: int) -> None:
        """Records the call's span, for which `began` is in nanoseconds since 1970."""
        context = trace.current.get()
        if trace.exporter is None or context is None:
            return
        if context.span is not None:
            context.span.end_call(head, status)
        else:
            trace.exporter.add_call(context, head, status, began, time.time_ns())

    def begin(self, head: RequestHead) -> None:
        """Of whatever this thread or task does from now on."""
        trace.begin(head.method, head.headers)
        if self._begin_log is not None:
            self._begin_log(head.headers)

    async def call_async(self, head: RequestHead, content: bytes, peer: str) -> Reply:
        """Of an asynchronous handler, in a task of its own."""
        self.begin(head)
        began = time.time_ns()
        reply = await self._call_async(head, content, peer)
        self.end_if_forked()
        self.end(head, reply.status, began)
        return reply

    async def _call_async(self, head: RequestHead, content: bytes, peer: str) -> Reply:
        try:
            value = self._handler.call(*self._arguments(head, content, peer))
            if hasattr(value, "__await__"):
                value = await value
            reply = reply_to(value, self._settings.new_api)
            if reply.pieces is None:
                return reply
            from .pieces import begin_async

            return await begin_async(reply)
        except (MalformedCloudEvent, UnknownCharset, TooLargeInMemory) as error:
            return _unreadable(error, head)
        except UnknownCharset as error:
            return _refusal(415, str(error))
        except TooLargeInMemory as error:
            from .request_log import log_refused

            fields = log_refused(head, str(error))
            return _refusal(error.status, str(error), fields + b"retry-after: 1\r\n" if error.status == 503 else fields)
        except Exception as error:  # noqa: BLE001
            return error_reply(error, head)

    def _arguments(self, head: RequestHead, content: bytes, peer: str) -> tuple:
        request = Request(head, content, peer)
        request_variable.set(request)
        if self._handler.kind is not EVENT:
            return (request,) if self._takes_request else ()
        event = event_from(request, self._settings)
        # A handler may write into its context; that must not reach the next call.
        return (event, dict(self._context))[: self._handler.arguments]

    @staticmethod
    def forget() -> None:
        """The thread that made a call lives on; what it knew of the call must not."""
        request_variable.set(None)
        trace.forget()

    @staticmethod
    def close(reply: Reply) -> None:
        """Runs what a generator has in `finally`, whether it came to its end or not."""
        close = getattr(reply.pieces, "close", None)
        if close is not None:
            try:
                close()
            except BaseException as error:  # noqa: BLE001
                error_reply(error)


def _begun(reply: Reply) -> Reply:
    if reply.pieces is None:
        return reply
    from .pieces import begin

    return begin(reply)


def _unreadable(error: Exception, head: RequestHead) -> Reply:
    """A request whose body says nothing that a handler could be called with."""
    if isinstance(error, MalformedCloudEvent):
        return malformed_event(error)
    if isinstance(error, UnknownCharset):
        return _refusal(415, str(error))
    from .request_log import log_refused

    fields = log_refused(head, str(error))
    return _refusal(error.status, str(error), fields + b"retry-after: 1\r\n" if error.status == 503 else fields)


def malformed_event(error: MalformedCloudEvent) -> Reply:
    return _refusal(400, f"malformed CloudEvent: {error}")


def _refusal(status: int, why: str, fields: bytes = b"") -> Reply:
    return Reply(status, TEXT + fields, f"{why}\n".encode())


async def _await(value):
    return await value
