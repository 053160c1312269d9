"""Sends spans to a collector, by OTLP over HTTP in JSON (opentelemetry-proto, ExportTraceServiceRequest)."""

from __future__ import annotations

import threading
import time
from urllib.parse import urlsplit

from .log import log
from .otlp_json import request_of, span_of, span_of_call

_QUEUED, _PER_REQUEST = 4096, 512
_INTERVAL_SECONDS, _TIMEOUT_SECONDS = 1.0, 10.0
# A thread that computes without a pause makes each call wait for the interpreter, 5 ms each time that it has let go of it.
_AT_A_TIME, _PAUSE_SECONDS = 64, 0.0005


class SpanExporter:
    """At most 4096 spans are kept until they leave, once a second, on a thread. Drops what is more, and what the
    collector does not take."""

    def __init__(self, endpoint: str, service: str) -> None:
        self._endpoint = endpoint
        self._service = service
        self._queue: list[tuple] = []
        self._limit = _QUEUED
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="spans")
        self._thread.start()

    @property
    def has_room(self) -> bool:
        """Whether a span that begins now would be sent, as far as one can know."""
        return len(self._queue) < self._limit

    def add_call(self, *call) -> None:
        """context, `RequestHead`, status, start and end in nanoseconds since 1970; if it is sampled and there is room.
        All that can be is left for later: this is part of every call."""
        if len(self._queue) < self._limit and call[0].is_sampled:
            self._queue.append((span_of_call, call))

    def add(self, *span) -> None:
        """As `span_of` has it."""
        if self.has_room:
            self._queue.append((span_of, span))

    def stop(self) -> None:
        """Sends what is there, for up to a second."""
        self._stopping.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        while not self._stopping.wait(_INTERVAL_SECONDS):
            self._send_all()
        self._send_all()

    def _send_all(self) -> None:
        queue, self._queue = self._queue, []
        for at in range(0, len(queue), _PER_REQUEST):
            try:
                _post(self._endpoint, request_of(self._encode(queue[at : at + _PER_REQUEST]), self._service))
                self._limit = _QUEUED
            except Exception as error:  # noqa: BLE001 - whatever it is, spans are not worth a failure
                if self._limit == _QUEUED:
                    log(f"exporting spans to {self._endpoint}: {error}")
                self._limit = _PER_REQUEST
                return

    def _encode(self, spans: list[tuple]) -> list[str]:
        encoded = []
        for encode, values in spans:
            encoded.append(encode(*values))
            if len(encoded) % _AT_A_TIME == 0 and not self._stopping.is_set():
                time.sleep(_PAUSE_SECONDS)
        return encoded


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
            raise OSError(f"the collector responded with status {status}")
    finally:
        connection.close()

