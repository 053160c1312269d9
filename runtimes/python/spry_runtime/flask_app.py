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


def in_flask(function, asynchronous: bool):
    """`function` as a handler that gets Flask's request; None without Flask."""
    app = flask_app()
    if app is None:
        return None
    request = sys.modules["flask"].request

    def main(ours):
        with app.request_context(ours.environ):
            return _response(function(request))

    async def async_main(ours):
        with app.request_context(ours.environ):
            return _response(await function(request))

    def _response(value):
        return app.make_response("" if value is None else value)

    return async_main if asynchronous else main
