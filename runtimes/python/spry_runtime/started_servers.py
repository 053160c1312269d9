"""Servers that the program starts while it is loaded, as `app.run()` without a question for `__main__`: it would never be loaded. The
application is served instead, or the server is refused by name."""

from __future__ import annotations

import _thread
import sys
from errno import EADDRINUSE

_MODULES = frozenset((
    "aiohttp.web", "aiohttp.web_runner", "bottle", "cheroot.wsgi", "cherrypy", "cherrypy.process.wspbus", "eventlet.wsgi", "gevent.pywsgi",
    "gradio.blocks", "grpc", "gunicorn.app.base", "hypercorn.asyncio", "sanic.mixins.startup", "socketserver", "tornado.tcpserver",
    "twisted.internet.base", "uvicorn.config", "uvicorn.server", "waitress", "werkzeug.serving",
))  # fmt: skip
"""Those in which functions start servers; `server_stand_ins` has their names."""
_loading = 0
"""The thread that loads the program; 0 when that is over."""
_module = ""
INSTEAD = "define an application of WSGI or ASGI named app, or main(event, context) (docs/handlers.md lists what Spry serves)"


class ServerStarted(BaseException):
    """The program has come to where it would serve `application`, of this protocol unless that shows another."""

    def __init__(self, application, protocol: str) -> None:
        super().__init__("a server was started")
        self.module = sys.modules.get(_module) or sys.modules.get(f"function.{_module}")
        """The one that is being loaded, as far as it has come."""
        self.application = application
        self.protocol = protocol


    def came_from(self, function) -> bool:
        """Whether this function starts the server; it is not a handler then."""
        trace, code = self.__traceback__, getattr(function, "__code__", None)
        while trace is not None and trace.tb_frame.f_code is not code:
            trace = trace.tb_next
        return code is not None and trace is not None


class ServerRefused(BaseException):
    """The program has come to where it would start a server whose application cannot be had."""


def watch_for_servers(module: str) -> None:
    """Until `stop_watching`, while this module is loaded. Modules of servers that are imported meanwhile get other functions."""
    global _loading, _module
    _loading, _module = _thread.get_ident(), module
    sys.meta_path.insert(0, _Finder())


def stop_watching() -> None:
    global _loading
    _loading = 0
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, _Finder)]


def taken_port(error: BaseException, port: int) -> str:
    """What is to be said of a server that could not have its port; nothing of other errors."""
    if not isinstance(error, OSError) or error.errno != EADDRINUSE:
        return ""
    return f": port {port} is the runtime's own, and the program is not to serve it while it is loaded: {INSTEAD}"


class _Finder:
    """Lets the others find a module, and changes those of the table when they have been loaded."""

    def __init__(self) -> None:
        self._finds = False

    def find_spec(self, name, path=None, target=None):
        if name not in _MODULES or self._finds:
            return None
        self._finds = True
        try:
            for finder in sys.meta_path:
                spec = finder.find_spec(name, path, target) if finder is not self else None
                if spec is not None:
                    break
            else:
                return None
        finally:
            self._finds = False
        if hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader:
    def __init__(self, loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _change(module)


def _change(module) -> None:
    from .server_stand_ins import TABLE

    for name, stand_in in TABLE.get(module.__name__, {}).items():
        owner, _, attribute = name.rpartition(".")
        holder = getattr(module, owner, None) if owner else module
        original = getattr(holder, attribute, None)
        if callable(original):
            setattr(holder, attribute, _while_loading(original, stand_in))


def _while_loading(original, stand_in):
    """Other threads may have servers at their sides, and so may all when the program is loaded."""
    import functools

    @functools.wraps(original)
    def call(*arguments, **options):
        return (stand_in if _thread.get_ident() == _loading else original)(*arguments, **options)

    return call
