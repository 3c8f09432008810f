"""Makes requests and shows each of them: what was sent, what came back, how long it took, and whether that is right."""

import time
import unicodedata
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import click
import httpx
import msgspec

_LINE = 112
_LONGEST_TEXT = 72
_MOST_ITEMS = 2
_SECRET_NAMES = frozenset({"user_key"})
_HEADERS_SHOWN = ("Idempotency-Key", "X-Admin-Key", "X-User-ID", "X-User-Key")


class Teller:
    """Talks to one server and prints as it goes. ``failures`` are the expectations that did not hold."""

    def __init__(self, url: str, transport: httpx.BaseTransport | None = None) -> None:
        self._client = httpx.Client(base_url=url, timeout=120, trust_env=False, transport=transport)
        self.failures: list[str] = []
        self.calls = 0

    def __enter__(self) -> "Teller":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def chapter(self, title: str) -> None:
        click.echo("\n" + click.style(f"━━ {title} ", bold=True, fg="cyan") + click.style("━" * 20, fg="cyan"))

    def say(self, text: str) -> None:
        click.echo(click.style(text, fg="bright_black"))

    def expect(self, what: str, holds: bool) -> None:
        """Show an expectation and remember it when it fails."""
        mark = click.style("✓", fg="green") if holds else click.style("✗ NOT SO:", fg="red", bold=True)
        click.echo(f"   {mark} {what}")
        if not holds:
            self.failures.append(what)

    def call(self, method: str, path: str, *, expect: int, show: bool = True, **options: Any) -> httpx.Response:
        """Make one request and show it; another status than ``expect`` is a failure."""
        self.calls += 1
        self._show_request(method, path, options)
        started = time.perf_counter()
        response = self._client.request(method, path, **options)
        milliseconds = 1000 * (time.perf_counter() - started)
        self._show_status(response, milliseconds)
        if show:
            click.echo(_indented(readable(response)))
        if response.status_code != expect:
            self.expect(
                f"{method} {path} answers {expect}, not {response.status_code}: {response.text[:500]}", holds=False
            )
        return response

    def search(self, query: str, *, user: Mapping[str, str], **options: Any) -> list[dict[str, Any]]:
        """``POST /memories/search``, the results shown one a line."""
        body = {**user, "query": query, **options}
        response = self.call("POST", "/memories/search", expect=200, show=False, json=body)
        results: list[dict[str, Any]] = response.json().get("results", [])
        for rank, result in enumerate(results[: _MOST_ITEMS + 1], 1):
            show_result(rank, result)
        if not results:
            click.echo("     nothing")
        if len(results) > _MOST_ITEMS + 1:
            self.say(f"     … and {len(results) - _MOST_ITEMS - 1} more")
        return results

    def _show_request(self, method: str, path: str, options: Mapping[str, Any]) -> None:
        click.echo("\n" + click.style(f"{method} {path}", bold=True))
        headers = options.get("headers", {})
        for name in _HEADERS_SHOWN:
            if name in headers:
                value = "…" if name.endswith("-Key") and name.startswith("X-") else headers[name]
                click.echo(click.style(f"   {name}: {value}", fg="bright_black"))
        for field, (file_name, content, *_) in options.get("files", {}).items():
            click.echo(click.style(f"   {field}: {file_name} ({len(content):,} bytes)", fg="bright_black"))
        if "json" in options:
            click.echo(click.style(_indented(compact(options["json"])), fg="bright_black"))

    def _show_status(self, response: httpx.Response, milliseconds: float) -> None:
        colour = "green" if response.is_success else "yellow"
        status = click.style(f"{response.status_code} {response.reason_phrase}", fg=colour, bold=True)
        click.echo(f"   {status} in {milliseconds:,.1f} ms")


def show_result(rank: int, result: Mapping[str, Any]) -> None:
    """One search result: score, kind, where it was found, its first words, its best fact, its files."""
    score = "   -" if result["score"] is None else f"{result['score']:.2f}"
    overridden = click.style(" overridden", fg="magenta") if result["overridden"] else ""
    kind = click.style(f"{result['memory_type']} · {result['source_scope']}", fg="blue")
    click.echo(f"   {rank}. {click.style(score, bold=True)} {kind}{overridden}")
    click.echo(f"      {clipped(_one_line(result['text']), _LINE)}")
    for fact in result["raw"].get("atomic_facts", [])[:1]:
        click.echo(click.style(f"      “{clipped(_one_line(fact['content']), _LINE - 2)}”", fg="green"))
    for attachment in result["attachments"]:
        name = click.style(f"{attachment['type']} {attachment['name']}", fg="magenta")
        click.echo(f"      ↳ {name} {attachment['internal_uri']}")


def readable(response: httpx.Response) -> str:
    """A reply in few lines: JSON trimmed, other bodies by type and size."""
    if response.headers.get("content-type", "").startswith("application/json"):
        return compact(response.json())
    if not response.content:
        return "(empty)"
    return f"({response.headers.get('content-type', 'bytes')}, {len(response.content):,} bytes)"


def compact(value: Any) -> str:
    """JSON with long texts and lists cut, folded into lines."""
    return _folded(msgspec.json.encode(trimmed(value)).decode())


def trimmed(value: Any) -> Any:
    """The value with long texts cut, long lists shortened and keys hidden."""
    if isinstance(value, str):
        return clipped(value, _LONGEST_TEXT)
    if isinstance(value, list):
        rest = [f"… {len(value) - _MOST_ITEMS} more"] if len(value) > _MOST_ITEMS else []
        return [trimmed(item) for item in value[:_MOST_ITEMS]] + rest
    if isinstance(value, dict):
        return {name: "…" if name in _SECRET_NAMES else trimmed(item) for name, item in value.items()}
    return value


def clipped(text: str, columns: int) -> str:
    """The text, cut to so many columns of a terminal; wide characters take two."""
    used = 0
    for position, character in enumerate(text):
        used += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used > columns:
            return text[:position] + "…"
    return text


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _folded(text: str) -> str:
    lines: list[str] = []
    while len(text) > _LINE:
        cut = text.rfind(",", 0, _LINE) + 1 or _LINE
        lines.append(text[:cut])
        text = text[cut:]
    return "\n".join([*lines, text])


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines())
