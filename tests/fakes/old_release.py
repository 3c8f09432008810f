"""A data folder of an earlier release, and what its people ask of it."""

import shutil
from pathlib import Path
from typing import Any

import httpx

from memory_gateway.demo.child import RunningServer
from memory_gateway.storage.choose import FILE_NAME
from memory_gateway.storage.sqlite import connect

RELEASES = Path(__file__).parent.parent / "storage" / "releases"
KEY_SECRET = "a-secret-of-the-old-release"
USER_KEYS = {
    "ann": "mgw_DtEHasIlaQ3BJUUju9BBDG0JCJRwonpPWraQiDdYweY4Tg9d3",
    "anna": "mgw_RSwUqrDwa3s4y7T8gtsPTWZFv6eYV1lSQbGKoeNYc2Q0iqrxy",
}
ERASED_KEY = "mgw_uahtohUulWExsdx5CU6KU029I61N9Uezelirgx17Ql61BISSC"
QUERIES = (
    "gunpowder tea",
    "zeppelins",
    "rowing boat Ottoline",
    "saffron cardamom",
    "violin Amati",
    "lighthouse keeper",
    "marmalade",
    "龙井茶园",
    "蜂蜜",
    "bees chapel",
    "Berlin Graz",
    "cellar key",
)


def unpack(release: str, data_dir: Path) -> Path:
    """The folder as that release left it; the path of its database."""
    shutil.copytree(RELEASES / release / "storage", data_dir / "storage")
    dump = (RELEASES / release / "memory-gateway.sql").read_text("utf-8")
    connection = connect(data_dir / FILE_NAME)
    connection.execute(dump.replace("{data_dir}", str(data_dir.resolve())))
    connection.close()
    return data_dir / FILE_NAME


def headers(user_id: str) -> dict[str, str]:
    return {"X-User-ID": user_id, "X-User-Key": USER_KEYS[user_id]}


def answers(server: RunningServer) -> dict[str, Any]:
    """What everybody is answered by both faces, by who and what."""
    with httpx.Client(trust_env=False, timeout=60) as http:
        return {**_of_gateway(server.url, http), **_of_service(f"{server.service_url}/api/v1", http)}


def _of_gateway(url: str, http: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for user_id in USER_KEYS:
        http.headers.update(headers(user_id))
        agents = {"query": "train", "agent_id": "bot", "app_id": "work", "method": "keyword"}
        for body in (*({"query": query, "method": "keyword"} for query in QUERIES), agents):
            found[f"{user_id} search {body}"] = _lasting(http.post(f"{url}/memories/search", json=body))
        resources = http.get(f"{url}/resources").json()["resources"]
        contents = [f"/resources/{resource['id']}/content" for resource in resources]
        histories = [f"/memories/ann_ep_20261130_0000000{number}/history" for number in range(10)]
        for path in ("/resources", *contents, *histories):
            found[f"{user_id} {path}"] = _lasting(http.get(url + path))
    return found


def _of_service(url: str, http: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for user_id in (*USER_KEYS, "many"):
        for path in ("memories?limit=1000&", "memories/categories?", "thinking?", "thinking/stats?"):
            found[f"{user_id} {path}"] = _lasting(http.get(f"{url}/{path}user_id={user_id}"))
        for text in ("a", "noodles recipe17", "Berlin"):
            body = {"user_id": user_id, "query_text": text, "limit": 1000}
            found[f"{user_id} query {text}"] = _lasting(http.post(f"{url}/memories/query", json=body))
        for log in found[f"{user_id} thinking?"][1]["logs"]:
            found[log["id"]] = _lasting(http.get(f"{url}/thinking/{log['id']}"))
    return found


def _lasting(reply: httpx.Response) -> Any:
    """Without what is of this reply alone."""
    assert reply.status_code in {200, 404}, reply.text
    if "json" not in reply.headers["content-type"]:
        return reply.text
    body = reply.json()
    body.pop("request_id", None)
    return reply.status_code, body
