"""Lets a Python process of the process sandbox call Services by their names and addresses.

Loaded at the interpreter's start: `socket` asks the files of `service-files.ts` first, and the
system about everything else. Until a program imports `socket`, this costs it next to nothing.
"""

import os
import sys

_OWN = os.environ["SPRY_SERVICES"]
_ALL = os.path.dirname(_OWN)
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_SUFFIX = ".svc.cluster.local"
# With fewer dots the search list of a Pod's resolv.conf comes first (ndots:5).
_MAX_SEARCHED = 5
# Services of type ExternalName may name each other.
_MAX_ALIASES = 8


class _Finder:
    """Finds `socket` as the others do, and has it changed once it is loaded."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "socket":
            return None
        sys.meta_path.remove(_Finder)
        found = (finder.find_spec(name, path, target) for finder in sys.meta_path)
        spec = next(filter(None, found), None)
        if spec is not None:
            load = spec.loader.exec_module

            def load_and_change(module):
                load(module)
                _change(module)

            spec.loader.exec_module = load_and_change
        return spec


def _read(*parts):
    import json

    try:
        with open(os.path.join(*parts), "rb") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _is_label(text):
    """RFC 1123: what may name a Service or a namespace, and no other file."""
    return 0 < len(text) <= 63 and _LETTERS.issuperset(text) and text[0] != "-" != text[-1]


def _named(labels):
    """`service.namespace`, or `host.service.namespace` of a Pod behind a headless Service."""
    if not all(map(_is_label, labels)):
        return None
    if len(labels) == 2:
        return _read(_ALL, labels[1], labels[0] + ".json")
    if len(labels) != 3:
        return None
    service = _read(_ALL, labels[2], labels[1] + ".json") or {}
    addresses = service.get("hosts", {}).get(labels[0])
    return {"addresses": addresses} if addresses else None


def _service_of(host):
    """The file of a Service, or its alias, another name; None for what is no Service."""
    if isinstance(host, (bytes, bytearray)):
        host = bytes(host).decode("ascii", "replace")
    if not isinstance(host, str) or len(host) > 253:
        return None
    if host.startswith("10.96."):
        return _read(_ALL, "..", "addresses", host + ".json") if "/" not in host else None
    alias = None
    for _ in range(_MAX_ALIASES):
        service = _service_of_name((alias or host).lower())
        if not service or "externalName" not in service:
            return service or (alias and {"alias": alias})
        alias = service["externalName"]
    return None


def _service_of_name(name):
    bare = name.removesuffix(".")
    if bare in ("", "localhost") or ":" in bare or bare.replace(".", "").isdigit():
        return None
    if bare.endswith(_SUFFIX):
        return _named(bare.removesuffix(_SUFFIX).split("."))
    labels = bare.split(".")
    if bare != name or len(labels) > _MAX_SEARCHED:
        return None
    namespace = os.path.basename(_OWN)
    candidates = [labels + [namespace]] if len(labels) < 3 else []
    candidates.append(labels)
    if labels[-1] == "svc":
        candidates.append(labels[:-1])
    return next(filter(None, map(_named, candidates)), None)


_SELF = os.environ.get("SERVER_HOST")


def _open(service, endpoints):
    """Those of a Service's endpoints that NetworkPolicies let this Pod call."""
    admitted = service.get("admitted", {})
    refused = service.get("refused", {})
    return [
        each
        for each in endpoints
        if _SELF in admitted.get(each, (_SELF,)) and _SELF not in refused.get(each, ())
    ]


def _chosen(candidates):
    import random

    return random.choice(candidates)


def _change(socket):
    own_connect = socket.socket.connect
    own_connect_ex = socket.socket.connect_ex
    own_getaddrinfo = socket.getaddrinfo
    own_gethostbyname = socket.gethostbyname

    def target_of(sock, address):
        """Where a connection to a Service's port goes; the address itself for what is no Service."""
        if sock.family != socket.AF_INET or not isinstance(address, tuple) or len(address) != 2:
            return address
        host, port = address
        service = _service_of(host)
        if not service:
            return address
        if "alias" in service:
            return (service["alias"], port)
        if "ports" not in service:
            if not service["addresses"]:
                return address
            endpoints = [f"{each}:{port}" for each in service["addresses"]]
        else:
            protocol = "UDP" if sock.type == socket.SOCK_DGRAM else "TCP"
            endpoints = service["ports"].get(f"{port}/{protocol}", [])
        endpoints = _open(service, endpoints)
        if not endpoints:
            from errno import ECONNREFUSED

            raise ConnectionRefusedError(ECONNREFUSED, os.strerror(ECONNREFUSED))
        ip, _, number = _chosen(endpoints).rpartition(":")
        return (ip, int(number))

    def connect(self, address):
        return own_connect(self, target_of(self, address))

    def connect_ex(self, address):
        try:
            target = target_of(self, address)
        except ConnectionRefusedError as error:
            return error.errno
        return own_connect_ex(self, target)

    def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
        service = _service_of(host) if family in (0, socket.AF_INET) else None
        if service and "alias" in service:
            return own_getaddrinfo(service["alias"], port, family, type, proto, flags)
        addresses = (service or {}).get("addresses") or [host]
        found = [own_getaddrinfo(each, port, family, type, proto, flags) for each in addresses]
        return [each for part in found for each in part]

    def gethostbyname(hostname):
        service = _service_of(hostname) or {}
        if service.get("addresses"):
            return service["addresses"][0]
        return own_gethostbyname(service.get("alias", hostname))

    socket.socket.connect = connect
    socket.socket.connect_ex = connect_ex
    socket.getaddrinfo = getaddrinfo
    socket.gethostbyname = gethostbyname


if "socket" in sys.modules:
    _change(sys.modules["socket"])
else:
    sys.meta_path.insert(0, _Finder)
