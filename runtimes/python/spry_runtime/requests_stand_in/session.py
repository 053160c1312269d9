"""Sends requests: `get`, `post` and the others, with what several requests have in common."""

from __future__ import annotations

import datetime
import http.client
import http.cookies
import ssl
import time
import urllib.error
import urllib.request
from urllib.parse import urlencode, urlsplit, urlunsplit

from ..trace import outgoing_headers
from . import errors
from .body import body_of
from .response import CaseInsensitiveDict, PreparedRequest, Response

_AGENT = "python-requests/2.32.0"


class Session:
    """`headers`, `params`, `auth`, `cookies` and `verify` are of all its requests. Connections are not kept."""

    def __init__(self) -> None:
        self.headers = CaseInsensitiveDict({"User-Agent": _AGENT, "Accept": "*/*"}.items())
        self.params: dict = {}
        self.auth: tuple[str, str] | None = None
        self.cookies: dict[str, str] = {}
        """For every host. What a host has set goes back to that host alone."""
        self._cookies_of: dict[str | None, dict[str, str]] = {}
        self.verify: bool | str = True

    def request(
        self, method: str, url: str, params=None, data=None, headers=None, cookies=None, files=None, auth=None,
        timeout=None, allow_redirects: bool = True, stream: bool = False, verify=None, json=None,
    ) -> Response:  # fmt: skip
        """`timeout` in seconds, of one number or two (to connect, and to read, which counts for both). Raises `RequestException`."""
        body, kind = body_of(data, files, json)
        sent = CaseInsensitiveDict(self.headers.items())
        if kind:
            sent["Content-Type"] = kind
        all_cookies = {**self.cookies, **self._cookies_of.get(urlsplit(url).hostname, {}), **(cookies or {})}
        if all_cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in all_cookies.items())
        credentials = auth or self.auth
        if credentials is not None:
            sent["Authorization"] = _basic(*credentials)
        sent.update({name: value for name, value in (headers or {}).items() if value is not None})
        # Seen in `response.request`, so not left to what adds them to other clients' requests.
        if "traceparent" not in sent:
            sent.update(outgoing_headers())
        request = PreparedRequest(method.upper(), _with_params(url, {**self.params, **_pairs(params)}), sent, body)
        response = self._send(request, timeout, allow_redirects, self.verify if verify is None else verify)
        if not stream:
            with _errors_of(request):
                response.content  # noqa: B018 - read now
        return response

    def get(self, url: str, params=None, **options) -> Response:
        return self.request("GET", url, params=params, **options)

    def options(self, url: str, **options) -> Response:
        return self.request("OPTIONS", url, **options)

    def head(self, url: str, **options) -> Response:
        return self.request("HEAD", url, **{"allow_redirects": False, **options})

    def post(self, url: str, data=None, json=None, **options) -> Response:
        return self.request("POST", url, data=data, json=json, **options)

    def put(self, url: str, data=None, **options) -> Response:
        return self.request("PUT", url, data=data, **options)

    def patch(self, url: str, data=None, **options) -> Response:
        return self.request("PATCH", url, data=data, **options)

    def delete(self, url: str, **options) -> Response:
        return self.request("DELETE", url, **options)

    def close(self) -> None:
        pass

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_error) -> None:
        self.close()

    def _send(self, request: PreparedRequest, timeout, allow_redirects: bool, verify) -> Response:
        outgoing = _Request(request.url, request.body, dict(request.headers), method=request.method)
        redirects = _Redirects() if allow_redirects else _NoRedirects()
        opener = urllib.request.build_opener(
            _AnyStatus(), redirects, urllib.request.HTTPSHandler(context=_tls(verify))
        )
        seconds = timeout[1] if isinstance(timeout, tuple) else timeout
        began = time.monotonic()
        with _errors_of(request):
            raw = opener.open(outgoing, timeout=seconds)
        response = Response(request, raw, datetime.timedelta(seconds=time.monotonic() - began))
        for line in raw.headers.get_all("set-cookie", ()):
            response.cookies.update((name, each.value) for name, each in http.cookies.SimpleCookie(line).items())
        self._cookies_of.setdefault(urlsplit(response.url).hostname, {}).update(response.cookies)
        return response


class _Request(urllib.request.Request):
    def has_header(self, header_name: str) -> bool:
        """Of a body that says no type, the type is not to be guessed."""
        return header_name == "Content-type" or super().has_header(header_name)


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """A refusal is an answer. Only redirects go on to be handled."""

    def http_response(self, request, response):
        if response.status in (301, 302, 303, 307, 308) and "location" in response.headers:
            return super().http_response(request, response)
        return response

    https_response = http_response


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, request, answer, code, message, headers, new_url):
        """Credentials must not be sent to other hosts."""
        onward = super().redirect_request(request, answer, code, message, headers, new_url)
        if onward is None:
            return None
        if onward.type not in ("http", "https"):
            raise errors.InvalidSchema(f"No connection adapters were found for {new_url!r}")
        if (onward.type, onward.host) != (request.type, request.host):
            for name in ("Authorization", "Cookie"):
                onward.headers.pop(name, None)
        return onward


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def _stay(self, _request, answer, code: int, _message, _headers):
        answer.status = code
        return answer

    http_error_301 = http_error_302 = http_error_303 = http_error_307 = http_error_308 = _stay


class _errors_of:  # noqa: N801
    """A context in which errors become those of `requests`."""

    def __init__(self, request: PreparedRequest) -> None:
        self._request = request

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind, error, _traceback) -> None:
        reason = getattr(error, "reason", error) if isinstance(error, urllib.error.URLError) else error
        if isinstance(error, urllib.error.HTTPError):
            response = Response(self._request, error, datetime.timedelta())
            raise errors.TooManyRedirects(f"{self._request.url}: too many redirects", response=response) from error
        if isinstance(reason, TimeoutError):
            kind = errors.ReadTimeout if reason is error else errors.ConnectTimeout
        elif isinstance(reason, ssl.SSLError):
            kind = errors.SSLError
        elif isinstance(reason, http.client.InvalidURL):
            kind = errors.InvalidURL
        elif isinstance(error, (OSError, http.client.HTTPException)):
            kind = errors.ConnectionError
        else:
            return
        raise kind(f"{self._request.method} {self._request.url}: {reason}", request=self._request) from error


def _with_params(url: str, params: dict) -> str:
    parts = urlsplit(url)
    if not parts.scheme:
        raise errors.MissingSchema(f"Invalid URL {url!r}: No scheme supplied. Perhaps you meant https://{url}?")
    if parts.scheme not in ("http", "https"):
        raise errors.InvalidSchema(f"No connection adapters were found for {url!r}")
    if not parts.hostname:
        raise errors.InvalidURL(f"Invalid URL {url!r}: No host supplied")
    added = urlencode({name: value for name, value in params.items() if value is not None}, doseq=True)
    return urlunsplit(parts._replace(query="&".join(filter(None, (parts.query, added))), fragment=""))


def _pairs(params) -> dict:
    if isinstance(params, (str, bytes)):
        from urllib.parse import parse_qs

        return parse_qs(params if isinstance(params, str) else params.decode(), keep_blank_values=True)
    return dict(params or {})


def _basic(user: str, password: str) -> str:
    import base64

    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _tls(verify: bool | str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
    if verify is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
