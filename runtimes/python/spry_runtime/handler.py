"""The user's code: found, imported, and recognised for what it is."""

from __future__ import annotations

import os
import sys

from .own_modules import prefer_standard_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .settings import Settings

_NEIGHBOURS_MODULES = (
    "main", "lambda_function", "func", "function.func", "app", "wsgi", "asgi", "application", "server", "app.main", "api.index",
    "function_app", "entry", "worker"
)  # fmt: skip
"""Where the code is, by the conventions of Functions Framework, AWS Lambda, Knative's func and web servers, for a directory without handler.py."""

EVENT, REQUEST, ASGI, WSGI = "main(event, context)", "main()", "ASGI", "WSGI"


class LoadError(Exception):
    """The user's code cannot be used. Its `__cause__`, if any, is what the code raised."""


class NoHandler(LoadError):
    """Nothing of the module is one."""


class OnlyAsMain(LoadError):
    """The same, but the program may serve as the main one."""


class Handler:
    """`call` takes what `kind` says: up to `arguments` of event and context, nothing, or an application's protocol."""

    __slots__ = ("arguments", "asynchronous", "call", "kind", "one_at_a_time", "start", "stop", "takes_request")

    def __init__(self, call, kind: str, asynchronous: bool, arguments: int = 0) -> None:
        self.call = call
        self.kind = kind
        self.asynchronous = asynchronous
        self.arguments = arguments
        self.takes_request = False
        """Of kind REQUEST: the call has our request as its argument."""
        self.one_at_a_time = False
        """Of a synchronous handler: a process calls it in its main thread, for one request after the other."""
        self.start = None
        """The Function's own hooks, if it has them."""
        self.stop = None

    @property
    def has_routes(self) -> bool:
        """Its paths are its own, those included that the runtime answers itself for others."""
        return self.kind in (ASGI, WSGI)


def load_handler(settings: Settings, listening: int = -1, tell_debugger_port=None) -> Handler:
    """Imports the module and finds the handler in it. Raises `LoadError`. `listening`: the descriptor of the runtime's own socket. A
    debugger listens where the settings say, or on any port of loopback, with which `tell_debugger_port` is called."""
    _prepare_path(settings)
    if settings.inspect:
        from .debugger import DebuggerError, open_debugger

        try:
            open_debugger(settings.inspect, tell_debugger_port)
        except DebuggerError as error:
            raise LoadError(str(error)) from error.__cause__
    module, started = _import_module(settings, listening)
    from .recognise_handler import recognise_handler

    try:
        return recognise_handler(module, settings, started)
    except LoadError as error:
        kind = OnlyAsMain if isinstance(error, NoHandler) and not settings.as_main and _asks_for_main(module) else LoadError
        raise kind(f"loading {_file_of(module)}: {error}") from error.__cause__
    except Exception as error:  # what the code that makes the handler raised, as func's new()
        raise LoadError(f"loading {_file_of(module)}: {_describe(error)}") from error


def _import_module(settings: Settings, listening: int):
    """The module, and what it would serve by a server of its own, which it has come to; or None."""
    from .started_servers import ServerRefused, ServerStarted, taken_port

    if settings.as_main:
        return _run_as_main(settings, listening)
    for name in _names(settings):
        try:
            _prepare_for_lambda(name, settings)
            return _import_watched(name, settings, listening), None
        except ServerStarted as started:
            sys.modules[name] = started.module
            return started.module, started
        except ServerRefused as refused:
            raise LoadError(f"loading {name.replace('.', '/')}.py: {refused}") from None
        except BaseException as error:  # noqa: BLE001 - also sys.exit() at import must be explained
            if isinstance(error, ModuleNotFoundError) and error.name in (name, name.partition(".")[0]):
                continue
            problem = _describe(error)
            if isinstance(error, ModuleNotFoundError):
                from .foreign import missing_module

                problem += missing_module(error)
            problem += taken_port(error, settings.port)
            raise LoadError(f"loading {name.replace('.', '/')}.py: {problem}") from error
    raise LoadError(f"loading {settings.module}.py: no such file in {settings.directory}")


