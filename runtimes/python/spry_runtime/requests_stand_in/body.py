"""The body of a request, of what `requests` takes for one."""

from __future__ import annotations

import os
from urllib.parse import urlencode


def body_of(data, files, json) -> tuple[object, str | None]:
    """Bytes, or a file or iterator of them; and the type that it says by itself."""
    if files:
        return _multipart(data, files)
    if data is None and json is not None:
        from json import dumps

        return dumps(json, allow_nan=False).encode(), "application/json"
    if isinstance(data, str):
        return data.encode(), None
    if isinstance(data, (dict, list, tuple)):
        return urlencode(data, doseq=True).encode(), "application/x-www-form-urlencoded"
    return data, None


def _multipart(data, files) -> tuple[bytes, str]:
    """Each file is its content, a file object, or a tuple of file name, content and type."""
    boundary = os.urandom(16).hex()
    parts = []
    for name, value in (data or {}).items() if hasattr(data or {}, "items") else data:
        parts.append((f'name="{_quoted(name)}"', None, value))
    for name, value in files.items() if hasattr(files, "items") else files:
        file_name, content, kind = name, value, None
        if isinstance(value, (tuple, list)):
            file_name, content, kind = (*value, None)[:3]
        elif hasattr(value, "name"):
            file_name = os.path.basename(str(value.name))
        named = "" if file_name is None else f'; filename="{_quoted(file_name)}"'
        parts.append((f'name="{_quoted(name)}"{named}', kind, content))
    body = b"".join(
        f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n".encode()
        + (f"Content-Type: {kind}\r\n" if kind else "").encode()
        + b"\r\n" + _bytes_of(content) + b"\r\n"
        for disposition, kind, content in parts
    )  # fmt: skip
    return body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def _quoted(text) -> str:
    return str(text).replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _bytes_of(content) -> bytes:
    if hasattr(content, "read"):
        content = content.read()
    return content if isinstance(content, (bytes, bytearray)) else str(content).encode()
