"""Header fields, and the fields of forms, queries and cookies, as Bottle and Flask show them."""

from __future__ import annotations


class Headers:
    """Header fields by case-insensitive name; `-` and `_` count as one. Repeated fields are joined by commas."""

    def __init__(self, headers: dict[str, str]) -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        return self._headers[name.lower().replace("_", "-")]

    def get(self, key: str, default=None):
        return self._headers.get(key.lower().replace("_", "-"), default)

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

    def __str__(self) -> str:
        return "".join(f"{name}: {value}\r\n" for name, value in self.items())


class MultiDict(dict):
    """The last value of each name; `getall` (Bottle) and `getlist` (Flask) give every one. `x.name` works too."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self._pairs = list(pairs)

    @property
    def dict(self) -> dict:
        return {name: self.getall(name) for name in self}

    def getall(self, key: str) -> list:
        return [value for name, value in self._pairs if name == key]

    def getlist(self, key: str, type=None) -> list:  # noqa: A002
        if type is None:
            return self.getall(key)
        return [value for value in (_converted(each, type, _MISSING) for each in self.getall(key)) if value is not _MISSING]

    def getone(self, key: str, default=None, index: int = -1, type=None):  # noqa: A002
        return self.get(key, default, index, type)

    def getunicode(self, name: str, default=None, encoding: str | None = None):
        return self.get(name, default)

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

    def iterallitems(self):
        return iter(self._pairs)

    def get(self, key, default=None, index=None, type=None):  # noqa: A002 - the names that both frameworks have
        """Bottle's third argument is which of several values, Flask's is `type`."""
        if callable(index):
            index, type = None, index  # noqa: A001
        if key not in self:
            return default
        if index is None:
            value = super().get(key)
        else:
            try:
                value = self.getall(key)[index]
            except IndexError:
                return default
        return value if type is None else _converted(value, type, default)

    def to_dict(self, flat: bool = True):
        return {**self} if flat else self.dict

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return self.get(name, "")


class FirstMultiDict(MultiDict):
    """As Flask's: the first value of each name."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.update(reversed(pairs))


_MISSING = object()


def _converted(value, type, default):  # noqa: A002
    try:
        return type(value)
    except (TypeError, ValueError):
        return default
