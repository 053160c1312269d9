"""Opens a port for a debugger when `FUNC_INSPECT` asks for it. Needs the package debugpy."""

from __future__ import annotations

import re

from .log import log

_PLACE = re.compile(r"(?:(.+):)?(\d{2,5})")
_DEFAULT_PORT = 5678


class DebuggerError(Exception):
    """There can be no debugger."""


def place_of(inspect: str) -> tuple[str, int]:
    """Host and port of `FUNC_INSPECT`: it is `true`, a port or `host:port` (127.0.0.1 unless it says otherwise)."""
    found = _PLACE.fullmatch(inspect.partition(",")[0])
    return (found[1] or "127.0.0.1", int(found[2])) if found else ("127.0.0.1", _DEFAULT_PORT)


def open_debugger(inspect: str, tell_port=None) -> None:
    """With `,wait` at the end of `inspect` it returns when a debugger has come.

    Who looks after the processes of a Function gives `tell_port`: debugpy then listens on any port of loopback, which
    is told, and a `DebuggerRelay` holds the place that `inspect` names. Raises `DebuggerError`.
    """
    host, port = place_of(inspect)
    try:
        import debugpy
    except ImportError:
        raise DebuggerError(
            "FUNC_INSPECT: the package debugpy is not installed; add it to the Function's dependencies, or unset FUNC_INSPECT"
        ) from None
    try:
        _, own_port = debugpy.listen(("127.0.0.1", 0) if tell_port else (host, port))
    except (OSError, RuntimeError) as error:
        raise DebuggerError(f"FUNC_INSPECT: listening on {host}:{port}: {error}") from error
    if tell_port:
        tell_port(own_port)
    log(f"Debugger listening on {host}:{port}")
    if inspect.endswith(",wait"):
        debugpy.wait_for_client()
