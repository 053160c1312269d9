"""What stands in for functions that start a server, while the program is loaded: it finds the application, or refuses the server by name."""

from __future__ import annotations

import sys

from .handler import ASGI, WSGI
from .started_servers import INSTEAD, ServerRefused, ServerStarted


def _serve(find, protocol: str):
    """A function in the place of one that serves: `find` gets its arguments and returns the application."""

    def stand_in(*arguments, **options):
        application = find(*arguments, **options)
        if isinstance(application, str):
            application = _imported(application)
        raise ServerStarted(application, protocol)

    return stand_in


def _refuse(name: str):
    def stand_in(*_arguments, **_options):
        raise ServerRefused(f"it starts a server of {name} while it is loaded, which Spry does not run: {INSTEAD}")

    return stand_in


def _imported(name: str):
    """`"main:app"`."""
    module, _, attribute = name.partition(":")
    found = sys.modules.get(module) or __import__(module, fromlist=["*"])
    for part in (attribute or "app").split("."):
        found = getattr(found, part)
    return found


def _first(application=None, *_arguments, app=None, **_options):
    return application if application is not None else app


def _of_uvicorn(config):
    found = _imported(config.app) if isinstance(config.app, str) else config.app
    return found() if config.factory else found


def _of_bottle(app=None, *_arguments, **_options):
    return app if app is not None else sys.modules["bottle"].default_app()


def _of_handlers(server, *_arguments, **_options):
    """Of `http.server` and what is built on it: only `wsgiref` has an application."""
    server.server_close()
    if hasattr(server, "get_app"):
        return server.get_app()
    handler = getattr(server, "RequestHandlerClass", None)
    name = f"handlers of the class {handler.__name__}" if isinstance(handler, type) else "its own"
    raise ServerRefused(f"it starts a server of socketserver or http.server with {name} while it is loaded, which Spry does not run: {INSTEAD}")


TABLE = {
    "werkzeug.serving": {"run_simple": _serve(lambda hostname, port, application, *_, **__: application, WSGI)},
    "uvicorn.server": {
        "Server.run": _serve(lambda server, *_, **__: _of_uvicorn(server.config), ASGI),
        "Server.serve": _serve(lambda server, *_, **__: _of_uvicorn(server.config), ASGI),
    },
    "uvicorn.config": {"Config.bind_socket": _serve(_of_uvicorn, ASGI)},
    "hypercorn.asyncio": {"serve": _serve(_first, ASGI)},
    "sanic.mixins.startup": {"StartupMixin.run": _serve(_first, ASGI), "StartupMixin.create_server": _serve(_first, ASGI)},
    "waitress": {"serve": _serve(_first, WSGI)},
    "bottle": {"run": _serve(_of_bottle, WSGI)},
    "gunicorn.app.base": {"BaseApplication.run": _serve(lambda base: base.load(), WSGI), "Application.run": _serve(lambda base: base.load(), WSGI)},
    "gevent.pywsgi": {"WSGIServer.serve_forever": _serve(lambda server, *_, **__: server.application, WSGI)},
    "eventlet.wsgi": {"server": _serve(lambda socket, site, *_, **__: (socket.close(), site)[1], WSGI)},
    "cheroot.wsgi": {"Server.start": _serve(lambda server: server.wsgi_app, WSGI), "Server.safe_start": _serve(lambda server: server.wsgi_app, WSGI)},
    "socketserver": {"BaseServer.serve_forever": _serve(_of_handlers, WSGI)},
    "aiohttp.web": {"run_app": _refuse("aiohttp")},
    "aiohttp.web_runner": {"TCPSite.start": _refuse("aiohttp")},
    "tornado.tcpserver": {name: _refuse("Tornado") for name in ("TCPServer.listen", "TCPServer.bind", "TCPServer.add_sockets")},
    "cherrypy": {"quickstart": _refuse("CherryPy")},
    "cherrypy.process.wspbus": {"Bus.block": _refuse("CherryPy")},
    "twisted.internet.base": {"ReactorBase.run": _refuse("Twisted")},
    "gradio.blocks": {"Blocks.launch": _refuse("Gradio")},
    "grpc": {"Server.wait_for_termination": _refuse("gRPC")},
}  # fmt: skip
