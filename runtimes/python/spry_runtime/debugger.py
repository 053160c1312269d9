"""Opens a port for a debugger when `FUNC_INSPECT` asks for it. Needs the package debugpy."""

from __future__ import annotations

import re

from .log import log

_PLACE = re.compile(r"(?:(.+):)?(\d{2,5})")
_DEFAULT_PORT = 5678


class DebuggerError(Exception):
    """There can be no debugger."""


def open_debugger(where: str) -> None:
    """`where` is `true`, a port or `host:port` (127.0.0.1 unless it says otherwise); after `,wait` the Function is
    loaded when a debugger has come. Raises `DebuggerError`."""
    place, _, option = where.partition(",")
    found = _PLACE.fullmatch(place)
    host, port = (found[1] or "127.0.0.1", int(found[2])) if found else ("127.0.0.1", _DEFAULT_PORT)
    try:
        import debugpy
    except ImportError:
        raise DebuggerError(
            "FUNC_INSPECT: the package debugpy is not there; add it to the Function's dependencies, or unset FUNC_INSPECT"
        ) from None
    try:
        debugpy.listen((host, port))
    except (OSError, RuntimeError) as error:
        raise DebuggerError(f"FUNC_INSPECT: listening on {host}:{port}: {error}") from error
    log(f"Debugger listening on {host}:{port}")
    if option == "wait":
        debugpy.wait_for_client()
