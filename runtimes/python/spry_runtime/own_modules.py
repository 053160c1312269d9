"""A file of the Function that has the name of a module of the standard library, such as `json.py` or `types.py`.

The Function's code imports its own file, as when Python runs that code itself. The runtime, the standard library and installed
packages go on importing the standard library's module: which of the two comes first does not depend on what is loaded when.
"""

from __future__ import annotations

import os
import sys

_PACKAGE = "function"
"""Under which the Function's file is in `sys.modules`, see `function_package.py`."""
_LOADED_AT_START = "encodings"
"""The only one that is neither built in nor frozen."""


def prefer_standard_library(directory: str) -> None:
    """To be called before the directory and its packages are on the path."""
    directory = os.path.abspath(directory)
    own = _own_names(directory)
    sys.meta_path.insert(0, _StandardLibrary(own))
    if not own:
        return
    import builtins
    import importlib

    importer = _Importer(own, directory)
    builtins.__import__ = importer.import_
    importlib.import_module = importer.import_module


def _path_finder():
    return sys.modules["_frozen_importlib_external"].PathFinder


class _StandardLibrary:
    """Finds its modules first, wherever else there is one of that name."""

    def __init__(self, own: frozenset[str]) -> None:
        self._own = own
        library = os.path.dirname(os.__file__)
        # As the interpreter was started: the directory of extension modules has a name of its own.
        self._paths = [path for path in sys.path if path == library or os.path.basename(path) == "lib-dynload"]

    def find_spec(self, name, path=None, target=None):
        if path is not None or name not in sys.stdlib_module_names:
            return None
        found = _path_finder().find_spec(name, self._paths)
        if found is None and name in self._own:
            # It looks for some that only other systems have, such as `_winapi`.
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found


def _own_names(directory: str) -> frozenset[str]:
    """What the interpreter has built in, or has loaded before it looks at any directory, is never a file's."""
    import _imp

    try:
        with os.scandir(directory) as entries:
            names = {entry.name.partition(".")[0] for entry in entries}
    except OSError:
        return frozenset()  # the import itself reports what is missing
    found = names & sys.stdlib_module_names - {*sys.builtin_module_names, _LOADED_AT_START}
    return frozenset(name for name in found if not _imp.is_frozen(name) and _is_module(name, directory))


def _is_module(name: str, directory: str) -> bool:
    """A folder without `__init__.py` is none where the standard library has one."""
    spec = _path_finder().find_spec(name, [directory])
    return spec is not None and spec.origin is not None


class _Importer:
    """Imports as Python does, but for the Function's code its own modules."""

    def __init__(self, own: frozenset[str], directory: str) -> None:
        import builtins
        import importlib

        self._own = own
        self._below = os.path.join(directory, "")
        self._import = builtins.__import__
        self._import_module = importlib.import_module

    def import_(self, name, globals=None, locals=None, fromlist=(), level=0):  # noqa: A002 - Python's own names
        if level != 0 or not self._means_own(name, globals):
            return self._import(name, globals, locals, fromlist, level)
        found = self._import(f"{_PACKAGE}.{name}", globals, locals, fromlist, 0)
        return found if fromlist else sys.modules[f"{_PACKAGE}.{name.partition('.')[0]}"]

    def import_module(self, name, package=None):
        own = self._means_own(name, sys._getframe(1).f_globals)
        return self._import_module(f"{_PACKAGE}.{name}" if own else name, package)

    def _means_own(self, name: str, variables) -> bool:
        """`variables`: the globals of the module that imports."""
        if name.partition(".")[0] not in self._own or not variables:
            return False
        file = variables.get("__file__")
        return isinstance(file, str) and file.startswith(self._below) and f"{os.sep}site-packages{os.sep}" not in file
