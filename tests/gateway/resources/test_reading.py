"""List, detail and bytes."""

import base64
import unicodedata
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.gateway.resources.content import ByteRange, Unsatisfiable, byte_range, disposition
from memory_gateway.gateway.resources.cursors import START, cursor_of, position
from memory_gateway.kit.errors import InvalidInput
from tests.fakes.front_door import FrontDoor
from tests.fakes.process import Process

DIGITS = b"0123456789" * 50


async def upload(
    client: httpx.AsyncClient, headers: dict[str, str], content: bytes, name: str = "notes.txt", **fields: str
) -> dict[str, Any]:
    reply = await client.post("/resources", headers=headers, data=fields, files={"file": (name, content)})
    assert reply.status_code == 201
    resource: dict[str, Any] = reply.json()["resource"]
    return resource


async def listed(client: httpx.AsyncClient, headers: dict[str, str], **params: Any) -> tuple[list[str], str | None]:
    reply = await client.get("/resources", headers=headers, params=params)
    assert reply.status_code == 200
    return [resource["name"] for resource in reply.json()["resources"]], reply.json()["next_cursor"]


async def test_the_list_is_the_users_live_resources_newest_first(
    client: httpx.AsyncClient, ann: dict[str, str], anna: dict[str, str], front: FrontDoor
) -> None:
    assert await listed(client, ann) == ([], None)
    for name in ("first", "second", "third"):
        front.clock.forward(seconds=1)
        resource = await upload(client, ann, name.encode(), name, app_id=name)
    await upload(client, anna, b"hers", "hers")
    await client.delete(f"/resources/{resource['id']}", headers=ann)
    assert await listed(client, ann) == (["second", "first"], None)


async def test_an_entry_of_the_list_is_the_whole_resource(client: httpx.AsyncClient, ann: dict[str, str]) -> None:
    resource = await upload(client, ann, DIGITS, title="Digits")
    reply = await client.get("/resources", headers=ann)
    assert reply.json() == {"resources": [resource], "next_cursor": None}


async def test_pages_do_not_shift_when_something_new_comes(
    client: httpx.AsyncClient, ann: dict[str, str], front: FrontDoor
) -> None:
    for number in range(7):
        front.clock.forward(seconds=number % 2)  # some share their time
        await upload(client, ann, bytes([number + 65]), str(number))
    first, cursor = await listed(client, ann, limit=3)
    await upload(client, ann, b"new", "new")
    second, cursor = await listed(client, ann, limit=3, cursor=cursor)
    third, end = await listed(client, ann, limit=3, cursor=cursor)
    assert (first, second, third, end) == (["6", "5", "4"], ["3", "2", "1"], ["0"], None)


async def test_a_full_last_page_has_no_next(client: httpx.AsyncClient, ann: dict[str, str]) -> None:
    for number in range(2):
        await upload(client, ann, bytes([number + 65]), str(number))
    assert await listed(client, ann, limit=2) == (["1", "0"], None)


async def test_the_list_may_be_of_one_app_or_project(client: httpx.AsyncClient, ann: dict[str, str]) -> None:
    await upload(client, ann, b"x", "a", app_id="home")
    await upload(client, ann, b"x", "b", app_id="home", project_id="p")
    await upload(client, ann, b"x", "c", project_id="p")
    assert await listed(client, ann, app_id="home") == (["b", "a"], None)
    assert await listed(client, ann, project_id="p") == (["c", "b"], None)
    assert await listed(client, ann, app_id="home", project_id="p") == (["b"], None)
    assert await listed(client, ann, app_id="hom%") == ([], None)
    names, cursor = await listed(client, ann, app_id="home", limit=1)
    assert names == ["b"]
    assert await listed(client, ann, app_id="home", cursor=cursor) == (["a"], None)


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 201}, "limit"),
        ({"limit": "x"}, "limit"),
        ({"cursor": ""}, "cursor"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": "x" * 201}, "cursor"),
        ({"cursor": "季度"}, "cursor"),
        ({"cursor": base64.urlsafe_b64encode(b"2026-05-28T20:26:40.000Z ").decode()}, "cursor"),
        ({"cursor": base64.urlsafe_b64encode(b"yesterday r1").decode()}, "cursor"),
        ({"page": 2}, "page"),
    ],
)
async def test_a_bad_list_is_422_and_names_the_field(
    params: dict[str, Any], field: str, client: httpx.AsyncClient, ann: dict[str, str]
) -> None:
    reply = await client.get("/resources", headers=ann, params=params)
    assert (reply.status_code, reply.json()["error"]["details"]["field"]) == (422, field)


@given(st.text(max_size=60))
def test_any_text_is_a_position_or_a_422(cursor: str) -> None:
    try:
        found = position(cursor)
    except InvalidInput as fault:
        named = fault.field
    else:
        named = "cursor" if found != START else ""
    assert named == "cursor"


async def test_the_detail_is_the_resource(client: httpx.AsyncClient, ann: dict[str, str], process: Process) -> None:
    resource = await upload(client, ann, DIGITS)
    assert (await client.get(f"/resources/{resource['id']}", headers=ann)).json() == resource
    found = await process.resources.get("ann", resource["id"])
    assert position(cursor_of(found)) == (found.created_at, found.id)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("GET", "/content"), ("DELETE", ""), ("POST", "/restore")],
)
async def test_what_is_unknown_or_someone_elses_looks_the_same(
    method: str, path: str, client: httpx.AsyncClient, ann: dict[str, str], anna: dict[str, str]
) -> None:
    hers = await upload(client, anna, DIGITS)
    replies = [
        await client.request(method, f"/resources/{name}{path}", headers=ann) for name in (hers["id"], "unknown", "%25")
    ]
    assert {reply.status_code for reply in replies} == {404}
    assert len({str(reply.json()["error"]) for reply in replies}) == 1
    assert (await client.get(f"/resources/{hers['id']}", headers=anna)).json() == hers


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/x"), ("GET", "/x/content"), ("DELETE", "/x"), ("POST", "/x/restore"), ("GET", "")],
)
async def test_without_credentials_every_call_is_401(method: str, path: str, client: httpx.AsyncClient) -> None:
    assert (await client.request(method, f"/resources{path}")).status_code == 401


