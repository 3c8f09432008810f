"""The second act, told to the Memory-Service: facts that a user states, in Chinese and English."""

from typing import Any

from memory_gateway.demo.teller import Teller

USER = "mei"
NEIGHBOUR = "meiling"
PREFIX = "/api/v1"

Entry = dict[str, Any]


class StatedFacts:
    """One user who states facts, one neighbour with a similar name who must see none of them."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller

    def tell(self) -> None:
        self._facts()
        self._merge()
        self._query()
        self._one_entry()
        self._consolidation()
        self._decay()
        self._thinking()

    def _facts(self) -> None:
        self._teller.chapter("The Memory-Service: facts in Chinese and English")
        health = self._teller.call("GET", f"{PREFIX}/health", expect=200).json()
        self._teller.expect("the service is up", health == {"status": "ok", "service": "memory-service"})
        self._create(
            "我对花生过敏，出门总带着抗过敏药。", category="personal_info", importance=9, keywords=["过敏", "花生"]
        )
        self._create("I prefer short answers with the numbers first.", category="user_preference", importance=7)
        self._create("新品发布会定在九月二十五日，地点是滨江会展中心。", category="event", keywords=["发布会"])
        self._create("The warehouse keeps spare shells in aisle C++ 12.", category="knowledge")
        path = f"{PREFIX}/memories/categories?user_id={USER}"
        counted = self._teller.call("GET", path, expect=200).json()["categories"]
        expected = {"personal_info": 1, "user_preference": 1, "event": 1, "knowledge": 1}
        self._teller.expect("one in each of four categories", counted == expected)

    def _merge(self) -> None:
        self._teller.chapter("Saying it again, and saying nearly the same")
        first = self._create("门禁码是4471")
        again = self._create("门禁码是４４７１")
        self._teller.expect("full-width digits or not, it is one entry", again["memory"]["id"] == first["memory"]["id"])
        near = self._create("门禁码是4477")
        self._teller.expect("the similar fact joins it, and the reply says how similar", near["similarity"] == 0.75)
        self._teller.expect("both codes stay readable", near["memory"]["content"] == "门禁码是4471\n门禁码是4477")

    def _query(self) -> None:
        self._teller.chapter("Finding facts by words of any length")
        for words, expected in (("花生", "花生"), ("4471", "4471"), ("NUMBERS first", "numbers"), ("c++", "C++")):
            found = self._ask(words)
            self._teller.expect(f"“{words}” finds it", len(found) == 1 and expected in found[0]["content"])
        self._teller.expect("% is no wildcard", self._ask("%") == [])
        self._teller.expect("the neighbour finds nothing", self._ask("花生", user_id=NEIGHBOUR) == [])

    def _one_entry(self) -> None:
        self._teller.chapter("Reading, changing and deleting one entry")
        entry = self._ask("发布会")[0]
        path = f"{PREFIX}/memories/{entry['id']}"
        changes = {"content": "新品发布会改到十月九日，地点不变。", "importance": 8}
        self._teller.call("PUT", path, expect=200, json=changes)
        changed = self._teller.call("GET", path, expect=200).json()["memory"]
        self._teller.expect("the new date is kept", changed["content"] == changes["content"])
        self._teller.expect("old words find nothing any more", self._ask("九月二十五日") == [])
        for _ in range(2):
            self._teller.call("DELETE", path, expect=200)
        missing = self._teller.call("GET", path, expect=404).json()
        self._teller.expect("a deleted entry is gone", missing == {"error": "记忆不存在"})

    def _consolidation(self) -> None:
        self._teller.chapter("Consolidating what has become similar")
        kept = self._create("Backups run every night at two.", importance=6, keywords=["backup"])["memory"]
        other = self._create("周会改到每周四下午三点", keywords=["night"])["memory"]
        changes = {"content": "Backups run every night at three."}
        self._teller.call("PUT", f"{PREFIX}/memories/{other['id']}", expect=200, json=changes)
        request = {"user_id": USER}
        first = self._teller.call("POST", f"{PREFIX}/memories/consolidate", expect=200, json=request).json()
        second = self._teller.call("POST", f"{PREFIX}/memories/consolidate", expect=200, json=request).json()
        self._teller.expect("one entry goes into another, once", (first["merged"], second["merged"]) == (1, 0))
        found = self._ask("backups")
        self._teller.expect("the more important one is left", [entry["id"] for entry in found] == [kept["id"]])
        self._teller.expect("with the keywords of both", found[0]["keywords"] == ["backup", "night"])

    def _decay(self) -> None:
        self._teller.chapter("What a decay would do, without doing it")
        request = {"user_id": USER, "dry_run": True}
        would = self._teller.call("POST", f"{PREFIX}/memories/decay", expect=200, json=request).json()
        fresh = (would["decayed"], would["deleted"]) == (0, 0)
        self._teller.expect("nothing of today is old enough to fade", fresh)

    def _thinking(self) -> None:
        self._teller.chapter("What an agent thought in the background")
        log = {
            "user_id": USER,
            "content": "发布会改期了，提醒供应商把交货日期一起推迟。",
            "tool_calls": '[{"name": "search_memory", "arguments": {"query": "供应商"}}, {"name": "send_mail"}]',
        }
        saved = self._teller.call("POST", f"{PREFIX}/thinking", expect=201, json=log).json()["thinking"]
        counted = (saved["content_length"], saved["tool_call_count"])
        self._teller.expect("characters and tool calls are counted", counted == (len(log["content"]), 2))
        listed = self._teller.call("GET", f"{PREFIX}/thinking?user_id={USER}", expect=200).json()
        self._teller.expect("the log is listed", listed == {"logs": [saved], "total": 1})
        stats = self._teller.call("GET", f"{PREFIX}/thinking/stats?user_id={USER}", expect=200).json()
        expected = {
            "total_logs": 1,
            "total_tool_calls": 2,
            "avg_content_length": float(len(log["content"])),
            "latest_at": saved["created_at"],
        }
        self._teller.expect("and stands in the statistics", stats == expected)

    def _create(self, content: str, **fields: Any) -> Entry:
        body = {"user_id": USER, "content": content, **fields}
        reply: Entry = self._teller.call("POST", f"{PREFIX}/memories", expect=201, json=body).json()
        return reply

    def _ask(self, words: str, user_id: str = USER) -> list[Entry]:
        body = {"user_id": user_id, "query_text": words}
        found: list[Entry] = self._teller.call("POST", f"{PREFIX}/memories/query", expect=200, json=body).json()[
            "memories"
        ]
        return found