def _asks_for_main(module) -> bool:
    from .main_program import asks_for_main

    return asks_for_main(module)


def _run_as_main(settings: Settings, listening: int):
    from .main_program import run_as_main
    from .started_servers import ServerRefused

    name = _names(settings)[0]
    try:
        return run_as_main(name, settings.directory, listening)
    except ServerRefused as refused:
        raise LoadError(f"loading {name.replace('.', '/')}.py: {refused}") from None
    except BaseException as error:  # noqa: BLE001
        problem = f"it defines no handler, and as the main program it ends with {_describe(error)}"
        raise LoadError(f"loading {name.replace('.', '/')}.py: {problem}") from error


def _names(settings: Settings) -> list[str]:
    """Files come before packages, such as the folder `app` next to a `wsgi.py` that makes its application."""
    if settings.module != "handler":
        return [settings.module]
    names = ["handler", *_NEIGHBOURS_MODULES]
    files = [name for name in names if os.path.exists(os.path.join(settings.directory, *name.split(".")) + ".py")]
    if not files and os.path.exists(os.path.join(settings.directory, "manage.py")):
        from .django_project import application_module

        found = application_module(settings.directory)
        files = [] if found is None else [found]
    return files or names


def _prepare_for_lambda(name: str, settings: Settings) -> None:
    """Its environment is there when the code is loaded."""
    try:
        with open(os.path.join(settings.directory, *name.split(".")) + ".py", "rb") as file:
            is_lambda = b"lambda_handler" in file.read()
    except OSError:
        return  # importing says what is missing
    if settings.dialect or is_lambda and settings.named_handler in (None, "lambda_handler"):
        from .lambda_handler import set_environment

        set_environment(settings, name)


def _import_watched(name: str, settings: Settings, listening: int):
    from .load_watch import LoadWatch
    from .started_servers import stop_watching, watch_for_servers

    watch_for_servers(name)
    try:
        if settings.inspect:  # who debugs may take any time
            return _import(name, settings)
        with LoadWatch(f"{name.replace('.', '/')}.py", settings.directory, listening):
            return _import(name, settings)
    finally:
        stop_watching()


def _import(name: str, settings: Settings):
    """As the directory's own code would. A file that says `from .other import …` belongs to a package: to `function`, as OpenFaaS
    calls it. One that uses Flask's application while it is loaded finds one."""
    own = {"__file__": os.path.join(os.path.abspath(settings.directory), "__init__.py")}
    try:
        return __import__(name, own, None, ["*"])
    except ImportError as error:
        if "." in name or "no known parent package" not in str(error):
            raise
        name = f"function.{name}"
    except RuntimeError as error:
        if "application context" not in str(error) or "flask" not in sys.modules:
            raise
    from .flask_app import flask_app

    app = flask_app()
    if app is None:
        return __import__(name, own, None, ["*"])
    with app.app_context():
        return __import__(name, own, None, ["*"])


def _file_of(module) -> str:
    return os.path.basename(module.__file__) if module.__name__ == "__main__" else module.__name__.replace(".", "/") + ".py"


def _prepare_path(settings: Settings) -> None:
    """The Function's directory comes first, then its dependencies, then the modules we only stand in for."""
    prefer_standard_library(settings.directory)
    dependencies = os.path.join(settings.directory, f"lib.python{settings.version}", "site-packages")
    for path in (dependencies, settings.directory):
        if path in sys.path:
            sys.path.remove(path)
        sys.path.insert(0, path)
    region = os.environ.get("AWS_REGION")
    if region:
        os.environ.setdefault("AWS_DEFAULT_REGION", region)  # which boto3 reads; AWS sets both
    try:
        os.chdir(settings.directory)
    except OSError:
        pass  # the import itself reports what is missing
    from .stand_ins import install

    install(settings)


def _describe(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
