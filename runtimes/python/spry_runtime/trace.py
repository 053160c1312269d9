"""The trace of the current invocation, handed on with every request that it sends."""

from __future__ import annotations

import contextvars
import sys

from .log import log_error
from .trace_context import TraceContext

exporter = None
"""The process's `SpanExporter`, if spans are to be sent."""

current: contextvars.ContextVar[TraceContext | None] = contextvars.ContextVar("trace", default=None)

bridge = None
"""The process's `Bridge`, if the Function uses the opentelemetry package."""
_is_bridgeable = True


def begin(method: str, headers: dict[str, str]) -> None:
    """Of the invocation that this thread or task makes from now on."""
    if _is_bridgeable and "opentelemetry.trace" in sys.modules:
        _build_bridge()
    _instrument_http_client()
    context = TraceContext(headers)
    current.set(context)
    if bridge is not None:
        bridge.enter(context, method, headers)


def forget() -> None:
    """The thread that made an invocation lives on."""
    current.set(None)
    if bridge is not None:
        bridge.leave()


def _build_bridge() -> None:
    global bridge, _is_bridgeable
    if getattr(sys.modules["opentelemetry.trace"].__spec__, "_initializing", False):
        return  # another thread is importing it just now
    _is_bridgeable = False
    try:
        from .opentelemetry_bridge import Bridge

        bridge = Bridge()
    except Exception as error:  # noqa: BLE001 - of a version with another face: no call may fail for that
        log_error("opentelemetry-api: its spans will not be children of the invocation's", error)


def outgoing_headers() -> dict[str, str]:
    """The headers that continue the current invocation's trace; none outside of one."""
    context = current.get()
    if context is None:
        return {}
    headers = bridge.outgoing_headers() if bridge is not None else None
    return headers or dict(context.headers())


_instrumented = False


def _instrument_http_client() -> None:
    """Lets every HTTP client that is built on `http.client` (urllib, requests, urllib3, boto) pass
    the trace on. Cheap to call before each invocation: does nothing until `http.client` has been
    imported.
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
