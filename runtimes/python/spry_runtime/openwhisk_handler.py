"""`main(args)` of OpenWhisk and of DigitalOcean's Functions, as a web action: one dict of all parameters, and status, headers and body back."""

from __future__ import annotations

from .openfaas_handler import parts_reply
from .reply import Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request import Request


def action_handler(main):
    """`main` as a handler that takes our request."""

    def call(request: Request) -> Reply:
        return _reply(main(_arguments(request)))

    return call


def _arguments(request: Request) -> dict:
    """Of the query and the body, which is the stronger; what has no names is `__ow_body`."""
    headers = dict(request.raw_headers)
    method = request.method
    arguments = dict(request.args.items())
    body = request.get_json(silent=True) if request.content else None
    if isinstance(body, dict):
        arguments |= body
    elif request.mimetype == "application/x-www-form-urlencoded":
        arguments |= dict(request.form.items())
    elif request.content:
        arguments["__ow_body"] = _text(request)
    arguments |= {"__ow_method": method.lower(), "__ow_headers": headers, "__ow_path": request.path}
    arguments["http"] = {"method": method, "headers": headers, "path": request.path, "queryString": request.query_string}
    return arguments


def _text(request: Request) -> str:
    """Bytes are base64."""
    kind = request.mimetype
    if kind.startswith("text/") or kind.endswith(("json", "xml", "javascript")):
        return request.get_data(as_text=True)
    import base64

    return base64.b64encode(request.content).decode()


def _reply(value) -> Reply:
    error = value.get("error") if isinstance(value, dict) else None
    if error is None:
        return parts_reply(value)
    return parts_reply(error if isinstance(error, dict) and "body" in error else {"statusCode": 400, "body": {"error": error}})
