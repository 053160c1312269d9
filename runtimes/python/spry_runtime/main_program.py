"""A program that serves only if it is the main one: what it would serve then."""

from __future__ import annotations

import os
import re
import sys

from .load_watch import LoadWatch
from .started_servers import ServerRefused, ServerStarted, stop_watching, watch_for_servers

_QUESTION = re.compile(rb"""__name__\s*==\s*["']__main__["']|["']__main__["']\s*==\s*__name__""")


def asks_for_main(module) -> bool:
    try:
        with open(module.__file__, "rb") as file:
            return _QUESTION.search(file.read()) is not None
    except (AttributeError, OSError, TypeError):
        return False


def run_as_main(module, directory: str, listening: int) -> ServerStarted | None:
    """Runs the file of `module` once more, as `python` does; None if it starts no server. Raises `ServerRefused`, also of one that
    neither ends nor serves, and what the program raises."""
    main = type(sys)("__main__")
    main.__file__, main.__builtins__ = module.__file__, __builtins__
    main.__package__ = module.__package__ or None
    before, sys.modules["__main__"] = sys.modules["__main__"], main
    arguments, sys.argv = sys.argv, [module.__file__]
    watch_for_servers("__main__")
    try:
        with LoadWatch(os.path.relpath(module.__file__, directory), directory, listening, as_main=True):
            exec(module.__loader__.get_code(module.__name__), main.__dict__)  # noqa: S102
    except ServerStarted as started:
        return started
    except ServerRefused:
        raise
    except BaseException:
        sys.modules["__main__"], sys.argv = before, arguments
        raise
    finally:
        stop_watching()
    sys.modules["__main__"], sys.argv = before, arguments
    return None
