"""What a Function's server is apart from how it calls the handler: its own routes, limits, metrics, draining."""

from __future__ import annotations

import os
import sys
import time

from .body_budget import BodyBudget
from .exchange import TEXT, Exchange
from .metrics import CONTENT_TYPE, Metrics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .connection import Connection
    from .settings import Settings

SWEEP_SECONDS = 1.0

TIMEOUT_BODY = b"Timeout while processing the function"


class Service:
    """Subclasses call the handler in `dispatch` and report with `settle`."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings = settings
        self.metrics = metrics
        self.body_limit = settings.body_limit
        self.bodies = BodyBudget(self.processes)
        self.connections: set[Connection] = set()
        self.draining = False
        self.has_routes = False
        """The handler is an application, whose paths are its own."""
        self._log_access = settings.access_log
        self.pending: dict[Exchange, None] = {}
        """Handed to the handler and not settled, oldest first. A client that hangs up does not end its call."""

    # What a subclass does.

    def dispatch(self, exchange: Exchange) -> None:
        raise NotImplementedError

    def timed_out(self, exchange: Exchange) -> None:
        raise NotImplementedError

    def cancelled(self, exchange: Exchange) -> None:
        """The client has disconnected."""

    def processes(self) -> list[int]:
        """Those that share the limit of memory."""
        return [os.getpid(), os.getppid()]

    @property
    def healthy(self) -> bool:
        return True

    # What is common.

    def handle(self, exchange: Exchange) -> None:
        path = exchange.head.raw_path
        route = self._routes.get(path)
        if route is not None and self._answers_itself(path, exchange.head.headers):
            return route(self, exchange)
        self.pending[exchange] = None
        self.dispatch(exchange)

    def _answers_itself(self, path: str, headers: dict[str, str]) -> bool:
        """Whether such a path is answered here: an application has paths of its own, and those outside read no metrics."""
        if path == "/metrics":
            if "x-forwarded-for" in headers or "forwarded" in headers:
                return False
            accept = headers.get("accept", "")
            is_scrape = "x-prometheus-scrape-timeout-seconds" in headers
            return not self.has_routes or is_scrape or "openmetrics-text" in accept or "version=0.0.4" in accept
        if not self.has_routes:
            return True
        return path == "/healthz" and headers.get("user-agent", "").startswith("kube-probe/")

    def settle(self, exchange: Exchange, status: int, seconds: float, failed: bool) -> None:
        """Counts an exchange that the handler is done with, whichever way."""
        self.pending.pop(exchange, None)
        if exchange.held is not None:
            exchange.held.release()
        self.metrics.record(exchange.head.method, seconds, failed)
        if self._log_access:
            self._write_access_log(exchange, status)

    def overloaded(self, exchange: Exchange) -> None:
        del self.pending[exchange]
        exchange.respond(503, TEXT + b"retry-after: 1\r\n", b"Too many requests are waiting")

    def sweep(self) -> None:
        """Enforces every limit of time. All timeouts are equally long, so the oldest exchanges are due first."""
        due = time.perf_counter() - self.settings.timeout
        late = []
        for exchange in self.pending:
            if exchange.started > due:
                break
            late.append(exchange)
        for exchange in late:
            self.timed_out(exchange)
        monotonic = time.monotonic()
        for connection in list(self.connections):
            connection.sweep(monotonic)

    @property
    def sweep_seconds(self) -> float:
        return min(SWEEP_SECONDS, max(0.05, self.settings.timeout / 10))

    def close_idle(self) -> None:
        for connection in list(self.connections):
            connection.close_if_idle()

    def _health(self, exchange: Exchange) -> None:
        if self.healthy:
            exchange.respond(200, TEXT, b"OK")
        else:
            exchange.respond(503, TEXT, b"the function is not loaded")

    def _metrics(self, exchange: Exchange) -> None:
        exchange.respond(200, CONTENT_TYPE, self.metrics.render(len(self.pending)))

    def _favicon(self, exchange: Exchange) -> None:
        exchange.respond(204, b"", b"")

    _routes = {"/healthz": _health, "/metrics": _metrics, "/favicon.ico": _favicon}

    def _write_access_log(self, exchange: Exchange, status: int) -> None:
        """Apache's combined format. Header values cannot hold line breaks; quotes are escaped."""
        head = exchange.head
        at = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
        target = head.raw_path + ("?" + head.query if head.query else "")
        referer, agent = (_quoted(head.headers.get(name, "-")) for name in ("referer", "user-agent"))
        version = "1.1" if head.http11 else "1.0"
        sys.stdout.write(
            f'{exchange.peer or "-"} - - [{at}] "{head.method} {_quoted(target)} HTTP/{version}" {status} -'
            f' "{referer}" "{agent}"\n'
        )
        sys.stdout.flush()


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
