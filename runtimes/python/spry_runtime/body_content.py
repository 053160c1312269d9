"""What the bytes of a body say, by their content type: the one place where text is decoded and JSON is parsed."""

from __future__ import annotations

from .memory_guard import Stopped, check_memory, guarded

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_OF_C = frozenset(("utf-8", "utf-16-le", "utf-16-be", "iso8859-1"))
"""What decodes them is not written in Python."""
_LARGE = 64 * 1024
_UTF8 = frozenset(("utf-8", "utf8", "us-ascii", "ascii"))
_UTF16 = frozenset(("utf-16", "utf16", "utf-16le", "utf_16", "ucs-2", "unicode"))


class UnknownCharset(ValueError):
    """The text has an encoding that Python does not know."""


def media_type(headers: dict[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json(kind: str) -> bool:
    return kind == "application/json" or kind.endswith("+json")


def without_mark(content: bytes) -> bytes:
    """For others' parsers of JSON."""
    return content.removeprefix(_MARKS[0][0])


def text_of(content: bytes, headers: dict[str, str]) -> str:
    """Decoded as the web does (Encoding, section 6): by a byte order mark, which is taken away; else by the content type's
    charset; else as UTF-8. What is no character becomes U+FFFD. Raises `UnknownCharset` and `TooLargeInMemory`."""
    return _decode(content, headers, "replace")


def json_of(content: bytes, headers: dict[str, str]):
    """Decoded in the same way. Raises `ValueError` when it is not JSON, or nested too deeply, and `TooLargeInMemory`."""
    import json

    text = _decode(content, headers, "strict")
    try:
        if len(content) < _LARGE or json.scanner.c_make_scanner is None:
            return json.loads(text)
        return _parse_large(text, len(content))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def data_of(content: bytes, headers: dict[str, str]):
    """JSON, text, the fields of a form (a list of texts where a name is repeated), or the bytes. Raises as `json_of`."""
    kind = media_type(headers)
    if is_json(kind):
        return json_of(content, headers)
    if kind.startswith("text/"):
        return text_of(content, headers)
    if kind == "application/x-www-form-urlencoded":
        return _fields_of(form_text_of(content, headers))
    return content


def form_text_of(content: bytes, headers: dict[str, str]) -> str:
    """Of a form, of which there are three copies for a moment: text, parts, values."""
    check_memory(len(content), 3 * len(content))
    return text_of(content, headers)


def _decode(content: bytes, headers: dict[str, str], errors: str) -> str:
    start, encoding = _encoding(content, headers)
    rest = memoryview(content)[start:]
    if encoding in _OF_C:
        return guarded(len(content), str, rest, encoding, errors)
    check_memory(len(content), 2 * len(content))
    return str(rest, encoding, errors)


def _parse_large(text: str, size: int):
    """As `json.loads` does, whose one call that takes memory is guarded."""
    from json.decoder import WHITESPACE, JSONDecodeError, JSONDecoder

    try:
        value, end = guarded(size, JSONDecoder().scan_once, text, WHITESPACE.match(text, 0).end())
    except (StopIteration, Stopped):
        raise ValueError("Expecting value") from None
    end = WHITESPACE.match(text, end).end()
    if end != len(text):
        raise JSONDecodeError("Extra data", text, end)
    return value


def _fields_of(text: str) -> dict:
    from .percent import parse_pairs

    fields: dict = {}
    for name, value in parse_pairs(text):
        if name not in fields:
            fields[name] = value
        elif isinstance(fields[name], list):
            fields[name].append(value)
        else:
            fields[name] = [fields[name], value]
    return fields


def _encoding(content: bytes, headers: dict[str, str]) -> tuple[int, str]:
    """Where the text begins, and what it is encoded in."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return len(mark), encoding
    _, found, label = headers.get("content-type", "").lower().partition("charset=")
    label = label.partition(";")[0].strip(" \t\"'")
    if not found or not label or label in _UTF8:
        return 0, "utf-8"
    return 0, "utf-16-le" if label in _UTF16 else _codec(label)


def _codec(label: str) -> str:
    import codecs
    from encodings import aliases, normalize_encoding

    # Python remembers each name that it is asked for, also those that there are not; and has codecs that are of no text.
    name = normalize_encoding(label)
    try:
        if name in aliases.aliases or name in aliases.aliases.values():
            codec = codecs.lookup(name)
            if codec._is_text_encoding:
                return codec.name
    except LookupError:
        pass
    raise UnknownCharset(f"unsupported charset {label[:40]}")
