"""A program that serves only if it is the main one: run as that, in a process in which it has not been imported before."""

from __future__ import annotations

import os
import re
import sys

from .load_watch import LoadWatch
from .started_servers import ServerStarted, stop_watching, watch_for_servers

_QUESTION = re.compile(rb"""__name__\s*==\s*["']__main__["']|["']__main__["']\s*==\s*__name__""")


def asks_for_main(module) -> bool:
    try:
        with open(module.__file__, "rb") as file:
            return _QUESTION.search(file.read()) is not None
    except (AttributeError, OSError, TypeError):
        return False


def run_as_main(name: str, directory: str, listening: int):
    """The module, as far as it has come, and what it would serve; None if it has ended without that. Raises `ServerRefused`, also of one
    that neither ends nor serves, and what the program raises."""
    path = os.path.join(directory, *name.split(".")) + ".py"
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    module = type(sys)("__main__")
    module.__file__, module.__builtins__ = path, __builtins__
    sys.modules["__main__"] = module
    sys.argv = [path]
    watch_for_servers("__main__")
    try:
        with LoadWatch(os.path.relpath(path, directory), directory, listening, as_main=True):
            exec(code, module.__dict__)  # noqa: S102
    except ServerStarted as started:
        return module, started
    finally:
        stop_watching()
    return module, None
