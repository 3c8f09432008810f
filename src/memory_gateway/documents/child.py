"""``python -m memory_gateway.documents.child``: reads documents that strangers sent, for a parent that may kill it.

One JSON line a document comes in on standard input, one `Reply` line and the text's bytes go out on standard output.
The process ends when standard input does, also in the middle of a document: it never outlives its parent. A stop of
the whole service is not for it, or the document would pass for damaged. Memory is limited, core dumps are off, the
priority is low. It ends by itself after many documents or once it has grown.
"""

import os
import queue
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import BinaryIO

import msgspec

from memory_gateway.documents import parsers

MOST_MEMORY = 4 << 30
_GROWN_BYTES = 700 << 20
_MOST_DOCUMENTS = 200


class Request(msgspec.Struct, frozen=True):
    """One document. After ``seconds`` the parent gives it up."""

    path: str
    mime_type: str
    limit_chars: int
    seconds: float


class Reply(msgspec.Struct, frozen=True):
    """``size`` bytes of UTF-8 follow. ``unread``: why not all was read. ``last``: the process ends now."""

    error: str | None
    unread: str | None
    truncated: bool
    size: int
    last: bool


def read_document(request: Request) -> tuple[parsers.Parsed, str | None]:
    """What was read and no error, or nothing and one sentence."""
    try:
        return parsers.parse(Path(request.path), request.mime_type, request.limit_chars, request.seconds), None
    except parsers.Unreadable as error:
        return parsers.NOTHING, str(error)
    except MemoryError:
        return parsers.NOTHING, "reading the document takes more memory than is allowed"
    except Exception as error:  # noqa: BLE001 - whatever a parser raises, the document is what could not be read
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return parsers.NOTHING, parsers.UNREADABLE


def _answer(request: Request, output: BinaryIO, *, last: bool) -> bool:
    """Write the reply; whether it was the last."""
    parsed, error = read_document(request)
    last = last or _has_grown()
    kept = parsed.text[: request.limit_chars].replace("\r\n", "\n").replace("\0", "")
    content = kept.encode("utf-8", "replace")
    truncated = len(parsed.text) > request.limit_chars
    reply = Reply(error=error, unread=parsed.unread, truncated=truncated, size=len(content), last=last)
    output.write(msgspec.json.encode(reply) + b"\n" + content)
    output.flush()
    return last


def _has_grown() -> bool:
    status = Path("/proc/self/status")
    if status.exists():  # Linux, where ru_maxrss begins with what the parent had
        lines = status.read_text("ascii").splitlines()
        return any(int(line.split()[1]) << 10 > _GROWN_BYTES for line in lines if line.startswith("VmHWM:"))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit > _GROWN_BYTES


def _requests() -> "queue.SimpleQueue[bytes]":
    """Lines of standard input; its end ends the process at once, whatever the parser is doing."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def watch() -> None:
        for line in sys.stdin.buffer:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    return lines


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere the limit is refused or means something else
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os.nice(10)


def _private_output() -> BinaryIO:
    """Standard output for replies alone: what a library prints goes to standard error."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return output


def main() -> None:
    """Answer documents until there is reason to stop."""
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, signal.SIG_IGN)
    output, lines = _private_output(), _requests()
    _limit()
    for answered in range(1, _MOST_DOCUMENTS + 1):
        request = msgspec.json.decode(lines.get(), type=Request)
        if _answer(request, output, last=answered == _MOST_DOCUMENTS):
            break
    os._exit(0)  # an ordinary exit would wait for the thread that reads standard input


if __name__ == "__main__":
    main()
