"""URIs that a client sends, where the upstream would open them (EverOS reads its disk and fetches ``http(s)``).

Only what the settings name goes through. Roots and files are compared by their real paths, so a link cannot lead out
of a root, and nothing under the data folder is ever opened for a client. An allowed host is trusted for its redirects.
Any other scheme is opened by no upstream and is left to it to refuse.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote_to_bytes

from memory_gateway.engine.schemas import Message
from memory_gateway.kit.errors import UriNotAllowed

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# Where URI parsers differ: controls and outer white space are dropped by some, backslashes are slashes to some
_AMBIGUOUS = re.compile(r"[\x00-\x1f\x7f-\x9f\\]|^\s|\s$")
_FILE = re.compile(r"file:(?://(?:localhost)?)?(/[^/?#][^?#]*)", re.IGNORECASE)
_HTTP = re.compile(r"(https?)://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?(?:[/?#].*)?", re.IGNORECASE)
_DEFAULT_PORTS = {"http": "80", "https": "443"}


class UriPolicy:
    """Which ``file://`` and ``http(s)`` URIs a client may hand to the upstream."""

    def __init__(self, roots: Iterable[Path], hosts: Iterable[str], data_dir: Path) -> None:
        self._roots = tuple(root.resolve() for root in roots)
        self._hosts = frozenset(host.lower() for host in hosts)
        self._data_dir = data_dir.resolve()

    def check(self, messages: Sequence[Message]) -> None:
        """`UriNotAllowed` naming the field and the setting that would allow it."""
        for number, message in enumerate(messages):
            for place, item in enumerate(message.content if isinstance(message.content, list) else ()):
                if item.uri is not None:
                    self._check_uri(item.uri, f"messages.{number}.content.{place}.uri")

    def _check_uri(self, uri: str, field: str) -> None:
        if _AMBIGUOUS.search(uri):
            raise UriNotAllowed("control characters, backslashes and outer spaces must be encoded", field=field)
        scheme = _SCHEME.match(uri)
        name = scheme[1].lower() if scheme else ""
        if name == "file" and not self._is_allowed_file(uri):
            raise UriNotAllowed("this file is in no folder of the setting allowed_file_roots", field=field)
        if name in _DEFAULT_PORTS and not self._is_allowed_host(uri):
            raise UriNotAllowed("this host and port are not in the setting allowed_uri_hosts", field=field)

    def _is_allowed_file(self, uri: str) -> bool:
        match = _FILE.fullmatch(uri)
        if match is None:
            return False
        try:
            named = Path(unquote_to_bytes(match[1]).decode())
            path = named.resolve()
        except (ValueError, OSError, RuntimeError):  # NUL, no UTF-8, a loop of links
            return False
        return (
            ".." not in named.parts
            and not path.is_relative_to(self._data_dir)
            and any(path.is_relative_to(root) for root in self._roots)
        )

    def _is_allowed_host(self, uri: str) -> bool:
        match = _HTTP.fullmatch(uri)
        if match is None:
            return False
        scheme, host, port = match[1].lower(), match[2].lower(), match[3]
        return f"{host}:{port or _DEFAULT_PORTS[scheme]}" in self._hosts
