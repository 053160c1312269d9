"""Sends spans to a collector, by OTLP over HTTP in JSON (opentelemetry-proto, ExportTraceServiceRequest)."""

from __future__ import annotations

import json
import threading
from collections import deque
from urllib.parse import urlsplit

from .log import log

_QUEUED, _PER_REQUEST = 4096, 512
_INTERVAL_SECONDS, _TIMEOUT_SECONDS = 1.0, 10.0


class SpanExporter:
    """At most 4096 spans wait; they leave once a second, on a thread. Drops what is more, and what the collector does
    not take."""

    def __init__(self, endpoint: str, service: str) -> None:
        self._endpoint = endpoint
        self._service = service
        self._queue: deque[tuple] = deque()
        self._limit = _QUEUED
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="spans")
        self._thread.start()

    @property
    def has_room(self) -> bool:
        """Whether a span that begins now would be sent, as far as one can know."""
        return len(self._queue) < self._limit

    def add(self, *span) -> None:
        """name, kind, context, parent's id, start and end in nanoseconds since 1970, attributes, events, status"""
        if self.has_room:
            self._queue.append(span)

    def stop(self) -> None:
        """Sends what is there, for up to a second."""
        self._stopping.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        while not self._stopping.wait(_INTERVAL_SECONDS):
            self._send_all()
        self._send_all()

    def _send_all(self) -> None:
        while self._queue:
            spans = [self._queue.popleft() for _ in range(min(_PER_REQUEST, len(self._queue)))]
            try:
                _post(self._endpoint, _request(spans, self._service))
                self._limit = _QUEUED
            except Exception as error:  # noqa: BLE001 - whatever it is, spans are not worth a failure
                if self._limit == _QUEUED:
                    log(f"exporting spans to {self._endpoint}: {error}")
                self._limit = _PER_REQUEST
                return self._queue.clear()


def _request(spans: list[tuple], service: str) -> bytes:
    resource = {"attributes": _key_values({"service.name": service})}
    scope = {"name": "io.kyma-project.serverless"}
    scope_spans = [{"scope": scope, "spans": [_span(*span) for span in spans]}]
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scope_spans}]}).encode()


def _span(name, kind, context, parent, started, ended, attributes, events, status) -> dict:
    headers = context.headers()
    span = {
        "traceId": headers["x-b3-traceid"],
        "spanId": headers["x-b3-spanid"],
        "name": name,
        "kind": kind,
        # As text: numbers of JSON are not exact so far.
        "startTimeUnixNano": str(started),
        "endTimeUnixNano": str(ended),
        "attributes": _key_values(attributes),
        "status": {"code": status} if status else {},
    }
    parent = parent or context.span_id_of_caller
    if parent:
        span["parentSpanId"] = parent
    if "tracestate" in headers:
        span["traceState"] = headers["tracestate"]
    if events:
        span["events"] = [
            {"name": name, "timeUnixNano": str(at), "attributes": _key_values(values)} for name, at, values in events
        ]
    return span


def _key_values(attributes: dict) -> list[dict]:
    return [{"key": str(key), "value": _any_value(value)} for key, value in attributes.items()]


def _any_value(value) -> dict:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return {"intValue": str(value)}
    if isinstance(value, float) and abs(value) < float("inf"):
        return {"doubleValue": value}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [_any_value(each) for each in value]}}
    return {"stringValue": str(value)}


def _post(endpoint: str, body: bytes) -> None:
    import http.client

    url = urlsplit(endpoint)
    connect = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = connect(url.hostname or "", url.port, timeout=_TIMEOUT_SECONDS)
    try:
        path = url.path if url.path not in ("", "/") else "/v1/traces"
        connection.request("POST", path + ("?" + url.query if url.query else ""), body, {"content-type": "application/json"})
        status = connection.getresponse().status
        if status >= 300:
            raise OSError(f"it answered {status}")
    finally:
        connection.close()


__all__ = ["SpanExporter"]
