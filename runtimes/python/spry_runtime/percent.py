"""Percent-encoded text: paths, and the pairs of queries and forms."""

from __future__ import annotations

FORM_FIELDS_LIMIT = 1000


def unquote(text: str, encoding: str = "utf-8") -> str:
    if "%" not in text:
        return text
    import urllib.parse

    return urllib.parse.unquote(text, encoding, "replace")


def parse_pairs(text: str) -> list[tuple[str, object]]:
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
