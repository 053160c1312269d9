"""The request object: what users call on Bottle's (`event["extensions"]["request"]`) and on Flask's.

Everything is computed when asked for. Where the two frameworks use one name for different things (`form`,
`json`), both uses work on the same value.
"""

from __future__ import annotations

import io

from .multi_dict import FirstMultiDict, Headers, MultiDict
from .percent import FORM_FIELDS_LIMIT, parse_pairs, unquote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request_head import RequestHead

_LAZY = object()


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
        return "/" + unquote(self._head.raw_path).lstrip("/")

    url_args: dict = {}
    """There are no routes, so there are no parts of them."""

    @property
    def host_url(self) -> str:
        return f"{self.scheme}://{self.host}/"

    root_url = url_root = host_url

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    @property
    def origin(self) -> str | None:
        return self.raw_headers.get("origin")

    @property
    def referrer(self) -> str | None:
        return self.raw_headers.get("referer")

    @property
    def user_agent(self) -> str:
        return self.raw_headers.get("user-agent", "")

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
        """-1 if there is no body, as Bottle has it."""
        return len(self.content) if self.content or "content-length" in self.raw_headers else -1

    @property
    def body(self) -> io.BytesIO:
        """A file, at its beginning each time it is asked for."""
        if self._body is None:
            self._body = io.BytesIO(self.content)
        self._body.seek(0)
        return self._body

    stream = body

    @property
    def chunked(self) -> bool:
        """Whether it came in chunks; here they are joined."""
        return "chunked" in self.raw_headers.get("transfer-encoding", "").lower()

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
        return MultiDict(parse_pairs(self._head.query))

    GET = query

    @property
    def args(self) -> FirstMultiDict:
        return FirstMultiDict(self.query.allitems())

    @property
    def forms(self) -> MultiDict:
        """Fields of a form, urlencoded or multipart."""
        return self._parse_forms()[0]

    @property
    def form(self) -> FirstMultiDict:
        return FirstMultiDict(self.forms.allitems())

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

    @property
    def values(self) -> FirstMultiDict:
        return FirstMultiDict(self.params.allitems())

    def _parse_forms(self) -> tuple[MultiDict, MultiDict]:
        if self._forms is None:
            if self.mimetype == "multipart/form-data":
                from .multipart import parse_multipart

                fields, files = parse_multipart(self.raw_headers["content-type"], self.content, FORM_FIELDS_LIMIT)
            elif self.mimetype in ("application/x-www-form-urlencoded", ""):
                fields, files = parse_pairs(self.content.decode("utf-8", "replace")), []
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

    def get_cookie(self, key: str, default=None):
        return self.cookies.get(key, default)

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

        kind, _, text = self.raw_headers.get("authorization", "").partition(" ")
        if kind.lower() != "basic":
            return None
        try:
            user, found, password = base64.b64decode(text, validate=True).decode().partition(":")
        except ValueError:
            return None  # no base64, or no text
        return (user, password) if found else None

    @property
    def environ(self) -> dict:
        """As WSGI has it (PEP 3333)."""
        if self._environ is None:
            from .wsgi_environ import wsgi_environ

            self._environ = wsgi_environ(self._head, self.content, self._peer)
        return self._environ

    def get(self, name: str, default=None):
        return self.environ.get(name, default)

    def keys(self):
        """With `[]` the members of `environ`."""
        return self.environ.keys()

    def __getitem__(self, name: str):
        return self.environ[name]

    def copy(self) -> Request:
        return Request(self._head, self.content, self._peer)

    def __repr__(self) -> str:
        return f"<Request: {self.method} {self.url}>"
