"""The request object: what users call on Bottle's (`event["extensions"]["request"]`) and on Flask's.

Everything is computed when asked for. Where the two frameworks use one name for different things (`form`,
`json`), both uses work on the same value.
"""

from __future__ import annotations

import io
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request_head import RequestHead

FORM_FIELDS_LIMIT = 1000
_LAZY = object()


class Headers:
    """Header fields by case-insensitive name; `-` and `_` count as one. Repeated fields are joined by commas."""

    def __init__(self, headers: dict[str, str]) -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        return self._headers[name.lower().replace("_", "-")]

    def get(self, name: str, default=None):
        return self._headers.get(name.lower().replace("_", "-"), default)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self):
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self._headers)

    def keys(self) -> list[str]:
        return [name.title() for name in self._headers]

    def values(self) -> list[str]:
        return list(self._headers.values())

    def items(self) -> list[tuple[str, str]]:
        return list(zip(self.keys(), self.values()))


class MultiDict(dict):
    """The last value of each name; `getall` (Bottle) and `getlist` (Flask) give every one. `x.name` works too."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self._pairs = pairs

    def getall(self, name: str) -> list:
        return [value for key, value in self._pairs if key == name]

    getlist = getall

    def allitems(self) -> list[tuple[str, object]]:
        return list(self._pairs)

    def get(self, name, default=None, type=None):  # noqa: A002 - the name both frameworks have
        value = super().get(name, default)
        if type is None or name not in self:
            return value
        try:
            return type(value)
        except (TypeError, ValueError):
            return default

    def to_dict(self) -> dict:
        return dict(self)

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return self.get(name, "")


class Request:
    def __init__(self, head: RequestHead, content: bytes, peer: str) -> None:
        self._head = head
        self._peer = peer
        self.content = content
        self.raw_headers: dict[str, str] = head.headers
        """By lower-case name."""
        self._body: io.BytesIO | None = None
        self._json = _LAZY
        self._forms: tuple[MultiDict, MultiDict] | None = None
        self._environ: dict | None = None

    @property
    def method(self) -> str:
        return self._head.method

    @property
    def path(self) -> str:
        """Percent-decoded, always beginning with a slash."""
        return "/" + _unquote(self._head.raw_path).lstrip("/")

    @property
    def query_string(self) -> str:
        return self._head.query

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}{self.full_path}"

    @property
    def base_url(self) -> str:
        return f"{self.scheme}://{self.host}{self._head.raw_path}"

    @property
    def full_path(self) -> str:
        return self._head.raw_path + ("?" + self._head.query if self._head.query else "")

    fullpath = path
    script_name = "/"

    @property
    def scheme(self) -> str:
        return self.raw_headers.get("x-forwarded-proto", "http")

    @property
    def host(self) -> str:
        return self.raw_headers.get("x-forwarded-host") or self.raw_headers.get("host", "")

    @property
    def urlparts(self):
        import urllib.parse

        return urllib.parse.urlsplit(self.url)

    @property
    def headers(self) -> Headers:
        return Headers(self.raw_headers)

    def get_header(self, name: str, default=None):
        return self.headers.get(name, default)

    @property
    def content_type(self) -> str:
        return self.raw_headers.get("content-type", "").lower()

    @property
    def mimetype(self) -> str:
        return self.content_type.partition(";")[0].strip()

    @property
    def content_length(self) -> int:
        return len(self.content)

    @property
    def body(self) -> io.BytesIO:
        """A file, at its beginning each time it is asked for."""
        if self._body is None:
            self._body = io.BytesIO(self.content)
        self._body.seek(0)
        return self._body

    @property
    def data(self) -> bytes:
        return self.content

    def get_data(self, cache: bool = True, as_text: bool = False, parse_form_data: bool = False):
        return self.content.decode("utf-8", "replace") if as_text else self.content

    @property
    def is_json(self) -> bool:
        return self.mimetype == "application/json" or self.mimetype.endswith("+json")

    @property
    def json(self):
        """The body of a JSON request; None for other types. Raises a 400 response if it is not JSON."""
        return self.get_json()

    def get_json(self, force: bool = False, silent: bool = False, cache: bool = True):
        if not (force or self.is_json) or not self.content:
            return None
        value = self.parse_json(_LAZY)
        if value is not _LAZY:
            return value
        if silent:
            return None
        from .response import HTTPError

        raise HTTPError(400, "Invalid JSON")

    def parse_json(self, default):
        if self._json is _LAZY:
            import json

            try:
                self._json = json.loads(self.content)
            except (ValueError, RecursionError):
                return default
        return self._json

    @property
    def query(self) -> MultiDict:
        return MultiDict(_parse_pairs(self._head.query))

    GET = args = query

    @property
    def forms(self) -> MultiDict:
        """Fields of a form, urlencoded or multipart."""
        return self._parse_forms()[0]

    form = forms

    @property
    def files(self) -> MultiDict:
        """Uploaded files: `filename`, `name`, `content_type`, `file`, `read()`, `save(path)`."""
        return self._parse_forms()[1]

    @property
    def POST(self) -> MultiDict:  # noqa: N802 - Bottle's name
        return MultiDict(self.forms.allitems() + self.files.allitems())

    @property
    def params(self) -> MultiDict:
        return MultiDict(self.query.allitems() + self.forms.allitems())

    values = params

    def _parse_forms(self) -> tuple[MultiDict, MultiDict]:
        if self._forms is None:
            if self.mimetype == "multipart/form-data":
                from .multipart import parse_multipart

                fields, files = parse_multipart(self.raw_headers["content-type"], self.content, FORM_FIELDS_LIMIT)
            elif self.mimetype == "application/x-www-form-urlencoded":
                fields, files = _parse_pairs(self.content.decode("utf-8", "replace")), []
            else:
                fields, files = [], []
            self._forms = MultiDict(fields), MultiDict(files)
        return self._forms

    @property
    def cookies(self) -> MultiDict:
        from http.cookies import CookieError, SimpleCookie

        try:
            parsed = SimpleCookie(self.raw_headers.get("cookie", ""))
        except CookieError:
            return MultiDict([])
        return MultiDict([(name, morsel.value) for name, morsel in parsed.items()])

    def get_cookie(self, name: str, default=None):
        return self.cookies.get(name, default)

    @property
    def remote_route(self) -> list[str]:
        forwarded = [part.strip() for part in self.raw_headers.get("x-forwarded-for", "").split(",") if part.strip()]
        return forwarded or ([self._peer] if self._peer else [])

    access_route = remote_route

    @property
    def remote_addr(self) -> str | None:
        route = self.remote_route
        return route[0] if route else None

    @property
    def is_xhr(self) -> bool:
        return self.raw_headers.get("x-requested-with", "").lower() == "xmlhttprequest"

    is_ajax = is_xhr

    @property
    def auth(self) -> tuple[str, str] | None:
        """User and password of basic authentication."""
        import base64
        import binascii

        kind, _, text = self.raw_headers.get("authorization", "").partition(" ")
        if kind.lower() != "basic":
            return None
        try:
            user, found, password = base64.b64decode(text, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return (user, password) if found else None

    @property
    def environ(self) -> dict:
        """As WSGI has it (PEP 3333)."""
        if self._environ is None:
            self._environ = wsgi_environ(self._head, self.content, self._peer)
        return self._environ

    def get(self, name: str, default=None):
        return self.environ.get(name, default)

    def __getitem__(self, name: str):
        return self.environ[name]

    def copy(self) -> Request:
        return Request(self._head, self.content, self._peer)

    def __repr__(self) -> str:
        return f"<Request: {self.method} {self.url}>"


def wsgi_environ(head: RequestHead, content: bytes, peer: str) -> dict:
    headers = head.headers
    host, _, port = headers.get("host", "localhost").partition(":")
    environ = {
        "REQUEST_METHOD": head.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": _unquote(head.raw_path, "latin-1"),
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


def _unquote(text: str, encoding: str = "utf-8") -> str:
    if "%" not in text:
        return text
    import urllib.parse

    return urllib.parse.unquote(text, encoding, "replace")


def _parse_pairs(text: str) -> list[tuple[str, object]]:
    """Past the limit the rest is dropped: it could only be an attempt to make hashing slow."""
    if not text:
        return []
    import urllib.parse

    pairs: list[tuple[str, object]] = []
    for part in text.split("&", FORM_FIELDS_LIMIT)[:FORM_FIELDS_LIMIT]:
        if part:
            name, _, value = part.partition("=")
            pairs.append((urllib.parse.unquote_plus(name), urllib.parse.unquote_plus(value)))
    return pairs
