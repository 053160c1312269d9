"""The real Flask, where it is among the dependencies: handlers run inside a context of one application."""

from __future__ import annotations

import sys

_app = None


def flask_app():
    """None where Flask has not been imported, or is our stand-in."""
    global _app
    flask = sys.modules.get("flask")
    if flask is None or "Flask" not in vars(flask):
        return None
    if _app is None:
        _app = flask.Flask("spry_function")  # of no module: its files are looked for where we are
    return _app


def load_flask() -> None:
    """Of the dependencies, also where the code does not import it: Functions Framework's requests are Flask's."""
    from importlib.machinery import PathFinder

    if "flask" not in sys.modules and PathFinder.find_spec("flask") is not None:
        __import__("flask")


def in_context(function, asynchronous: bool):
    """`function` as a handler that is called inside a context of the request; None without Flask."""
    app = flask_app()
    if app is None:
        return None

    def main(request):
        with app.request_context(request.environ):
            return function(request)

    async def async_main(request):
        with app.request_context(request.environ):
            return await function(request)

    return async_main if asynchronous else main


def in_flask(function, asynchronous: bool):
    """The same of one that gets Flask's request, and returns what Flask makes a response of."""
    app = flask_app()
    if app is None:
        return None
    request = sys.modules["flask"].request

    def response_of(value):
        return app.make_response("" if value is None else value)

    async def async_main(_request):
        return response_of(await function(request))

    return in_context(async_main if asynchronous else lambda _request: response_of(function(request)), asynchronous)
