"""What came back, as handlers read it."""

from __future__ import annotations

import json

from .errors import HTTPError, JSONDecodeError

_PIECE_BYTES = 64 * 1024


class CaseInsensitiveDict(dict):
    """Header fields: as they were written, found in any case. Several of one name are joined by commas."""

    def __init__(self, pairs=()) -> None:
        super().__init__()
        self._names: dict[str, str] = {}
        for name, value in pairs:
            self[name] = f"{self[name]}, {value}" if name in self else value

    def __setitem__(self, name: str, value: str) -> None:
        super().__setitem__(self._names.setdefault(name.lower(), name), value)

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(self._names.get(name.lower(), name))

    def __contains__(self, name) -> bool:
        return isinstance(name, str) and name.lower() in self._names

    def __delitem__(self, name: str) -> None:
        super().__delitem__(self._names.pop(name.lower(), name))

    def get(self, name: str, default=None):
        return self[name] if name in self else default

    def setdefault(self, name: str, default=None):
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, other=(), **more) -> None:
        for name, value in (*dict(other).items(), *more.items()):
            self[name] = value


class PreparedRequest:
    """What was sent."""

    def __init__(self, method: str, url: str, headers: CaseInsensitiveDict, body) -> None:
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body


class Response:
    def __init__(self, request: PreparedRequest, raw, elapsed) -> None:
        """`raw` is what `urllib.request` returned."""
        self.request = request
        self.raw = raw
        self.status_code: int = raw.status
        self.reason: str = raw.reason
        self.url: str = raw.url
        self.headers = CaseInsensitiveDict(raw.headers.items())
        self.cookies: dict[str, str] = {}
        self.history: list[Response] = []
        self.elapsed = elapsed
        self.encoding: str | None = raw.headers.get_content_charset()
        if self.encoding is None and raw.headers.get_content_maintype() == "text":
            self.encoding = "ISO-8859-1"  # as RFC 2616 said, and `requests` does
        self._content: bytes | None = None

    @property
    def content(self) -> bytes:
        if self._content is None:
            with self.raw:
                self._content = self.raw.read()
        return self._content

    @property
    def text(self) -> str:
        try:
            return self.content.decode(self.encoding or "utf-8", "replace")
        except LookupError:
            return self.content.decode("utf-8", "replace")

    def json(self, **options):
        try:
            return json.loads(self.content, **options)
        except ValueError as error:
            raise JSONDecodeError(str(error)) from error

    @property
    def ok(self) -> bool:
        return self.status_code < 400

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return f"<Response [{self.status_code}]>"

    @property
    def is_redirect(self) -> bool:
        return "location" in self.headers and self.status_code in (301, 302, 303, 307, 308)

    def raise_for_status(self) -> None:
        if self.ok:
            return
        side = "Client" if self.status_code < 500 else "Server"
        raise HTTPError(f"{self.status_code} {side} Error: {self.reason} for url: {self.url}", response=self)

    def iter_content(self, chunk_size: int | None = 1, decode_unicode: bool = False):
        """As it arrives, if the request was made with `stream=True`."""
        for piece in self._pieces(chunk_size or _PIECE_BYTES):
            yield piece.decode(self.encoding or "utf-8", "replace") if decode_unicode else piece

    def iter_lines(self, decode_unicode: bool = False):
        rest = b""
        for piece in self._pieces(512):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                line = line.removesuffix(b"\r")
                yield line.decode(self.encoding or "utf-8", "replace") if decode_unicode else line
        if rest:
            yield rest.decode(self.encoding or "utf-8", "replace") if decode_unicode else rest

    def _pieces(self, size: int):
        if self._content is not None:
            yield from (self._content[at : at + size] for at in range(0, len(self._content), size))
            return
        while piece := self.raw.read1(size) if hasattr(self.raw, "read1") else self.raw.read(size):
            yield piece

    def close(self) -> None:
        self.raw.close()

    def __enter__(self) -> Response:
        return self

    def __exit__(self, *_error) -> None:
        self.close()
