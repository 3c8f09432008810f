"""Health, metrics, and the API pages."""

import re
from pathlib import Path

import httpx
import pytest

from memory_gateway.gateway.health import DiskState, Health, free_bytes_of
from memory_gateway.kit.errors import StorageUnavailable, UpstreamUnreachable
from memory_gateway.storage.port import DatabaseFault
from memory_gateway.storage.sqlite import SqliteDatabase
from memory_gateway.upstream.port import UpstreamHealth
from tests.fakes.front_door import FrontDoor
from tests.gateway.conftest import client_of


async def test_health_tells_the_upstreams_state_and_capabilities(client: httpx.AsyncClient, front: FrontDoor) -> None:
    capabilities = {"keyword": True, "vector": False, "llm": False}
    front.upstream.reply("health", UpstreamHealth("embedded", True, capabilities, backlog=12))
    reply = await client.get("/health")
    assert reply.status_code == 200
    assert reply.json() == {
        "status": "ok",
        "upstream": {"name": "embedded", "healthy": True, "backlog": 12, "details": {}},
        "database": {"store": front.database.kind, "healthy": True},
        "disk": {"healthy": True, "reason": None},
        "files": {"store": "folder", "healthy": True, "reason": None},
        "capabilities": capabilities,
    }


async def test_a_sick_upstream_is_200_and_degraded(client: httpx.AsyncClient, front: FrontDoor) -> None:
    front.upstream.reply("health", UpstreamHealth("embedded", False, {"keyword": True}))
    sick = await client.get("/health")
    front.upstream.fail("health", UpstreamUnreachable("no route to 10.20.7.1"))
    gone = await client.get("/health")
    front.upstream.fail("health", DatabaseFault("malformed schema"))
    broken = await client.get("/health")
    assert [(reply.status_code, reply.json()["status"]) for reply in (sick, gone, broken)] == [(200, "degraded")] * 3
    assert gone.json()["capabilities"] == {}
    assert "10.20.7.1" not in gone.text


@pytest.mark.parametrize("fault", [StorageUnavailable("the disk is full"), DatabaseFault("malformed schema")])
async def test_a_database_that_cannot_serve_is_degraded(
    front: FrontDoor, database: SqliteDatabase, fault: Exception
) -> None:
    async def fetch_one(*_: object) -> None:
        raise fault

    database.fetch_one = fetch_one  # type: ignore[method-assign, assignment]
    async with client_of(front.app()) as client:
        reply = await client.get("/health")
    assert (reply.status_code, reply.json()["status"]) == (200, "degraded")
    assert reply.json()["database"] == {"store": database.kind, "healthy": False}


async def test_a_disk_that_is_nearly_full_is_degraded_and_says_so(client: httpx.AsyncClient, front: FrontDoor) -> None:
    front.free_bytes = (256 << 20) - 1
    full = await client.get("/health")
    assert (full.status_code, full.json()["status"]) == (200, "degraded")
    assert full.json()["disk"] == {"healthy": False, "reason": "less than 256 MiB are free for the data folder"}
    front.free_bytes += 1
    assert (await client.get("/health")).json()["status"] == "ok"


async def test_a_disk_that_cannot_be_asked_is_degraded(database: SqliteDatabase, front: FrontDoor) -> None:
    def free_bytes() -> int:
        raise OSError("Input/output error")

    report = await Health(database, front.upstream, free_bytes, front.blobs).report()
    assert (report.status, report.disk) == ("degraded", DiskState(False, "the data folder does not answer"))


def test_free_bytes_are_those_of_the_folders_disk(tmp_path: Path) -> None:
    assert free_bytes_of(tmp_path)() > 0
    with pytest.raises(OSError, match="No such file"):
        free_bytes_of(tmp_path / "nowhere")()


