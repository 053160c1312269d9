"""A process that has loaded all of the runtime and waits for its Function: what starts when a Function is at zero and
somebody calls it. It is handed one Function, once, over a descriptor that nobody else has, and stays that Function's."""

from __future__ import annotations

import gc
import json
import os
import sys

_LINE_LIMIT = 2 * 1024 * 1024
# Read by interpreter, loader and allocator when a process starts, and not again.
_EARLY = ("PYTHON", "LD_", "MALLOC_", "GLIBC_TUNABLES")
_LATE_ENOUGH = frozenset(("PYTHONPATH", "PYTHONUNBUFFERED"))
"""All output is unbuffered anyway."""


class HandOverError(Exception):
    """The data from the descriptor is not a Function that this process can become."""


def become_function(descriptor: int | None) -> str | None:
    """Waits for one line, `{"directory": "/…", "env": {…}}` in JSON; from then on `env` is all of the environment.

    Returns the directory with the Function's code; None if the other side closes without a word. Raises `HandOverError`.
    Writes `waiting` and a line end to the descriptor `SPRY_READY_FD`, if there is one, when it has nothing left to prepare.
    """
    if descriptor is None:
        raise HandOverError("reading SPRY_WARM_FD: must be the number of a descriptor")
    _import_everything()
    # What is here now lives as long as the process: workers share it, and no collection looks at it again.
    gc.freeze()
    ready = os.environ.get("SPRY_READY_FD", "")
    if ready.isdigit():
        os.write(int(ready), b"waiting\n")
    line = _read_line(descriptor)
    if not line.strip():
        return None
    try:
        message = json.loads(line)
    except ValueError as error:
        raise HandOverError(f"receiving a Function: not valid JSON: {error}") from error
    directory, environment = _checked(message)
    # What the interpreter sets itself at its start (PEP 538), for the programs that it starts.
    coerced = {} if {"LC_ALL", "LC_CTYPE", "LANG"} & environment.keys() else {"LC_CTYPE": os.environ.get("LC_CTYPE")}
    os.environ.clear()
    os.environ.update(environment, **{name: value for name, value in coerced.items() if value})
    _catch_up(environment)
    return directory


def _import_everything() -> None:
    """For either kind of handler, with what of the standard library most handlers import or their first call needs."""
    import importlib

    own = (
        "asgi", "async_server", "call_loop", "invocation", "metrics", "server_keeper", "sync_server", "wsgi", "worker",
    )  # fmt: skip
    for name in own:
        importlib.import_module(f"{__package__}.{name}")
    for name in ("datetime", "faulthandler", "http.client", "logging", "threading", "traceback", "urllib.request", "uuid"):
        importlib.import_module(name)
    try:
        importlib.import_module("uvloop")  # where the base has it; of a Function's own dependencies nothing is known yet
    except ImportError:
        pass


def _read_line(descriptor: int) -> bytes:
    line = b""
    while b"\n" not in line:
        piece = os.read(descriptor, 64 * 1024)
        if not piece:
            break
        line += piece
        if len(line) > _LINE_LIMIT:
            raise HandOverError("receiving a Function: the line is too long")
    os.close(descriptor)
    return line


def _checked(message) -> tuple[str, dict[str, str]]:
    message = message if isinstance(message, dict) else {}
    directory, environment = message.get("directory"), message.get("env")
    if not isinstance(directory, str) or not os.path.isabs(directory):
        raise HandOverError("receiving a Function: its directory is not an absolute path")
    if not isinstance(environment, dict) or not all(isinstance(value, str) for value in environment.values()):
        raise HandOverError("receiving a Function: its environment is not an object of strings")
    for name in environment:
        # What it was started with itself has counted.
        if name.startswith(_EARLY) and name not in _LATE_ENOUGH and environment[name] != os.environ.get(name):
            raise HandOverError(f"receiving a Function: {name} has an effect only when a process starts")
    return directory, environment


def _catch_up(environment: dict[str, str]) -> None:
    """With what the interpreter does with its environment when it starts."""
    import time

    sys.path[:0] = [each for each in environment.get("PYTHONPATH", "").split(os.pathsep) if each]
    if hasattr(time, "tzset"):
        time.tzset()
    if "SPRY_SERVICES" in environment:
        import site

        site.main()  # runs the line of the node's virtual environment that brings the names of Services