async def test_the_bytes_come_back_whole_and_never_run_in_a_browser(
    client: httpx.AsyncClient, ann: dict[str, str]
) -> None:
    page = b"<!doctype html><html><script>alert(1)</script></html>"
    resource = await upload(client, ann, page, 'Seite "1" 季度.html')
    reply = await client.get(f"/resources/{resource['id']}/content", headers=ann)
    assert (reply.status_code, reply.content) == (200, page)
    assert reply.headers["content-type"] == "text/html"
    assert reply.headers["content-length"] == str(len(page))
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["accept-ranges"] == "bytes"
    assert reply.headers["etag"] == f'"{resource["sha256"]}"'
    shown = "attachment; filename=\"Seite _1_ __.html\"; filename*=UTF-8''Seite%20%221%22%20%E5%AD%A3%E5%BA%A6.html"
    assert reply.headers["content-disposition"] == shown


async def test_a_big_file_comes_back_whole(client: httpx.AsyncClient, ann: dict[str, str]) -> None:
    content = bytes(range(256)) * 1100
    resource = await upload(client, ann, content, "bytes.bin")
    reply = await client.get(f"/resources/{resource['id']}/content", headers=ann)
    assert reply.content == content


@pytest.mark.parametrize(
    ("asked", "content", "told"),
    [
        ("bytes=0-3", b"0123", "bytes 0-3/500"),
        ("bytes=495-", b"56789", "bytes 495-499/500"),
        ("bytes=-2", b"89", "bytes 498-499/500"),
        ("bytes=498-9999", b"89", "bytes 498-499/500"),
        ("bytes=-9999", DIGITS, "bytes 0-499/500"),
        ("Bytes=7-7", b"7", "bytes 7-7/500"),
    ],
)
async def test_a_range_is_206(
    asked: str, content: bytes, told: str, client: httpx.AsyncClient, ann: dict[str, str]
) -> None:
    resource = await upload(client, ann, DIGITS)
    reply = await client.get(f"/resources/{resource['id']}/content", headers={**ann, "Range": asked})
    assert (reply.status_code, reply.content, reply.headers["content-range"]) == (206, content, told)
    assert reply.headers["content-length"] == str(len(content))


@pytest.mark.parametrize("asked", ["bytes=500-", "bytes=9999-10000", "bytes=-0"])
async def test_a_range_beyond_the_end_is_416(asked: str, client: httpx.AsyncClient, ann: dict[str, str]) -> None:
    resource = await upload(client, ann, DIGITS)
    reply = await client.get(f"/resources/{resource['id']}/content", headers={**ann, "Range": asked})
    assert (reply.status_code, reply.headers["content-range"]) == (416, "bytes */500")
    assert reply.json()["error"]["code"] == "range_not_satisfiable"


@pytest.mark.parametrize("asked", ["bytes=0-1,3-4", "bytes=5-3", "bytes=x-", "items=0-1", "bytes=" + "9" * 5000 + "-"])
async def test_a_range_that_is_not_understood_is_left_alone(
    asked: str, client: httpx.AsyncClient, ann: dict[str, str]
) -> None:
    resource = await upload(client, ann, DIGITS)
    reply = await client.get(f"/resources/{resource['id']}/content", headers={**ann, "Range": asked})
    assert (reply.status_code, reply.content) == (200, DIGITS)


@pytest.mark.parametrize(("changed", "status"), [(False, 206), (True, 200)])
async def test_a_range_of_another_version_is_the_whole(
    changed: bool, status: int, client: httpx.AsyncClient, ann: dict[str, str]
) -> None:
    resource = await upload(client, ann, DIGITS)
    tag = '"other"' if changed else f'"{resource["sha256"]}"'
    headers = {**ann, "Range": "bytes=0-0", "If-Range": tag}
    assert (await client.get(f"/resources/{resource['id']}/content", headers=headers)).status_code == status


async def test_a_file_that_is_missing_on_the_disk_is_said(
    client: httpx.AsyncClient, ann: dict[str, str], front: FrontDoor
) -> None:
    resource = await upload(client, ann, DIGITS)
    await front.blobs.remove(f"ann/resources/{resource['id']}")
    reply = await client.get(f"/resources/{resource['id']}/content", headers=ann)
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "storage_unavailable")
    assert str(front.storage_root) not in reply.text


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 50))
def test_a_range_never_leaves_the_file(first: int, last: int, size: int) -> None:
    for header in (f"bytes={first}-{last}", f"bytes={first}-", f"bytes=-{last}"):
        try:
            part = byte_range(header, size) or ByteRange(0, size - 1)
        except Unsatisfiable:
            assert first >= size or last == 0
        else:
            assert 0 <= part.first <= part.last < size


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=100))
def test_any_name_makes_a_header_that_tells_it_whole(name: str) -> None:
    header = disposition(name)
    assert header.isascii()
    assert header.isprintable()
    assert unquote(header.partition("filename*=UTF-8''")[2]) == name
    plain = header.partition('filename="')[2].partition('"')[0]
    assert len(plain) == len(name)
    assert not any(unicodedata.category(one) == "Cc" or one == "\\" for one in plain)