async def test_requests_are_counted_by_method_route_and_the_status_that_was_sent(
    client: httpx.AsyncClient, front: FrontDoor
) -> None:
    ann = await front.headers_of("ann")
    await client.get("/notes?limit=3", headers=ann)
    await client.get("/notes")
    await client.put("/notes/1", json={"text": "a"}, headers=ann)
    await client.put("/notes/2", json={"text": "a"}, headers=ann)
    await client.get("/faults/rate", headers=ann)
    await client.get("/faults/bug", headers=ann)
    await client.get("/nowhere/1")
    await client.get("/nowhere/2")
    await client.delete("/notes/1")
    await client.request("BREW", "/notes")
    page = (await client.get("/metrics")).text
    assert _counts(page) == {
        'method="GET",route="/notes",status="200"': 1.0,
        'method="GET",route="/notes",status="401"': 1.0,
        'method="PUT",route="/notes/{note_id}",status="200"': 2.0,
        'method="GET",route="/faults/{name}",status="429"': 1.0,
        'method="GET",route="/faults/{name}",status="500"': 1.0,
        'method="GET",route="unmatched",status="404"': 2.0,
        'method="DELETE",route="/notes/{note_id}",status="405"': 1.0,
        'method="OTHER",route="/notes",status="405"': 1.0,
    }
    assert 'memory_gateway_http_request_seconds_count{method="PUT",route="/notes/{note_id}"} 2.0' in page


def _counts(page: str) -> dict[str, float]:
    lines = re.findall(r"^memory_gateway_http_requests_total\{(.+)\} (.+)$", page, re.MULTILINE)
    return {labels: float(value) for labels, value in lines}


async def test_rooms_can_add_gauges_that_are_read_with_the_page(client: httpx.AsyncClient, front: FrontDoor) -> None:
    backlog: list[float | None] = [7.0]

    async def read() -> float | None:
        if backlog[0] == -1.0:
            raise UpstreamUnreachable("gone")
        return backlog[0]

    front.metrics.gauge("backlog_turns", "Turns without a vector yet.", read)
    assert "memory_gateway_backlog_turns 7.0" in (await client.get("/metrics")).text
    backlog[0] = None
    assert "memory_gateway_backlog_turns 7.0" in (await client.get("/metrics")).text
    backlog[0] = -1.0
    assert "memory_gateway_backlog_turns 7.0" in (await client.get("/metrics")).text
    backlog[0] = 0.0
    assert "memory_gateway_backlog_turns 0.0" in (await client.get("/metrics")).text


async def test_the_api_pages_ask_nothing_of_the_network(client: httpx.AsyncClient) -> None:
    page = await client.get("/docs")
    assert page.status_code == 200
    outside = r"""(?:src|href)=['"](?![/]docs/assets/)"""
    head = page.text[: page.text.index("spec:")]
    assert re.findall(outside, head) == []
    assets = re.findall(r"""(?:src|href)=['"](/docs/assets/[^'"]+)""", head)
    assert len(assets) == 4
    for asset in assets:
        reply = await client.get(asset)
        assert (reply.status_code, len(reply.content) > 500) == (200, True), asset
    styles = (await client.get("/docs/assets/swagger-ui.css")).text
    assert re.findall(r"@import|url\(['\"]?https?:", styles) == []


async def test_the_document_tells_the_truth_about_bodies_errors_and_keys(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    schemas = document["components"]["schemas"]
    assert schemas["Note"]["additionalProperties"] is False
    assert schemas["Part"]["additionalProperties"] is False
    assert "additionalProperties" not in schemas["NewUser"]
    assert schemas["RotateRequest"]["properties"]["grace_seconds"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 604800,
        "default": 0,
    }
    assert document["paths"]["/users"]["post"]["security"] == [{"AdminKey": []}]
    assert document["paths"]["/users"]["post"]["requestBody"]["required"] is True
    assert document["paths"]["/users/{user_id}/keys"]["post"]["requestBody"]["required"] is False
    assert document["components"]["securitySchemes"]["UserKey"] == {
        "type": "apiKey",
        "name": "X-User-Key",
        "in": "header",
    }
    for status in ("400", "401", "403", "413", "415", "422", "429", "500", "503"):
        schema = document["paths"]["/notes"]["post"]["responses"][status]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/ErrorReply"}
