"""What the environment says about this Function and its limits."""

from __future__ import annotations

import os

MEBIBYTE = 1024 * 1024
_PATIENT_SECONDS = 86_400.0
"""With a debugger: who stands at a breakpoint takes longer than any call should."""


class SettingError(Exception):
    """An environment variable holds something that cannot be used."""


class Settings:
    """Read once at start. Names of both handler APIs are accepted; the newer name wins."""

    __slots__ = (
        "access_log", "as_main", "body_limit", "dialect", "directory", "function_name", "handler", "host", "hot_reload", "inspect", "log_format", "module",
        "named_handler", "namespace", "new_api", "port", "publisher", "queue", "runtime", "shutdown_delay", "threads", "threads_given", "timeout",
        "trace_collector", "version",
    )  # fmt: skip

    def __init__(self, environment: dict[str, str], package: str, directory: str | None = None) -> None:
        read = _Reader(environment)
        self.runtime: str = read.text("FUNC_RUNTIME", default="python312")
        self.new_api: bool = _minor_version(self.runtime) >= 14
        self.version: str = f"3.{_minor_version(self.runtime)}"
        self.function_name: str = read.text("FUNC_NAME", default="")
        self.namespace: str = read.text("SERVICE_NAMESPACE", default="")
        self.host: str = read.text("SERVER_HOST", default="0.0.0.0")
        self.port: int = int(read.number("FUNC_PORT", "SERVER_PORT", default=8080, least=0, most=65535))
        self.timeout: float = read.number("FUNC_TIMEOUT", default=180, least=0.001, most=86_400)
        # Who waits for a word that the code is loaded also sends no more requests at once; a cluster takes its time.
        delay = 2000 if read.text("SPRY_READY_FD", default="") else 5000
        self.shutdown_delay: float = (
            read.number("FUNC_SHUTDOWN_DELAY_MS", default=delay, least=0, most=60_000) / 1000
        )
        """How many seconds a terminating server still accepts connections: routers need time to
        forget it.
        """
        self.hot_reload: bool = read.text("FUNC_HOT_RELOAD", default="") == "true"
        self.inspect: str = read.text("FUNC_INSPECT", default="")
        if self.inspect:
            self.timeout = _PATIENT_SECONDS
        self.log_format: str = read.text("FUNC_LOG_FORMAT", default="")
        if self.log_format not in ("", "json", "text"):
            raise SettingError(f"reading FUNC_LOG_FORMAT: must be json or text, not {self.log_format!r}")
        self.body_limit: int = _body_limit(read)
        self.threads: int = int(
            read.number("SERVER_NUMTHREADS", "CHERRYPY_NUMTHREADS", default=50, least=1, most=1000)
        )
        self.threads_given: bool = bool(read.text("SERVER_NUMTHREADS", "CHERRYPY_NUMTHREADS", default=""))
        self.queue: int = int(read.number("SERVER_QUEUE_LENGTH", default=1000, least=0, most=100_000))
        self.module: str = read.text("HANDLER_MOD_NAME", "MOD_NAME", default="handler")
        self.handler: str = read.text("HANDLER_FUNC_NAME", "FUNC_HANDLER", default="main")
        self.named_handler: str | None = self.handler if self.handler != "main" or _is_given(environment, self.new_api) else None
        """What a person has named. The platform sets FUNC_HANDLER, and since python314 HANDLER_FUNC_NAME, to `main`."""
        self.dialect: str = read.text("HANDLER_DIALECT", default="")
        """What the handler is written for, where the user says so."""
        if self.dialect not in ("", "lambda"):
            raise SettingError(f"reading HANDLER_DIALECT: must be lambda, not {self.dialect!r}")
        self.directory: str = directory or os.path.abspath(
            read.text(
                "FUNCTION_PATH",
                "KUBELESS_INSTALL_VOLUME",
                default=os.path.join(os.path.dirname(package), "function"),
            )
        )
        self.as_main = False
        """The code is run as the main program; set when it has been imported and has no handler."""
        self.publisher: str = read.text("PUBLISHER_PROXY_ADDRESS", default="")
        self.trace_collector: str = read.text("TRACE_COLLECTOR_ENDPOINT", default="")
        # Present with any value, also an empty one, is "on": that is how it has always been read.
        self.access_log: bool = (
            "SERVER_INTERNAL_LOGGER" in environment or "KYMA_INTERNAL_LOGGER_ENABLED" in environment
        )


class _Reader:
    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment

    def text(self, *names: str, default: str) -> str:
        for name in names:
            value = self._environment.get(name)
            if value:
                return value
        return default

    def number(self, *names: str, default: float, least: float, most: float) -> float:
        for name in names:
            value = self._environment.get(name)
            if not value:
                continue
            try:
                number = float(value)
            except ValueError:
                number = -1
            if not least <= number <= most:
                raise SettingError(f"reading {name}: must be a number from {least:g} to {most:g}, not {value!r}")
            return number
        return default


def _is_given(environment: dict[str, str], new_api: bool) -> bool:
    return not new_api and environment.get("HANDLER_FUNC_NAME") == "main"


def _body_limit(read: _Reader) -> int:
    mebibytes = read.number("FUNC_BODY_MB_LIMIT", "REQ_MB_LIMIT", default=0, least=0, most=2047)
    if mebibytes:
        return int(mebibytes * MEBIBYTE)
    return int(read.number("FUNC_MEMFILE_MAX", default=100 * MEBIBYTE, least=1, most=2047 * MEBIBYTE))


def _minor_version(runtime: str) -> int:
    """`python312` → 12; anything unknown counts as 3.12, the classic API."""
    digits = runtime.removeprefix("python3")
    return int(digits) if digits.isdigit() and len(digits) < 4 else 12
