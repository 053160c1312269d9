"""The Function's directory as the package `function`, which OpenFaaS calls it, and which files that name each other relatively need."""

from __future__ import annotations

import os
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location


def spec_of(directory: str) -> ModuleSpec | None:
    """With its `__init__.py` if it has one."""
    initial = os.path.join(directory, "__init__.py")
    if os.path.exists(initial):
        return spec_from_file_location("function", initial, submodule_search_locations=[directory])
    spec = ModuleSpec("function", _Empty(), origin=initial, is_package=True)
    spec.submodule_search_locations = [directory]
    return spec


class _Empty:
    def create_module(self, spec):
        return None

    def exec_module(self, module) -> None:
        pass
