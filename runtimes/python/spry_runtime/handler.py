"""The user's code: found, imported, and recognised for what it is."""

from __future__ import annotations

import os
import sys

from .lifecycle import find_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .settings import Settings

_COROUTINE = 0x80  # code flags; the inspect module would take longer to import than most handlers
_VARARGS = 0x04
_ASYNC_GENERATOR = 0x200

EVENT, REQUEST, ASGI, WSGI = "main(event, context)", "main()", "ASGI", "WSGI"


class LoadError(Exception):
    """The user's code cannot be used. Its `__cause__`, if any, is what the code raised."""


class Handler:
    """`call` takes what `kind` says: up to `arguments` of event and context, nothing, or an application's protocol."""

    __slots__ = ("arguments", "asynchronous", "call", "kind", "start", "stop")

    def __init__(self, call, kind: str, asynchronous: bool, arguments: int = 0) -> None:
        self.call = call
        self.kind = kind
        self.asynchronous = asynchronous
        self.arguments = arguments
        self.start = None
        """The Function's own hooks, if it has them."""
        self.stop = None


def load_handler(settings: Settings) -> Handler:
    """Imports the module and picks `main`, or else the application object `app`. Raises `LoadError`."""
    file = settings.module + ".py"
    _prepare_path(settings)
    if settings.inspect:
        from .debugger import DebuggerError, open_debugger

        try:
            open_debugger(settings.inspect)
        except DebuggerError as error:
            raise LoadError(str(error)) from error.__cause__
    try:
        module = __import__(settings.module, fromlist=["*"])
    except BaseException as error:  # noqa: BLE001 - also sys.exit() at import must be explained
        if isinstance(error, ModuleNotFoundError) and error.name == settings.module:
            raise LoadError(f"loading {file}: no such file in {settings.directory}") from None
        raise LoadError(f"loading {file}: {_describe(error)}") from error
    for name in (settings.handler, "app"):
        found = getattr(module, name, None)
        if callable(found):
            handler = _recognise(found, settings)
            if settings.handler not in ("start", "stop"):
                handler.start, handler.stop = find_hook(module, "start"), find_hook(module, "stop")
            return handler
    raise LoadError(f"loading {file}: it defines no function {settings.handler}(event, context) and no app")


def _prepare_path(settings: Settings) -> None:
    """The Function's directory comes first, then its dependencies, then the modules we only stand in for."""
    dependencies = os.path.join(settings.directory, f"lib.python{settings.version}", "site-packages")
    for path in (dependencies, settings.directory):
        if path in sys.path:
            sys.path.remove(path)
        sys.path.insert(0, path)
    try:
        os.chdir(settings.directory)
    except OSError:
        pass  # importing tells better what is missing
    from .stand_ins import install

    install(settings)


def _describe(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _recognise(found, settings: Settings) -> Handler:
    if _is_flask(found):
        return Handler(found, WSGI, asynchronous=False)
    function, is_object = _code_of(found)
    code = getattr(function, "__code__", None)
    if code is None:
        return Handler(found, EVENT, asynchronous=False, arguments=0 if settings.new_api else 2)
    bound = 1 if hasattr(function, "__self__") else 0
    arguments = code.co_argcount - bound
    asynchronous = bool(code.co_flags & (_COROUTINE | _ASYNC_GENERATOR))
    if asynchronous and arguments == 3:
        return Handler(found, ASGI, asynchronous=True)
    if is_object and arguments == 2:
        return Handler(found, WSGI, asynchronous=False)
    if code.co_flags & _VARARGS:
        arguments = 0 if settings.new_api else 2
    if settings.new_api and arguments and len(function.__defaults__ or ()) >= arguments:
        arguments = 0
    if arguments == 0:
        return Handler(_in_flask(found) or found, REQUEST, asynchronous)
    return Handler(found, EVENT, asynchronous, min(arguments, 2))


def _code_of(found):
    """The function behind a callable, and whether that is an object's `__call__`."""
    for _ in range(20):
        if hasattr(found, "func") and not hasattr(found, "__code__"):
            found = found.func  # functools.partial
        elif hasattr(found, "__wrapped__"):
            found = found.__wrapped__
        else:
            break
    if hasattr(found, "__code__"):
        return found, False
    return type(found).__call__.__get__(found), True


def _is_flask(found) -> bool:
    return callable(getattr(found, "wsgi_app", None))


def _in_flask(function):
    """With the real Flask among the dependencies, `main()` runs inside a request context of it."""
    flask = sys.modules.get("flask")
    if flask is None or not hasattr(flask, "Flask"):
        return None
    app = flask.Flask("function")

    def main(request):
        with app.request_context(request.environ):
            return app.make_response(_or_empty(function()))

    main.wants_request = True
    return main


def _or_empty(value):
    return "" if value is None else value
