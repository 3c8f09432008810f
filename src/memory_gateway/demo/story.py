"""The whole story over HTTP, on a real server with a temporary folder. Each step says what must hold."""

import io
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import httpx

from memory_gateway.demo.child import RunningServer, ServerDied, running_server
from memory_gateway.demo.conversation import conversation, sample
from memory_gateway.demo.stated_facts import StatedFacts
from memory_gateway.demo.teller import Teller
from memory_gateway.kit.clock import system_clock

ADMIN_KEY = "demo-admin-key"
CHAT = "tern-launch"
FILES = {
    "launch-brief.pdf": "application/pdf",
    "supplier-notes.docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "whiteboard.png": "image/png",
}
VECTOR_SECONDS = 120
CAT_IS_WELL = "年糕复查正常，已经停药，只继续吃肾脏处方粮。"

Credentials = dict[str, str]
Found = list[dict[str, Any]]


def run() -> int:
    """Tell the story; 0 when everything in it held."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="memory-gateway-demo-") as folder:
        try:
            with (
                running_server(Path(folder), ADMIN_KEY) as server,
                Teller(server.url) as gateway,
                Teller(server.service_url) as service,
            ):
                click.echo(
                    f"The gateway answers on {server.url}, {time.perf_counter() - started:.1f} s after its start."
                )
                Story(gateway, server).tell()
                StatedFacts(service).tell()
        except (ServerDied, httpx.HTTPError) as error:
            click.secho(f"\nThe story broke off: {error}", fg="red", err=True)
            return 1
    return _verdict([gateway, service], time.perf_counter() - started)


def _verdict(tellers: list[Teller], seconds: float) -> int:
    failures = [failure for teller in tellers for failure in teller.failures]
    if failures:
        click.secho(f"\n{len(failures)} of the story's expectations did not hold:", fg="red", bold=True)
        for failure in failures:
            click.echo(f"  ✗ {failure}")
        return 1
    calls = sum(teller.calls for teller in tellers)
    click.secho(f"\nAll of it held: {calls} requests in {seconds:.1f} s. The data folder is gone.", fg="green")
    return 0


class Story:
    """One user with files and a conversation, one neighbour who must never see a word of it."""

    def __init__(self, teller: Teller, server: RunningServer) -> None:
        self._teller = teller
        self._server = server
        self._lin: Credentials = {}
        self._lina: Credentials = {}
        self._resources: dict[str, str] = {}

    def tell(self) -> None:
        self._two_users()
        self._files()
        self._conversation()
        self._ways_to_search()
        self._attached_files()
        self._agent()
        self._filters()
        self._edits()
        self._neighbour()
        self._leaving()

    def _two_users(self) -> None:
        self._teller.chapter("Two users with similar names")
        self._lin = self._register("lin")
        self._lina = self._register("lina")
        taken = self._teller.call("POST", "/users", expect=409, headers=_admin(), json={"user_id": "Lin"})
        self._teller.expect("an id that differs only in case is refused", taken.status_code == 409)

    def _register(self, user_id: str) -> Credentials:
        reply = self._teller.call("POST", "/users", expect=201, headers=_admin(), json={"user_id": user_id})
        return {"user_id": user_id, "user_key": reply.json()["user_key"]}

    def _files(self) -> None:
        self._teller.chapter("A PDF, a Word document and a picture")
        for name, mime_type in FILES.items():
            self._resources[name] = self._upload(name, mime_type)["resource"]["id"]
        again = self._upload("launch-brief.pdf", FILES["launch-brief.pdf"], expect=200)
        self._teller.expect("the same bytes again give the first resource", again["created"] is False)
        listed = self._teller.call("GET", "/resources", expect=200, headers=_headers(self._lin)).json()["resources"]
        self._teller.expect(
            "all three are indexed", [item["status"] for item in listed] == ["indexed", "indexed", "indexed"]
        )

    def _upload(self, name: str, mime_type: str, expect: int = 201) -> dict[str, Any]:
        files = {"file": (name, sample(name), mime_type)}
        reply = self._teller.call("POST", "/resources", expect=expect, headers=_headers(self._lin), files=files)
        body: dict[str, Any] = reply.json()
        return body

    def _conversation(self) -> None:
        self._teller.chapter("A conversation of nine days, in English and Chinese")
        messages = conversation(system_clock)
        body = {**self._lin, "conversation_id": CHAT, "messages": messages}
        headers = {"Idempotency-Key": "tern-1"}
        first = self._teller.call("POST", "/memories/add", expect=200, headers=headers, json=body)
        self._teller.say("   The same request again, as a client does that lost the reply:")
        second = self._teller.call("POST", "/memories/add", expect=200, headers=headers, json=body)
        self._teller.expect("the retry gets the first answer and adds nothing", first.json() == second.json())

    def _ways_to_search(self) -> None:
        self._teller.chapter("Finding it again")
        found = self._search("凤凰单丛", method="keyword")
        self._teller.expect("keywords: the gift for 周工, at once", _top_says(found, "单丛"))
        found = self._search("What code does the stand-in host have?", method="keyword", scope="resources")
        self._teller.expect("keywords: words that only OCR can read", _top_says(found, "TERN-42"))
        if self._vectors_are_ready():
            found = self._search("Which food am I allergic to?", method="vector")
            self._teller.expect("vectors: an English question finds the Chinese answer", _top_says(found, "花生过敏"))
        found = self._search("Why was the launch moved?", method="hybrid", scope="current_chat", conversation_id=CHAT)
        self._teller.expect("hybrid, in this chat: the new date and its reason", _top_says(found, "to 25 September"))
        found = self._search("minimum order of shells, and how we pay", scope=["resources", "all_user_memory"])
        self._teller.expect("hybrid, two scopes at once: the Word document", _top_says(found, "3,000 shells"))
        found = self._search("Where is the press morning if it rains?", method="agentic")
        self._teller.expect("agentic, everything of this user", _top_says(found, "Riverside Hall"))

    def _vectors_are_ready(self) -> bool:
        """Vectors come from a background worker; False when the server has no embedding model."""
        deadline = time.monotonic() + VECTOR_SECONDS
        while self._backlog() and time.monotonic() < deadline:
            time.sleep(0.2)
        health = self._teller.call("GET", "/health", expect=200).json()
        if not health["capabilities"]["vector"]:
            self._teller.say("   No embedding model here, so the story goes on without vectors.")
            return False
        self._teller.expect("every turn has its vector", health["upstream"]["backlog"] == 0)
        return True

    def _backlog(self) -> int:
        health = httpx.get(f"{self._server.url}/health", trust_env=False).json()
        return int(health["upstream"]["backlog"])

    def _attached_files(self) -> None:
        self._teller.chapter("The real files behind a memory")
        found = self._search("年糕的化验单", scope="current_chat", conversation_id=CHAT)
        names = [attachment["name"] for attachment in found[0]["attachments"]] if found else []
        self._teller.expect("the picture that came as base64 is a file now", names == ["年糕-化验单.png"])
        found = self._search("quote for the launch film")
        uris = [attachment["internal_uri"] for attachment in found[0]["attachments"]] if found else []
        self._teller.expect(
            "a client's URI is kept as it came", uris == ["https://files.studio-nord.example/tern/film-quote.pdf"]
        )
        found = self._search("carry pouch lead time", scope="resources")
        self._teller.expect(
            "an uploaded file is known by its resource", _resource(found) == self._resources["supplier-notes.docx"]
        )
        content = self._teller.call(
            "GET", f"/resources/{_resource(found)}/content", expect=200, headers=_headers(self._lin)
        ).content
        self._teller.expect("and comes back byte for byte", content == sample("supplier-notes.docx"))

    def _agent(self) -> None:
        self._teller.chapter("What an agent learned")
        found = self._search("compare couriers for lithium cells", agent_id="planner")
        cases = [item for item in found if item["memory_type"] == "agent_case"]
        self._teller.expect("the agent's case tells which tools it called", _some_says(cases, "courier_quote"))

    def _filters(self) -> None:
        self._teller.chapter("Filters")
        since = system_clock() - 4 * 86_400_000
        found = self._search("launch", filters={"AND": [{"session_id": f"chat:{CHAT}"}, {"timestamp": {"gte": since}}]})
        episodes = [item for item in found if item["memory_type"] == "episode"]
        self._teller.expect(
            "only the last days of the chat", bool(episodes) and not _some_says(episodes, "Noted: Tern launches")
        )
        refused = self._teller.call(
            "POST",
            "/memories/search",
            expect=422,
            json={**self._lin, "query": "launch", "filters": {"colour": "coral"}},
        )
        self._teller.expect("an unknown field is refused by name", "colour" in refused.text)

    def _edits(self) -> None:
        self._teller.chapter("Edits: forget one thing, correct another")
        party = self._search("抹茶蛋糕 惊喜生日会", method="keyword")[0]
        self._edit("DELETE", party["id"], "")
        found = self._search("抹茶蛋糕 惊喜生日会")
        self._teller.expect("the surprise party is forgotten", not _some_says(found, "抹茶"))
        cat = self._search("贝那普利 每次半片", method="keyword")[0]
        self._edit("PUT", cat["id"], "", json={"text": CAT_IS_WELL, "reason": "new results"})
        found = self._search("年糕 停药", method="keyword")
        self._teller.expect("the user's own words are found and shown", bool(found) and found[0]["text"] == CAT_IS_WELL)
        self._teller.expect("and marked", bool(found) and found[0]["overridden"] is True)
        found = self._search("贝那普利 每次半片", method="keyword")
        self._teller.expect("the replaced words find it no more", all(item["id"] != cat["id"] for item in found))
        self._edit("GET", cat["id"], "/history")

    def _edit(self, method: str, memory_id: str, what: str, **options: Any) -> None:
        path = f"/memories/{quote(memory_id, safe='')}{what}"
        self._teller.call(method, path, expect=200, headers=_headers(self._lin), **options)

    def _neighbour(self) -> None:
        self._teller.chapter("The neighbour sees nothing")
        for scope in ("current_chat", "resources", "all_user_memory"):
            found = self._teller.search("Tern launch 花生", user=self._lina, scope=scope, conversation_id=CHAT)
            self._teller.expect(f"no word of lin's in {scope}", found == [])
        hello = {"sender_id": "lina", "role": "user", "timestamp": system_clock(), "content": "Hello?"}
        taken = self._teller.call(
            "POST", "/memories/add", expect=403, json={**self._lina, "conversation_id": CHAT, "messages": [hello]}
        )
        self._teller.expect("a chat's name belongs to its first user", taken.status_code == 403)
        path = f"/resources/{self._resources['launch-brief.pdf']}"
        self._teller.call("GET", path, expect=404, headers=_headers(self._lina))

    def _leaving(self) -> None:
        self._teller.chapter("Taking everything along, and being forgotten")
        reply = self._teller.call("GET", "/users/me/export", expect=200, headers=_headers(self._lin))
        with zipfile.ZipFile(io.BytesIO(reply.content)) as archive:
            for entry in archive.infolist():
                click.echo(f"     {entry.file_size:>9,}  {entry.filename}")
            self._teller.expect(
                "the archive holds the files themselves",
                any(archive.read(entry) == sample("whiteboard.png") for entry in archive.infolist()),
            )
        self._teller.call("DELETE", "/users/lin", expect=200, headers=_headers(self._lin))
        self._teller.call("GET", "/resources", expect=401, headers=_headers(self._lin))

    def _search(self, query: str, **options: Any) -> Found:
        return self._teller.search(query, user=self._lin, **{"include_profile": False, **options})


def _admin() -> dict[str, str]:
    return {"X-Admin-Key": ADMIN_KEY}


def _headers(user: Credentials) -> dict[str, str]:
    return {"X-User-ID": user["user_id"], "X-User-Key": user["user_key"]}


def _some_says(found: Found, words: str) -> bool:
    return any(words in str(item["text"]) + str(item["raw"]) for item in found)


def _top_says(found: Found, words: str) -> bool:
    return _some_says(found[:1], words)


def _resource(found: Found) -> str | None:
    return found[0]["resource_id"] if found else None
