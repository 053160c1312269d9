"""What a request brings along: its body as bytes, file, JSON or form, each made of it when it is asked for."""

from __future__ import annotations

import io

from .body_content import UnknownCharset, form_text_of, is_json, json_of, text_of
from .multi_dict import FirstMultiDict, MultiDict
from .percent import FORM_FIELDS_LIMIT, parse_pairs

_LAZY = object()


class RequestBody:
    def __init__(self, raw_headers: dict[str, str], content: bytes) -> None:
        self.content = content
        self.raw_headers = raw_headers
        """By lower-case name."""
        self._body: io.BytesIO | None = None
        self._json = _LAZY
        self._forms: tuple[MultiDict, MultiDict] | None = None

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
        return text_of(self.content, self.raw_headers) if as_text else self.content

    @property
    def is_json(self) -> bool:
        return is_json(self.mimetype)

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
            try:
                self._json = json_of(self.content, self.raw_headers)
            except UnknownCharset:
                raise
            except ValueError:
                return default
        return self._json

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

    def _parse_forms(self) -> tuple[MultiDict, MultiDict]:
        if self._forms is None:
            if self.mimetype == "multipart/form-data":
                from .memory_guard import check_memory
                from .multipart import parse_multipart

                check_memory(len(self.content), 2 * len(self.content))
                fields, files = parse_multipart(self.raw_headers["content-type"], self.content, FORM_FIELDS_LIMIT)
            elif self.mimetype in ("application/x-www-form-urlencoded", ""):
                fields, files = parse_pairs(form_text_of(self.content, self.raw_headers)), []
            else:
                fields, files = [], []
            self._forms = MultiDict(fields), MultiDict(files)
        return self._forms
