"""Header fields, and the fields of forms, queries and cookies, as Bottle and Flask show them."""

from __future__ import annotations


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
        self._pairs = list(pairs)

    def getall(self, name: str) -> list:
        return [value for key, value in self._pairs if key == name]

    getlist = getall

    def getone(self, name: str, default=None):
        return self.get(name, default)

    getunicode = getone

    def decode(self, _encoding: str | None = None) -> MultiDict:
        """All is text already."""
        return MultiDict(self.allitems())

    def append(self, name: str, value) -> None:
        self._pairs.append((name, value))
        super().__setitem__(name, value)

    def replace(self, name: str, value) -> None:
        self._pairs[:] = [pair for pair in self._pairs if pair[0] != name]
        self.append(name, value)

    __setitem__ = replace

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
