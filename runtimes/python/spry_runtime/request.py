"""The request object: what users call on Bottle's (`event["extensions"]["request"]`) and on Flask's.

Everything is computed when asked for. Where the two frameworks use one name for different things (`form`,
`json`), both uses work on the same value.
"""

from __future__ import annotations

from .multi_dict import FirstMultiDict, Headers, MultiDict
from .percent import parse_pairs, unquote
from .request_body import RequestBody

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .request_head import RequestHead


class Request(RequestBody):
    def __init__(self, head: RequestHead, content: bytes, peer: str) -> None:
        super().__init__(head.headers, content)
        self._head = head
        self._peer = peer
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
    def query(self) -> MultiDict:
        return MultiDict(parse_pairs(self._head.query))

    GET = query

    @property
    def args(self) -> FirstMultiDict:
        return FirstMultiDict(self.query.allitems())

    @property
    def POST(self) -> MultiDict:  # noqa: N802 - Bottle's name
        return MultiDict(self.forms.allitems() + self.files.allitems())

    @property
    def params(self) -> MultiDict:
        return MultiDict(self.query.allitems() + self.forms.allitems())

    @property
    def values(self) -> FirstMultiDict:
        return FirstMultiDict(self.params.allitems())

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
