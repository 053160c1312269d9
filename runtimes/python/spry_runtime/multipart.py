"""Forms with uploads (multipart/form-data, RFC 7578)."""

from __future__ import annotations

import io
import re

_BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,70})"|([^;, ]{1,70}))', re.IGNORECASE)
_PARAMETER = re.compile(r';\s*(name|filename)=(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))', re.IGNORECASE)
_PART_HEAD_LIMIT = 8 * 1024


class FileUpload:
    def __init__(self, name: str, filename: str, content_type: str, content: bytes) -> None:
        self.name = name
        self.raw_filename = filename
        self.filename = re.sub(r"[^\w.\- ]", "", re.split(r"[\\/]", filename)[-1]).strip(". ") or "empty"
        self.content_type = content_type
        self.file = self.stream = io.BytesIO(content)

    def read(self, size: int = -1) -> bytes:
        return self.file.read(size)

    def save(self, destination) -> None:
        """To a path or an open file."""
        data = self.file.getvalue()
        if hasattr(destination, "write"):
            destination.write(data)
            return
        with open(destination, "wb") as file:
            file.write(data)


def parse_multipart(content_type: str, content: bytes, limit: int) -> tuple[list, list]:
    """Pairs of fields and of files. Parts that are malformed, and those past `limit`, are left out."""
    match = _BOUNDARY.search(content_type)
    if match is None:
        return [], []
    delimiter = b"\r\n--" + (match[1] or match[2]).encode()
    fields: list = []
    files: list = []
    parts = (b"\r\n" + content).split(delimiter, limit + 1)
    for part in parts[1 : limit + 1]:
        if part.startswith(b"--"):
            break
        head, found, body = part.partition(b"\r\n\r\n")
        if not found or len(head) > _PART_HEAD_LIMIT:
            continue
        headers = _headers(head)
        parameters = {
            kind.lower(): quoted.replace('\\"', '"') or plain
            for kind, quoted, plain in _PARAMETER.findall(headers.get("content-disposition", ""))
        }
        name = parameters.get("name")
        if name is None:
            continue
        if "filename" in parameters:
            kind = headers.get("content-type", "application/octet-stream")
            files.append((name, FileUpload(name, parameters["filename"], kind, body)))
        else:
            fields.append((name, body.decode("utf-8", "replace")))
    return fields, files


def _headers(head: bytes) -> dict[str, str]:
    lines = head.decode("utf-8", "replace").split("\r\n")
    return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
