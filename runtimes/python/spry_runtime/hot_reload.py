"""For local development (`FUNC_HOT_RELOAD`): notices that files of the Function have changed."""

from __future__ import annotations

import os

_POLL_SECONDS = 0.25
_FILE_LIMIT = 5000
_SKIPPED = ("__pycache__", "node_modules", "site-packages")

ERROR_FIELD = "x-function-reload-error"


def watch_files(reactor, directory: str, act) -> None:
    """Calls `act` after each change. Editors write a file in several steps: waits until they have been quiet for a moment."""
    acted_on = seen = _stamps(directory)

    def look() -> None:
        nonlocal acted_on, seen
        reactor.call_later(_POLL_SECONDS, look)
        stamps = _stamps(directory)
        if stamps == seen and stamps != acted_on:
            acted_on = stamps
            act()
        seen = stamps

    reactor.call_later(_POLL_SECONDS, look)


def error_line(text: str) -> bytes:
    """The header that answers have while newer code cannot be loaded."""
    printable = "".join(each if " " <= each <= "~" else "?" for each in text.split("\n")[0][:500])
    return f"{ERROR_FIELD}: {printable}\r\n".encode()


def _stamps(directory: str) -> dict[str, tuple[int, int]]:
    stamps: dict[str, tuple[int, int]] = {}
    for parent, directories, files in os.walk(directory):
        directories[:] = [name for name in directories if name not in _SKIPPED and not name.startswith(".")]
        for name in files:
            path = os.path.join(parent, name)
            try:
                status = os.stat(path)
            except OSError:
                continue  # it has just gone
            stamps[path] = (status.st_mtime_ns, status.st_size)
            if len(stamps) >= _FILE_LIMIT:
                return stamps
    return stamps
