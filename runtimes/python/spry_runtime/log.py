"""What the runtime itself has to say, and the user's errors, on stderr."""

from __future__ import annotations

import os
import sys

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _write(text: str, _request_id: str | None) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


write_message = _write
"""Replaced when logs have a format."""


def log(text: str, request_id: str | None = None) -> None:
    """Raises nothing: user code can have closed or replaced the stream. `request_id`: of the request that it is about, where
    that is not the one that is being handled."""
    try:
        write_message(text, request_id)
    except Exception:  # noqa: BLE001
        try:
            os.write(2, (text + "\n").encode("utf-8", "replace"))
        except OSError:
            pass


def log_error(sentence: str, error: BaseException) -> None:
    """The sentence, then the traceback without the frames of this runtime."""
    import traceback

    told = traceback.TracebackException.from_exception(error, limit=None)
    _forget_own_frames(told)
    log(sentence + "\n" + "".join(told.format()).rstrip("\n"))


def _forget_own_frames(told) -> None:
    seen = set()
    while told is not None and id(told) not in seen:
        seen.add(id(told))
        for index in range(len(told.stack) - 1, -1, -1):
            name = told.stack[index].filename
            if name.startswith((_PACKAGE, "<frozen importlib")):
                del told.stack[index]
        told = told.__cause__ or told.__context__
