"""A request as WSGI has it (PEP 3333)."""

from __future__ import annotations

import io
import sys

from .percent import unquote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request_head import RequestHead


def wsgi_environ(head: RequestHead, content: bytes, peer: str) -> dict:
    headers = head.headers
    host, _, port = headers.get("host", "localhost").partition(":")
    environ = {
        "REQUEST_METHOD": head.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(head.raw_path, "latin-1"),
        "RAW_URI": head.raw_path + ("?" + head.query if head.query else ""),
        "QUERY_STRING": head.query,
        "SERVER_NAME": host,
        "SERVER_PORT": port or "80",
        "SERVER_PROTOCOL": "HTTP/1.1" if head.http11 else "HTTP/1.0",
        "REMOTE_ADDR": peer,
        "CONTENT_LENGTH": str(len(content)) if content else headers.get("content-length", ""),
        "CONTENT_TYPE": headers.get("content-type", ""),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": headers.get("x-forwarded-proto", "http"),
        "wsgi.input": io.BytesIO(content),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in headers.items():
        # An underscore would let a client pass off one header as another.
        if "_" not in name and name not in ("content-length", "content-type"):
            environ["HTTP_" + name.upper().replace("-", "_")] = value
    return environ
