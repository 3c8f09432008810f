from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
import pytest

from memory_gateway import serve
from memory_gateway.memory_service.access import is_loopback
from memory_gateway.settings import Settings, SettingsError
from tests.fakes.memory_service import ServiceHouse

TOKEN = "a-long-service-token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
FOREIGN_HOSTS = [
    "evil.example",
    "evil.example:8094",
    "127.0.0.1.evil.example",
    "localhost.evil.example:8094",
    "evil.example@127.0.0.1",
    "127.0.0.1@evil.example",
    "0.0.0.0:8094",
    "192.168.1.5",
    "[::2]",
    "::1",
    "[::1",
    "127.0.0.1:80:80",
    "127.0.0.1:x",
    "",
]
OWN_HOSTS = ["127.0.0.1", "127.0.0.1:8094", "localhost:1", "LOCALHOST", "[::1]:8094", "[::1]"]
CHANGING_CALLS = [
    ("POST", "/memories", {"user_id": "ann", "content": "planted by a page"}),
    ("PUT", "/memories/{memory}", {"content": "changed by a page"}),
    ("DELETE", "/memories/{memory}", None),
    ("GET", "/memories/{memory}", None),  # counts an access
    ("POST", "/memories/consolidate", {"user_id": "ann"}),
    ("POST", "/memories/decay", {"user_id": "ann"}),
    ("POST", "/thinking", {"content": "planted by a page"}),
]
READING_CALLS = [
    ("GET", "/memories?user_id=ann", None),
    ("POST", "/memories/query", {"user_id": "ann"}),
    ("GET", "/memories/categories?user_id=ann", None),
    ("GET", "/thinking", None),
    ("GET", "/thinking/{thought}", None),
    ("GET", "/thinking/stats", None),
]
Call = tuple[str, str, dict[str, str] | None]
Kept = dict[str, str]


@pytest.fixture
async def kept(client: httpx.AsyncClient, house: ServiceHouse) -> AsyncIterator[Kept]:
    """Rows that a consolidation and a decay would change, by their names in the paths of the calls. All must stay."""
    memory = await client.post("/api/v1/memories", json={"user_id": "ann", "content": "门禁码是4471", "importance": 1})
    other = await client.post("/api/v1/memories", json={"user_id": "ann", "content": "完全不同的一句话"})
    await client.put(f"/api/v1/memories/{other.json()['memory']['id']}", json={"content": "门禁码是4477"})
    thought = await client.post("/api/v1/thinking", json={"content": "想一想"})
    house.clock.forward(seconds=31 * 86_400)
    before = await house.rows()
    assert [row[0] for row in before].count("memory_entries") == 2
    yield {"memory": memory.json()["memory"]["id"], "thought": thought.json()["thinking"]["id"]}
    await house.entries.close()  # what was counted is written
    assert await house.rows() == before


async def send(client: httpx.AsyncClient, call: Call, kept: Kept, **headers: str) -> httpx.Response:
    method, path, body = call
    raw_headers = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return await client.request(method, f"/api/v1{path.format(**kept)}", headers=raw_headers, json=body)


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
async def test_a_foreign_host_is_refused_and_changes_nothing(client: httpx.AsyncClient, kept: Kept, host: str) -> None:
    for call in [*CHANGING_CALLS, *READING_CALLS]:
        reply = await send(client, call, kept, Host=host)
        assert (reply.status_code, reply.json()) == (403, {"error": "Host not allowed"})


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://evil.example:8094",
        "http://127.0.0.1.evil.example",
        "null",
        "",
        "file://",
        "http://",
        "chrome-extension://127.0.0.1",
        "127.0.0.1",
    ],
)
async def test_a_foreign_origin_is_refused_and_changes_nothing(
    client: httpx.AsyncClient, kept: Kept, origin: str
) -> None:
    for call in [*CHANGING_CALLS, *READING_CALLS]:
        reply = await send(client, call, kept, Origin=origin)
        assert (reply.status_code, reply.json()) == (403, {"error": "Origin not allowed"})


async def test_what_a_foreign_page_embeds_is_refused_though_it_names_no_origin(
    client: httpx.AsyncClient, kept: Kept
) -> None:
    reply = await send(client, ("GET", "/memories/{memory}", None), kept, **{"Sec-Fetch-Site": "cross-site"})
    assert (reply.status_code, reply.json()) == (403, {"error": "Origin not allowed"})


async def test_of_two_hosts_or_origins_each_must_be_our_own(client: httpx.AsyncClient) -> None:
    for name, values in (
        ("Host", ("127.0.0.1", "evil.example")),
        ("Origin", ("http://127.0.0.1", "http://evil.example")),
    ):
        reply = await client.get("/api/v1/thinking", headers=[(name, value) for value in values])
        assert reply.status_code == 403


