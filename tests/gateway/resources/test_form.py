"""Reading the body: who may upload, what the form may hold, and that a bad one leaves nothing."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest

from memory_gateway.gateway.resources.form import FRAME_BYTES
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.process import MAX_UPLOAD_BYTES, Process
from tests.fakes.upstream import RecordingUpstream

NOTES = b"The code of the stand-in host is 4471.\n"
FORM = {"Content-Type": "multipart/form-data; boundary=edge"}
TABLES = ("user_resources", "memory_attachments", "file_intents")


def field(name: str, value: str | bytes) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    return f'--edge\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value + b"\r\n"


def file(content: bytes = NOTES, name: str = "notes.txt", part: str = "file") -> bytes:
    head = f'--edge\r\nContent-Disposition: form-data; name="{part}"; filename="{name}"\r\n\r\n'
    return head.encode() + content + b"\r\n"


def body(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--edge--\r\n"


async def send(
    client: httpx.AsyncClient, content: bytes | AsyncIterator[bytes], headers: dict[str, str]
) -> httpx.Response:
    return await client.post("/resources", content=content, headers={**FORM, **headers})


class Watched:
    """A body whose file comes in pieces of 1000 bytes; ``pieces`` of them were asked for."""

    def __init__(self, before: bytes = b"", after: bytes = b"", most: int = 100) -> None:
        self.pieces = 0
        self._before = before
        self._after = after
        self._most = most

    async def content(self) -> AsyncIterator[bytes]:
        yield self._before + b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        while self.pieces < self._most:
            self.pieces += 1
            yield b"x" * 1000
        yield b"\r\n" + body(self._after)


def error(reply: httpx.Response) -> tuple[int, str, Any]:
    fault = reply.json()["error"]
    return reply.status_code, fault["code"], fault.get("details", {}).get("field")


@pytest.fixture
async def nothing_stays(
    process: Process, upstream: RecordingUpstream, storage_root: Path, database: SqliteDatabase
) -> AsyncIterator[None]:
    """Whatever the test sends must leave no file, no row and no word with the upstream."""
    yield
    for table in TABLES:
        assert await database.fetch(f"SELECT * FROM {table}") == []
    assert [path for path in storage_root.rglob("*") if path.is_file()] == []
    assert upstream.calls == []


async def test_credentials_may_stand_before_the_file(client: httpx.AsyncClient, ann: dict[str, str]) -> None:
    parts = field("user_id", "ann"), field("user_key", ann["X-User-Key"]), file()
    reply = await send(client, body(*parts), {})
    assert reply.status_code == 201
    assert reply.json()["resource"]["session_id"].startswith("resource:ann:")


async def test_other_fields_may_stand_behind_the_file(client: httpx.AsyncClient, ann: dict[str, str]) -> None:
    parts = file(), field("title", "季度"), field("app_id", "home"), field("user_id", "ann")
    resource = (await send(client, body(*parts), ann)).json()["resource"]
    assert (resource["title"], resource["app_id"]) == ("季度", "home")


@pytest.mark.usefixtures("nothing_stays")
async def test_credentials_behind_the_file_are_401_and_the_file_is_unread(
    client: httpx.AsyncClient, ann: dict[str, str]
) -> None:
    watched = Watched(after=field("user_id", "ann") + field("user_key", ann["X-User-Key"]))
    assert error(await send(client, watched.content(), {})) == (401, "unauthorized", None)
    assert watched.pieces <= 1


@pytest.mark.usefixtures("nothing_stays")
@pytest.mark.parametrize("name", ["nonsense", "app_id"])
async def test_a_bad_field_before_the_file_is_told_with_the_file_unread(
    name: str, client: httpx.AsyncClient, ann: dict[str, str]
) -> None:
    watched = Watched(before=field(name, "../x"))
    assert error(await send(client, watched.content(), ann)) == (422, "invalid_input", name)
    assert watched.pieces <= 1


@pytest.mark.usefixtures("nothing_stays")
@pytest.mark.parametrize(
    "parts",
    [
        (),
        (field("user_id", "ann"),),
        (field("user_id", "ann"), field("user_key", "wrong")),
        (field("user_id", "nobody"), field("user_key", "wrong")),
        (field("user_id", b"\xff"), field("user_key", "wrong")),
        (field("nonsense", "x"),),
    ],
)
async def test_without_good_credentials_it_is_401_whatever_else_is_wrong(
    parts: Iterable[bytes], client: httpx.AsyncClient, ann: dict[str, str]
) -> None:
    replies = [await send(client, body(*parts, file()), {}), await send(client, body(*parts), {})]
    replies.append(await client.post("/resources", content=b"{}", headers={"Content-Type": "application/json"}))
    replies.append(await client.post("/resources"))
    assert {error(reply) for reply in replies} == {(401, "unauthorized", None)}


@pytest.mark.usefixtures("nothing_stays")
@pytest.mark.parametrize("parts", [(field("user_id", "anna"), file()), (file(), field("user_id", "anna"))])
async def test_good_headers_with_another_user_in_the_form_are_403(
    parts: Iterable[bytes], client: httpx.AsyncClient, ann: dict[str, str], anna: dict[str, str]
) -> None:
    assert error(await send(client, body(*parts), ann)) == (403, "forbidden", None)


@pytest.mark.usefixtures("nothing_stays")
@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ((), "file"),
        ((field("file", "text"),), "file"),
        ((file(name=""),), "file"),
        ((file(b""),), "file"),
        ((file(name="a\0b.txt"),), "file"),
        ((file(), file(b"second")), "file"),
        ((file(), field("file", "text")), "file"),
        ((file(part="upload"),), "upload"),
        ((field("nonsense", "x"), file()), "nonsense"),
        ((file(), field("nonsense", "x")), "nonsense"),
        ((field("app_id", "a"), field("app_id", "a"), file()), "app_id"),
        ((field("app_id", "../x"), file()), "app_id"),
        ((field("app_id", ""), file()), "app_id"),
        ((file(), field("project_id", "x" * 129)), "project_id"),
        ((field("title", "a\0b"), file()), "title"),
        ((field("title", b"\xff\xfe"), file()), "title"),
        ((field("title", "x" * 501), file()), "title"),
        ((field("title", "x" * 9000), file()), "title"),
        ((field("title", "\ud800".encode("utf-8", "surrogatepass")), file()), "title"),
    ],
)
async def test_a_bad_form_is_422_and_names_the_field(
    parts: Iterable[bytes], name: str, client: httpx.AsyncClient, ann: dict[str, str]
) -> None:
    assert error(await send(client, body(*parts), ann)) == (422, "invalid_input", name)


@pytest.mark.usefixtures("nothing_stays")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no form at all",
        file(),
        body(file())[:-10],
        b"--edge\r\nContent-Disposition: form-data\r\n: x\r\n\r\n",
        b"--edge\r\nContent-Type: text/plain\r\n\r\nx\r\n--edge--",
        b"--edge\r\n" + b"x" * 5000,
        body(*[field(f"f{number}", "x") for number in range(40)]),
    ],
)
async def test_a_malformed_form_is_400(content: bytes, client: httpx.AsyncClient, ann: dict[str, str]) -> None:
    assert error(await send(client, content, ann)) == (400, "malformed_request", None)


@pytest.mark.usefixtures("nothing_stays")
@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("multipart/form-data", 400),
        ("multipart/form-data; boundary=", 400),
        ("multipart/mixed; boundary=edge", 415),
        ("application/json", 415),
        ("application/x-www-form-urlencoded", 415),
    ],
)
async def test_another_content_type_is_refused(
    content_type: str, status: int, client: httpx.AsyncClient, ann: dict[str, str]
) -> None:
    reply = await client.post("/resources", content=body(file()), headers={**ann, "Content-Type": content_type})
    assert reply.status_code == status


async def test_a_file_of_exactly_the_limit_is_taken(client: httpx.AsyncClient, ann: dict[str, str]) -> None:
    reply = await send(client, body(file(b"x" * MAX_UPLOAD_BYTES)), ann)
    assert (reply.status_code, reply.json()["resource"]["size"]) == (201, MAX_UPLOAD_BYTES)


@pytest.mark.usefixtures("nothing_stays")
async def test_a_file_of_one_byte_more_is_413(client: httpx.AsyncClient, ann: dict[str, str]) -> None:
    reply = await send(client, body(file(b"x" * (MAX_UPLOAD_BYTES + 1))), ann)
    assert error(reply) == (413, "payload_too_large", None)


@pytest.mark.usefixtures("nothing_stays")
async def test_a_file_above_the_limit_is_413_before_it_is_read_whole(
    client: httpx.AsyncClient, ann: dict[str, str]
) -> None:
    watched = Watched(most=10 * MAX_UPLOAD_BYTES // 1000)
    assert error(await send(client, watched.content(), ann)) == (413, "payload_too_large", None)
    assert watched.pieces <= MAX_UPLOAD_BYTES // 1000 + 2


@pytest.mark.usefixtures("nothing_stays")
async def test_a_far_too_long_body_is_413_and_unread(client: httpx.AsyncClient, ann: dict[str, str]) -> None:
    taken = 0

    async def content() -> AsyncIterator[bytes]:
        nonlocal taken
        taken += 1
        yield b"--edge"

    length = {"Content-Length": str(MAX_UPLOAD_BYTES + FRAME_BYTES + 1)}
    assert error(await send(client, content(), {**ann, **length})) == (413, "payload_too_large", None)
    assert taken == 0


@pytest.mark.usefixtures("nothing_stays")
async def test_a_body_that_is_long_without_a_file_is_413(client: httpx.AsyncClient, ann: dict[str, str]) -> None:
    async def content() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 50_000

    assert error(await send(client, content(), ann)) == (413, "payload_too_large", None)


@pytest.mark.usefixtures("nothing_stays")
@pytest.mark.parametrize("sent_bytes", [0, 100, 200_000])
async def test_a_client_that_goes_away_leaves_nothing(sent_bytes: int, process: Process, ann: dict[str, str]) -> None:
    events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    start = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + b"x" * sent_bytes
    events.put_nowait({"type": "http.request", "body": start, "more_body": True})
    events.put_nowait({"type": "http.disconnect"})
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/resources",
        "raw_path": b"/resources",
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in {**FORM, **ann}.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "state": {},
        "extensions": {},
    }

    async def ignore(_message: Any) -> None:
        return None

    await process.app()(scope, events.get, ignore)  # type: ignore[arg-type]


@pytest.mark.usefixtures("nothing_stays")
async def test_a_cancelled_upload_leaves_nothing(client: httpx.AsyncClient, ann: dict[str, str]) -> None:
    started = asyncio.Event()

    async def content() -> AsyncIterator[bytes]:
        yield b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nxxx'
        started.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(send(client, content(), ann))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("../../etc/x", "x"),
        ("..\\x", "x"),
        ("x" * 300 + ".pdf", "x" * 251 + ".pdf"),
        ("re\u0301sume\u0301.pdf", "résumé.pdf"),
        ("CON", "_CON"),
        ("party 🎉.png", "party 🎉.png"),
        ("a\tb.txt", "a_b.txt"),
    ],
)
async def test_a_file_name_is_cleaned_for_the_disk_and_kept_as_a_label(
    name: str, stored: str, client: httpx.AsyncClient, ann: dict[str, str], storage_root: Path
) -> None:
    resource = (await send(client, body(file(name=name)), ann)).json()["resource"]
    assert resource["name"] == name
    assert [path for path in storage_root.rglob("*") if path.is_file()] == [
        storage_root / "ann" / "resources" / resource["id"] / stored
    ]


async def test_the_api_document_describes_the_form(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    operation = document["paths"]["/resources"]["post"]
    form = operation["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert sorted(form["properties"]) == ["app_id", "file", "project_id", "title", "user_id", "user_key"]
    assert form["required"] == ["file"]
    assert {"200", "201", "400", "401", "403", "413", "415", "422", "502", "504"} <= set(operation["responses"])
