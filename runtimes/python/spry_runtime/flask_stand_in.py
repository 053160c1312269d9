"""What `import flask` gives a Function that does not depend on Flask: what handlers use of it in most cases."""

from __future__ import annotations

import json

from . import response
from .flask_json import plain
from .stand_ins import CurrentRequest


class Response(response.HTTPResponse):
    def __init__(self, response="", status=None, headers=None, mimetype=None, content_type=None) -> None:
        super().__init__(response, status, headers)
        if mimetype or content_type:
            self.set_header("Content-Type", content_type or mimetype)


def jsonify(*args, **fields) -> Response:
    value = fields or (args[0] if len(args) == 1 else list(args) or {})
    return Response(json.dumps(value, default=plain), mimetype="application/json")


def make_response(*args):
    body, *rest = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args or ("",)
    if not isinstance(body, response.HTTPResponse):
        body = jsonify(body) if isinstance(body, (dict, list)) else Response(body)
    for item in rest:
        if isinstance(item, int):
            body.status = item
        else:
            for name, value in item.items() if hasattr(item, "items") else item:
                body.set_header(name, value)
    return body


def abort(code, description: str = ""):
    if isinstance(code, response.HTTPResponse):
        raise code
    raise response.HTTPError(code, description)


def redirect(location: str, code: int = 302) -> Response:
    return Response("", code, {"Location": location})


class _CurrentApp:
    """`current_app`: its logger, and a place for settings."""

    name = "function"

    def __init__(self) -> None:
        self.config: dict = {}
        self._logger = None

    @property
    def logger(self):
        if self._logger is None:
            import logging

            self._logger = logging.getLogger(self.name)
            if not self._logger.hasHandlers():
                handler = logging.StreamHandler()
                handler.setFormatter(logging.Formatter("[%(asctime)s] %(levelname)s: %(message)s"))
                self._logger.addHandler(handler)
                self._logger.setLevel(logging.INFO)
        return self._logger


def _missing(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(f"flask.{name} needs Flask itself: add flask to the dependencies", name="flask")


def members() -> dict:
    return {
        "__getattr__": _missing,
        "request": CurrentRequest(),
        "current_app": _CurrentApp(),
        "Response": Response,
        "jsonify": jsonify,
        "make_response": make_response,
        "abort": abort,
        "redirect": redirect,
        "stream_with_context": lambda generator: generator,
    }