async def test_a_request_that_names_no_host_is_refused(client: httpx.AsyncClient) -> None:
    request = client.build_request("GET", "/api/v1/thinking")
    del request.headers["Host"]
    assert (await client.send(request)).status_code == 403


@pytest.mark.parametrize("host", OWN_HOSTS)
async def test_every_name_of_this_machine_is_served_with_any_port(client: httpx.AsyncClient, host: str) -> None:
    for headers in ({"Host": host}, {"Host": host, "Origin": f"http://{host}"}, {"Origin": f"https://{host}"}):
        assert (await client.get("/api/v1/thinking", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "", None],
)
@pytest.mark.parametrize("call", [call for call in [*CHANGING_CALLS, *READING_CALLS] if call[2]])
async def test_a_body_that_does_not_say_it_is_json_is_refused_and_changes_nothing(
    client: httpx.AsyncClient, kept: Kept, call: Call, content_type: str | None
) -> None:
    method, path, body = call
    request = client.build_request(method, f"/api/v1{path.format(**kept)}", json=body)
    del request.headers["Content-Type"]
    if content_type is not None:
        request.headers["Content-Type"] = content_type
    reply = await client.send(request)
    error = "请求格式错误: Content-Type must be application/json"
    assert (reply.status_code, reply.json()) == (415, {"error": error})


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON", "application/json"])
async def test_json_by_any_spelling_is_json(client: httpx.AsyncClient, content_type: str) -> None:
    headers = {"Content-Type": content_type}
    assert (await client.post("/api/v1/thinking", content=b'{"content":"t"}', headers=headers)).status_code == 201


@pytest.mark.parametrize("token", [None, "", "  "])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.5", "fe80::1", "memory.example"])
async def test_beyond_loopback_there_is_no_start_without_a_token(
    house: ServiceHouse, host: str, token: str | None
) -> None:
    with pytest.raises(SettingsError, match="set service_token"):
        house.app(host=host, service_token=token)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_server_refuses_it_before_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    def listen(host: str, port: int) -> None:
        raise AssertionError(f"listened on {host}:{port}")

    monkeypatch.setattr(serve, "listen", listen)
    settings = Settings(data_dir=tmp_path, host="192.0.2.1", workers=workers)
    with pytest.raises(SettingsError, match="set service_token"):
        serve.serve(settings)
    with pytest.raises(AssertionError, match="listened on"):
        serve.serve(settings, ["gateway"])


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
async def test_where_there_is_a_token_every_call_but_health_needs_it(
    house: ServiceHouse, kept: Kept, host: str
) -> None:
    async with house.client(host=host, service_token=TOKEN) as client:
        for authorization in ("", TOKEN, f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}x", "Bearer \xe9"):
            for call in [*CHANGING_CALLS, *READING_CALLS]:
                reply = await send(client, call, kept, Authorization=authorization)
                assert (reply.status_code, reply.json()) == (401, {"error": "service token missing or wrong"})
                assert reply.headers["www-authenticate"] == "Bearer"
        assert (await client.get("/api/v1/health")).status_code == 200
        for authorization in (f"Bearer {TOKEN}", f"bearer  {TOKEN}"):
            reply = await client.get("/api/v1/thinking", headers={"Authorization": authorization})
            assert reply.status_code == 200


HOSTS_OF_BINDS: Sequence[tuple[str, str, int]] = [
    ("192.168.1.5", "192.168.1.5:8094", 200),
    ("192.168.1.5", "127.0.0.1:8094", 200),
    ("192.168.1.5", "evil.example", 403),
    ("fe80::1", "[fe80::1]:8094", 200),
    ("fe80::1", "[fe80::2]:8094", 403),
    ("Memory.Example", "memory.example", 200),
    ("127.0.0.2", "127.0.0.2:8094", 200),
    ("0.0.0.0", "any.example", 200),
    ("::", "any.example:1", 200),
]


@pytest.mark.parametrize(("bound_to", "host", "status"), HOSTS_OF_BINDS)
async def test_a_service_knows_itself_by_the_name_it_is_bound_to(
    house: ServiceHouse, bound_to: str, host: str, status: int
) -> None:
    async with house.client(host=bound_to, service_token=TOKEN) as client:
        headers = {**BEARER, "Host": host}
        assert (await client.get("/api/v1/thinking", headers=headers)).status_code == status
        own_page = {**headers, "Origin": f"http://{host}"}
        assert (await client.get("/api/v1/thinking", headers=own_page)).status_code == status
        foreign_page = {**headers, "Origin": "http://other.example"}
        assert (await client.get("/api/v1/thinking", headers=foreign_page)).status_code == 403


async def test_health_tells_a_foreign_page_nothing(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/v1/health", headers={"Host": "evil.example"})).status_code == 403
