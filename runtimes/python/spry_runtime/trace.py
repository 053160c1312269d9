"""Trace context: taken from a request, handed on with every outgoing one (W3C and B3)."""

from __future__ import annotations

import contextvars
import os
import sys

# Compiled (and cached) by `re` when the first request asks for its trace.
_TRACEPARENT = r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
_B3_TRACE = r"[0-9a-f]{16}(?:[0-9a-f]{16})?"
_B3_SPAN = r"[0-9a-f]{16}"
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


class TraceContext:
    """The span of one invocation. Ids are made when somebody first asks."""

    __slots__ = ("_incoming", "_outgoing", "span_id_of_caller")

    def __init__(self, incoming: dict[str, str]) -> None:
        self._incoming = incoming
        self._outgoing: dict[str, str] | None = None
        self.span_id_of_caller: str | None = None

    def headers(self) -> dict[str, str]:
        """What outgoing requests are to carry."""
        if self._outgoing is None:
            trace, self.span_id_of_caller, sampled = _parse(self._incoming)
            span = os.urandom(8).hex()
            self._outgoing = {
                "traceparent": f"00-{trace}-{span}-0{sampled}",
                "x-b3-traceid": trace,
                "x-b3-spanid": span,
                "x-b3-sampled": sampled,
            }
            for name in ("tracestate", "baggage"):
                if name in self._incoming:
                    self._outgoing[name] = self._incoming[name]
        return self._outgoing

    @property
    def is_sampled(self) -> bool:
        return self.headers()["x-b3-sampled"] == "1"

    def child(self) -> TraceContext:
        """The context of a span inside this one."""
        child = TraceContext(self._incoming)
        child.span_id_of_caller = self.span_id
        span = os.urandom(8).hex()
        traceparent = f"00-{self.trace_id}-{span}-0{int(self.is_sampled)}"
        child._outgoing = {**self.headers(), "traceparent": traceparent, "x-b3-spanid": span}
        return child

    @property
    def trace_id(self) -> str:
        return self.headers()["x-b3-traceid"]

    @property
    def span_id(self) -> str:
        return self.headers()["x-b3-spanid"]


exporter = None
"""The process's `SpanExporter`, if spans are to be sent."""

current: contextvars.ContextVar[TraceContext | None] = contextvars.ContextVar("trace", default=None)


def outgoing_headers() -> dict[str, str]:
    """The headers that continue the current invocation's trace; none outside of one."""
    context = current.get()
    return dict(context.headers()) if context is not None else {}


def _parse(incoming: dict[str, str]) -> tuple[str, str | None, str]:
    import re

    match = re.fullmatch(_TRACEPARENT, incoming.get("traceparent", ""))
    if match and match[1] != _NO_TRACE and match[2] != _NO_SPAN:
        return match[1], match[2], str(int(match[3], 16) & 1)
    trace = incoming.get("x-b3-traceid", "").lower()
    span = incoming.get("x-b3-spanid", "").lower()
    sampled = "0" if incoming.get("x-b3-sampled", "1").lower() in ("0", "false") else "1"
    if re.fullmatch(_B3_TRACE, trace) and re.fullmatch(_B3_SPAN, span):
        return trace.rjust(32, "0"), span, sampled
    return os.urandom(16).hex(), None, sampled


_instrumented = False


def instrument_http_client() -> None:
    """Lets every HTTP client that rests on `http.client` (urllib, requests, urllib3, boto) hand the trace on.

    Cheap to call before each invocation: does nothing until somebody has imported `http.client`.
    """
    global _instrumented
    if _instrumented or "http.client" not in sys.modules:
        return
    connection = getattr(sys.modules["http.client"], "HTTPConnection", None)
    if connection is None:
        return  # another thread is importing it just now
    _instrumented = True
    put_request, put_header, end_headers = connection.putrequest, connection.putheader, connection.endheaders

    def putrequest(self, *args, **options):
        self._spry_traced = False
        return put_request(self, *args, **options)

    def putheader(self, header, *values):
        name = header.decode("latin-1") if isinstance(header, bytes) else header
        if name.lower() == "traceparent":
            self._spry_traced = True
        return put_header(self, header, *values)

    def endheaders(self, *args, **options):
        if not getattr(self, "_spry_traced", True):
            for name, value in outgoing_headers().items():
                put_header(self, name, value)
        return end_headers(self, *args, **options)

    connection.putrequest, connection.putheader, connection.endheaders = putrequest, putheader, endheaders


class Tracer:
    """`event.tracer` when the Function does not bring the opentelemetry package. Its spans are OpenTelemetry's as far
    as handlers use them; they are sent if `TRACE_COLLECTOR_ENDPOINT` is set, and recorded nowhere otherwise."""

    def start_span(self, name: str, *_args, attributes=None, **_options):
        """A child of the current span, to be ended by `end` or `with`."""
        from .span import Span

        parent = current.get()
        return Span(name, TraceContext({}) if parent is None else parent.child(), parent, attributes, exporter)

    def start_as_current_span(self, name: str, *args, **options):
        """For `with`: requests and spans inside are children of this span."""
        from .span import CurrentSpan

        return CurrentSpan(self.start_span(name, *args, **options))

    def headers(self) -> dict[str, str]:
        """What an outgoing request must carry to continue the trace."""
        return outgoing_headers()


_tracer = Tracer()


def get_tracer():
    """OpenTelemetry's tracer if the Function has imported that package, else ours."""
    telemetry = sys.modules.get("opentelemetry.trace")
    if telemetry is not None and hasattr(telemetry, "get_tracer"):
        return telemetry.get_tracer("io.kyma-project.serverless")
    return _tracer
