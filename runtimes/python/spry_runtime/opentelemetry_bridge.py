"""Makes ours the implementation behind the package `opentelemetry-api`, for Functions that use it.

The invocation is the current span of the code that it runs; spans of the Function are its children and leave with it. A
Function that sets a tracer provider of its own while it is loaded keeps that, and its spans are children all the same.
"""

from __future__ import annotations

import contextlib
from functools import cached_property

from opentelemetry import context as contexts
from opentelemetry import trace as api
from opentelemetry.baggage.propagation import W3CBaggagePropagator

from . import trace
from .span import INTERNAL, SERVER, Span
from .trace_context import TraceContext

try:
    # Also decorates coroutine functions; newer than the rest.
    from opentelemetry.util._decorator import _agnosticcontextmanager as _contextmanager
except ImportError:
    _contextmanager = contextlib.contextmanager


class BridgedSpan(api.Span):
    """OpenTelemetry's interface to one of our spans."""

    def __init__(self, span: Span) -> None:
        self.span = span

    @cached_property
    def _context(self):
        headers = self.span.get_span_context().headers()
        return api.SpanContext(
            int(headers["x-b3-traceid"], 16),
            int(headers["x-b3-spanid"], 16),
            is_remote=False,
            trace_flags=api.TraceFlags(int(headers["x-b3-sampled"])),
            trace_state=api.TraceState.from_header([headers.get("tracestate", "")]),
        )

    def get_span_context(self):
        return self._context

    def is_recording(self) -> bool:
        return self.span.is_recording()

    def set_attribute(self, key, value) -> None:
        self.span.set_attribute(key, value)

    def set_attributes(self, attributes) -> None:
        self.span.set_attributes(attributes)

    def add_event(self, name, attributes=None, timestamp=None) -> None:
        self.span.add_event(name, attributes, timestamp)

    def record_exception(self, exception, attributes=None, timestamp=None, escaped=False) -> None:
        self.span.record_exception(exception)

    def set_status(self, status, description=None) -> None:
        self.span.set_status(status, description)

    def update_name(self, name) -> None:
        self.span.update_name(name)

    def end(self, end_time=None) -> None:
        self.span.end(end_time)

    def __exit__(self, kind, error, traceback) -> None:
        self.span.__exit__(kind, error, traceback)


class _Tracer(api.Tracer):
    def start_span(
        self, name, context=None, kind=api.SpanKind.INTERNAL, attributes=None, links=None, start_time=None,
        record_exception=True, set_status_on_exception=True,
    ):  # fmt: skip
        caller = api.get_current_span(context).get_span_context()
        ours = TraceContext(_headers_of(caller) if caller.is_valid else {})
        ours.headers()  # finds out who its parent is
        number = INTERNAL + kind.value  # OpenTelemetry counts kinds from 0, its protocol from 1
        return BridgedSpan(Span(name, ours, None, attributes, trace.exporter, number, start_time))

    @_contextmanager
    def start_as_current_span(
        self, name, context=None, kind=api.SpanKind.INTERNAL, attributes=None, links=None, start_time=None,
        record_exception=True, set_status_on_exception=True, end_on_exit=True,
    ):  # fmt: skip
        span = self.start_span(name, context, kind, attributes, links, start_time)
        with api.use_span(span, end_on_exit, record_exception, set_status_on_exception) as current:
            yield current


class _Provider(api.TracerProvider):
    def get_tracer(self, *_args, **_options):
        return _Tracer()


class Bridge:
    """Of one process, from when the Function has imported the package."""

    def __init__(self) -> None:
        if isinstance(api.get_tracer_provider(), api.ProxyTracerProvider):
            api.set_tracer_provider(_Provider())

    def enter(self, context: TraceContext, method: str, incoming: dict[str, str]) -> None:
        """Makes a span of the invocation, which is the current one from now on in this thread or task."""
        span = context.span = Span(method, context, None, None, trace.exporter, SERVER)
        current = api.set_span_in_context(BridgedSpan(span), contexts.Context())
        if "baggage" in incoming:
            current = W3CBaggagePropagator().extract(incoming, current)
        contexts.attach(current)

    def leave(self) -> None:
        contexts.attach(contexts.Context())

    def outgoing_headers(self) -> dict[str, str] | None:
        """Of the current span; None if there is none."""
        span = api.get_current_span()
        if isinstance(span, BridgedSpan):
            return dict(span.span.get_span_context().headers())
        context = span.get_span_context()
        if not context.is_valid:
            return None
        headers = _headers_of(context)
        _, trace_id, span_id, flags = headers["traceparent"].split("-")
        return {**headers, "x-b3-traceid": trace_id, "x-b3-spanid": span_id, "x-b3-sampled": flags[1]}


def _headers_of(context) -> dict[str, str]:
    flags = 1 if context.trace_flags.sampled else 0
    headers = {"traceparent": f"00-{context.trace_id:032x}-{context.span_id:016x}-0{flags}"}
    if context.trace_state:
        headers["tracestate"] = context.trace_state.to_header()
    return headers
