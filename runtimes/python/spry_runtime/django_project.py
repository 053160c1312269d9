"""Where a project of Django has its application."""

from __future__ import annotations

import os
import re


def application_module(directory: str) -> str | None:
    """`manage.py` names the settings, and next to them or above are `wsgi.py` and `asgi.py`."""
    with open(os.path.join(directory, "manage.py"), encoding="utf-8", errors="replace") as file:
        named = re.search(r"""DJANGO_SETTINGS_MODULE["']\s*,\s*["']([\w.]+)["']""", file.read())
    package = named[1].rpartition(".")[0] if named else ""
    while package:
        for name in ("wsgi", "asgi"):
            if os.path.exists(os.path.join(directory, *package.split("."), f"{name}.py")):
                return f"{package}.{name}"
        package = package.rpartition(".")[0]
    return None
