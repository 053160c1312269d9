"""The exceptions of `requests`, under their names and with their ancestry."""

from __future__ import annotations


class RequestException(OSError):  # noqa: N818
    def __init__(self, *args, request=None, response=None) -> None:
        super().__init__(*args)
        self.response = response
        self.request = request if request is not None else getattr(response, "request", None)


class HTTPError(RequestException):
    """By `raise_for_status`."""


class ConnectionError(RequestException):  # noqa: A001
    pass


class SSLError(ConnectionError):
    pass


class Timeout(RequestException):  # noqa: N818
    pass


class ConnectTimeout(ConnectionError, Timeout):  # noqa: N818
    pass


class ReadTimeout(Timeout):
    pass


class TooManyRedirects(RequestException):
    pass


class InvalidURL(RequestException, ValueError):
    pass


class MissingSchema(RequestException, ValueError):
    pass


class InvalidSchema(RequestException, ValueError):
    pass


class InvalidJSONError(RequestException):
    pass


class JSONDecodeError(InvalidJSONError, ValueError):
    pass
