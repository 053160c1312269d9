"""What `import requests` gives a Function that does not declare the package: images of Functions have always had it.

The calls, sessions, responses and errors that handlers use, on `urllib.request`. Not there: adapters and retries,
hooks, authentication other than Basic, decompression (none is asked for). The real package wins if it is a dependency.
"""

from __future__ import annotations

from . import errors
from .response import Response
from .session import Session

METHODS = ("get", "options", "head", "post", "put", "patch", "delete")


def members() -> dict:
    """Of the module `requests`."""
    import http

    def request(method: str, url: str, **options) -> Response:
        with Session() as session:
            return session.request(method, url, **options)

    def shortcut(method: str):
        return lambda url, *args, **options: getattr(Session(), method)(url, *args, **options)

    codes = type("codes", (), {each.name.lower(): int(each) for each in http.HTTPStatus})
    return {
        "__path__": [],
        "__version__": "2.32.0",
        "request": request,
        **{method: shortcut(method) for method in METHODS},
        "Session": Session,
        "session": Session,
        "Response": Response,
        "codes": codes,
        **error_members(),
    }


def error_members() -> dict:
    """Of the module `requests.exceptions`."""
    return {name: each for name, each in vars(errors).items() if isinstance(each, type)}
