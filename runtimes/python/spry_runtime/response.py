"""Response objects for handlers: what `bottle.HTTPResponse` and `bottle.abort` are used for."""

from __future__ import annotations


class HTTPResponse(Exception):  # noqa: N818 - an answer that can also be raised
    """`HTTPResponse(body="…", status=201, headers={…})`; other keywords are headers, `_` standing for `-`."""

    default_status = 200

    def __init__(self, body="", status=None, headers=None, **more) -> None:
        super().__init__(body)
        self.body = body
        self._headers: list[tuple[str, str]] = []
        self.status = status or self.default_status
        for name, value in _pairs(headers):
            self.add_header(name, value)
        for name, value in more.items():
            self.add_header(name.replace("_", "-").title(), value)

    @property
    def status(self) -> str:
        return self.status_line

    @status.setter
    def status(self, status) -> None:
        """A code, or a line such as "404 Not here"."""
        self.status_line = str(status)
        self.status_code = int(self.status_line.split(None, 1)[0])

    @property
    def headerlist(self) -> list[tuple[str, str]]:
        return list(self._headers)

    @property
    def headers(self) -> dict[str, str]:
        return dict(self._headers)

    @property
    def content_type(self) -> str | None:
        return self.get_header("Content-Type")

    @content_type.setter
    def content_type(self, value: str) -> None:
        self.set_header("Content-Type", value)

    @property
    def content_length(self) -> int:
        return int(self.get_header("Content-Length", -1))

    @property
    def charset(self) -> str:
        return (self.content_type or "").lower().partition("charset=")[2].partition(";")[0].strip(' "') or "UTF-8"

    def iter_headers(self) -> list[tuple[str, str]]:
        return self.headerlist

    def copy(self):
        return type(self)(body=self.body, status=self.status_line, headers=self._headers)

    def get_header(self, name: str, default=None):
        return next((value for key, value in self._headers if key.lower() == name.lower()), default)

    def set_header(self, name: str, value) -> None:
        self._headers = [(key, old) for key, old in self._headers if key.lower() != name.lower()]
        self.add_header(name, value)

    def add_header(self, name: str, value) -> None:
        self._headers.append((name, str(value)))

    def set_cookie(self, name: str, value: str, **options) -> None:
        from http.cookies import SimpleCookie

        cookie: SimpleCookie = SimpleCookie()
        cookie[name] = value
        for key, option in options.items():
            if option not in (None, False):
                cookie[name][key.replace("_", "-")] = option
        self.add_header("Set-Cookie", cookie[name].OutputString())

    def delete_cookie(self, name: str, **options) -> None:
        self.set_cookie(name, "", **{**options, "max_age": -1, "expires": "Thu, 01 Jan 1970 00:00:00 GMT"})


class HTTPError(HTTPResponse):
    default_status = 500

    def __init__(self, status=None, body=None, exception=None, traceback=None, headers=None, **more) -> None:
        super().__init__("" if body is None else body, status, headers, **more)
        self.exception = exception
        self.traceback = traceback


def abort(code: int = 500, text: str = "Unknown Error."):
    raise HTTPError(code, text)


def redirect(url: str, code: int = 303):
    raise HTTPResponse("", code, {"Location": url})


def _pairs(headers) -> list:
    if not headers:
        return []
    if isinstance(headers, list):
        return headers
    return list(headers.items() if hasattr(headers, "items") else headers)
