"""What a Function logs, line by line with its level and the invocation it belongs to, when `FUNC_LOG_FORMAT` asks for it."""

from __future__ import annotations

import contextvars
import io
import json
import os
import sys
import threading
import time

from . import log as runtime_log
from .request_log import given_id, new_id

_LINE_LIMIT = 64 * 1024
_LEVELS = ((40, "error"), (30, "warn"), (20, "info"), (0, "debug"))

_invocation: contextvars.ContextVar[str | None] = contextvars.ContextVar("invocation", default=None)


def begin_invocation(headers: dict[str, str]) -> None:
    """From here on, in this context, lines carry the caller's `X-Request-Id`, or a new id."""
    _invocation.set(given_id(headers) or new_id())


def format_logs(kind: str) -> None:
    """From now on stdout, stderr, `logging` and the runtime's own log are lines of this format: `json` or `text`."""
    line = _json_line if kind == "json" else _text_line
    sys.stdout = LineWriter(sys.stdout, "info", line)
    sys.stderr = LineWriter(sys.stderr, "error", line)
    runtime_log.write_message = lambda text, request_id: sys.stderr.message("error", text, request_id)
    _tell_levels()


class LineWriter(io.TextIOBase):
    """A text stream that makes a formatted line of each line. Those of two threads do not mix."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, stream, level: str, line) -> None:
        self._stream = stream
        self._level = level
        self._line = line
        self._begun = threading.local()

    def write(self, text: str) -> int:
        begun = getattr(self._begun, "text", "") + text
        *lines, rest = begun.split("\n")
        if len(rest) > _LINE_LIMIT:
            lines.append(rest)
            rest = ""
        self._begun.text = rest
        for each in lines:
            self.message(self._level, each)
        return len(text)

    def message(self, level: str, text: str, request_id: str | None = None) -> None:
        """One line of the log, however many lines `text` has."""
        # One call of write, so that processes do not interleave.
        os.write(self._stream.fileno(), self._line(level, text, request_id).encode("utf-8", "replace"))

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True

    @property
    def buffer(self):
        """For programs that write bytes: these leave as they are."""
        return self._stream.buffer

    def reconfigure(self, **_options) -> None:
        """Lines leave at once, whatever is asked for."""


def _tell_levels() -> None:
    """Handlers of `logging` that write to our streams hand on the record's level, and stack traces as one line."""
    import logging

    emit = logging.StreamHandler.emit

    def emit_with_level(self, record) -> None:
        if not isinstance(self.stream, LineWriter):
            return emit(self, record)
        try:
            level = next(name for least, name in _LEVELS if record.levelno >= least)
            self.stream.message(level, self.format(record))
        except Exception:  # noqa: BLE001 - as logging does: a record that cannot be formatted fails no caller
            self.handleError(record)

    logging.StreamHandler.emit = emit_with_level


def _now() -> str:
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{milliseconds:03}Z"


def _json_line(level: str, message: str, request_id: str | None) -> str:
    line = {"time": _now(), "level": level, "message": message}
    invocation = request_id or _invocation.get()
    if invocation is not None:
        line["invocation"] = invocation
    return json.dumps(line, ensure_ascii=False) + "\n"


def _text_line(level: str, message: str, request_id: str | None) -> str:
    invocation = request_id or _invocation.get()
    return f"{_now()} {level.upper():5} {f'[{invocation}] ' if invocation else ''}{message}\n"
