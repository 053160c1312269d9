"""Spans that a handler makes by `event.tracer`."""

from __future__ import annotations

import time

from . import trace
from .request_log import given_id

_LIMIT = 128
"""Of attributes, and of events."""

INTERNAL, SERVER = 1, 2
"""Kinds, in OTLP's numbers."""


class Span:
    """The part of OpenTelemetry's Span that handlers use. Recorded when its trace is sampled and there is room."""

    def __init__(
        self, name: str, context, parent, attributes, exporter, kind: int = INTERNAL, start_time: int | None = None
    ) -> None:
        self.name = name
        self.attributes: dict[str, object] = {}
        self.events: list[tuple[str, int, dict]] = []
        self.status = 0
        self.status_message = ""
        self._context = context
        self._parent_id = None if parent is None else parent.span_id
        self._exporter = exporter if exporter is not None and exporter.has_room and context.is_sampled else None
        self._kind = kind
        self._started = start_time or time.time_ns()
        self.set_attributes(attributes or {})

    def __enter__(self) -> Span:
        return self

    def __exit__(self, _kind, error, _traceback) -> None:
        if isinstance(error, Exception):
            self.record_exception(error)
            self.set_status(2)
        self.end()

    def get_span_context(self):
        return self._context

    def is_recording(self) -> bool:
        return self._exporter is not None

    def set_attribute(self, name: str, value) -> None:
        if self._exporter is not None and (name in self.attributes or len(self.attributes) < _LIMIT):
            self.attributes[name] = value

    def set_attributes(self, attributes) -> None:
        for name, value in attributes.items():
            self.set_attribute(name, value)

    def add_event(self, name: str, attributes=None, timestamp: int | None = None) -> None:
        if self._exporter is not None and len(self.events) < _LIMIT:
            self.events.append((name, timestamp or time.time_ns(), dict(attributes or {})))

    def record_exception(self, exception: BaseException, *_args, **_options) -> None:
        self.add_event(
            "exception", {"exception.type": type(exception).__name__, "exception.message": str(exception)}
        )

    def set_status(self, status, description: str | None = None) -> None:
        """A number, or OpenTelemetry's StatusCode or Status: 0 unset, 1 ok, 2 error."""
        code = getattr(status, "status_code", status)
        self.status = int(getattr(code, "value", code))
        self.status_message = description or getattr(status, "description", None) or ""

    def update_name(self, name: str) -> None:
        self.name = name

    def end_call(self, head, status: int) -> None:
        """Ends the span of an invocation."""
        request_id = given_id(head.headers)
        if request_id is not None:
            self.set_attributes({"http.request.header.x-request-id": [request_id]})
        self.set_attributes(
            {"http.request.method": head.method, "url.path": head.raw_path, "http.response.status_code": status}
        )
        if status >= 500 and not self.status:
            self.set_status(2)
        self.end()

    def end(self, end_time: int | None = None) -> None:
        exporter, self._exporter = self._exporter, None
        if exporter is not None:
            exporter.add(
                self.name, self._kind, self._context, self._parent_id, self._started, end_time or time.time_ns(),
                self.attributes, self.events, self.status, self.status_message,
            )  # fmt: skip


class CurrentSpan:
    """Makes a span the current one while a `with` block runs."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def __enter__(self) -> Span:
        self._token = trace.current.set(self._span.get_span_context())
        return self._span

    def __exit__(self, *error) -> None:
        trace.current.reset(self._token)
        self._span.__exit__(*error)
