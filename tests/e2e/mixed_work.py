"""Random mixed work on several processes at once, noted as its callers saw it; and the same work on one, in order.

Whatever is random was drawn before the work begins, from a seed. Operations are such that what they leave does not
depend on their order, or that the replies tell which order it was.
"""

import asyncio
import hashlib
import itertools
import time
from collections import Counter, defaultdict
from random import Random
from typing import NamedTuple

import httpx
from msgspec import Struct, field

from tests.fakes.gateways import ADMIN_KEY, Caller, Clients, Json

USERS = ("ann", "anna", "a_b", "axb")
CONNECTIONS = 32
TOPICS = 4
LANDMARKS = 3
EDITED = 2
KINDS = {"chat": 6, "race": 4, "keyed": 4, "fact": 6, "access": 6, "find": 6, "upload": 3, "edit": 5, "seen": 5}

_moments = itertools.count(1_780_000_000_000, 1000)


class Step(NamedTuple):
    """One operation; what the numbers choose depends on its kind."""

    kind: str
    user_id: str
    number: int
    at: tuple[int, int, int]
    moment: int


class Add(NamedTuple):
    """An add and how it was answered."""

    user_id: str
    session: str
    text: str
    moment: int
    status: int


class Edit(NamedTuple):
    """An edit, how it was answered, and from when to when it ran."""

    kind: str
    text: str
    status: int
    begun: float
    ended: float


class Notes(Struct):
    """What the callers saw."""

    adds: list[Add] = field(default_factory=list)
    keyed: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    facts: list[tuple[str, Json]] = field(default_factory=list)
    accesses: Counter[tuple[str, int]] = field(default_factory=Counter)
    uploads: dict[tuple[str, bytes], list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    edits: dict[tuple[str, int], list[Edit]] = field(default_factory=lambda: defaultdict(list))
    registrations: list[list[int]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def drawn(seed: int, count: int) -> list[Step]:
    """The plan. Every kind comes often enough to say something."""
    random = Random(seed)
    kinds = random.choices(list(KINDS), list(KINDS.values()), k=count - len(KINDS) * 4) + list(KINDS) * 4
    random.shuffle(kinds)
    return [
        Step(kind, random.choice(USERS), random.randrange(1000), tuple(random.sample(range(3), 3)), next(_moments))  # type: ignore[arg-type]
        for kind in kinds
    ]


def mark(user_id: str) -> str:
    """A word that only this user says."""
    return f"{user_id.replace('_', 'q')}zz"


def fact(user_id: str, number: int) -> Json:
    """Of one topic all are alike enough to become one, whatever comes first; two topics never."""
    topic, variant = number % TOPICS, number // TOPICS % 4
    base = hashlib.sha256(f"{user_id} {topic}".encode()).hexdigest() * 2
    return {
        "user_id": user_id,
        "content": f"{base} {'abcd'[variant]}{topic}",
        "importance": 1 + variant,
        "priority": 1 + variant % 2,
        "category": ("knowledge", "personal_info")[topic % 2],
        "keywords": [f"word{variant}", f"topic{topic}"],
    }


def landmark(user_id: str, number: int) -> str:
    return hashlib.sha256(f"landmark {user_id} {number}".encode()).hexdigest()


class MixedWork:
    """Runs plans on the processes of ``clients``."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients
        self.notes = Notes()
        self.callers: dict[str, Caller] = {}
        self.landmarks: dict[tuple[str, int], str] = {}
        self.edited: dict[tuple[str, int], str] = {}

    async def prepare(self) -> None:
        """The users, and what the work meets."""
        for user_id in USERS:
            self.callers[user_id] = await self._register(user_id)
            for number in range(LANDMARKS):
                body = {"user_id": user_id, "content": landmark(user_id, number)}
                reply = await self.clients.services[0].post("/memories", json=body)
                self.landmarks[user_id, number] = reply.json()["memory"]["id"]
            for number in range(EDITED):
                await self._prepare_edited(self.callers[user_id], number)

    async def run(self, plan: list[Step]) -> Notes:
        waiting = iter(plan)

        async def work() -> None:
            for step in waiting:
                try:
                    await getattr(self, f"_{step.kind}")(self.callers[step.user_id], step)
                except (AssertionError, httpx.HTTPError) as error:
                    self.notes.faults.append(f"{step}: {type(error).__name__} {error}")

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
        return self.notes

    async def read_once_more(self) -> None:
        """Just before the processes stop, so that these are not counted yet."""
        for user_id in USERS:
            for number in range(LANDMARKS):
                await self._access(self.callers[user_id], Step("access", user_id, number, (0, 1, 2), 0))

    async def _register(self, user_id: str) -> Caller:
        """At all processes at once, and afterwards by a name that differs in case only."""
        names = [user_id, user_id, user_id]
        replies = await asyncio.gather(*map(self._register_at, self.clients.gateways, names))
        replies.append(await self._register_at(self.clients.gateways[0], user_id.upper()))
        self.notes.registrations.append([reply.status_code for reply in replies])
        [made] = [reply.json() for reply in replies if reply.status_code == 201]
        return Caller(user_id, made["user_key"])

    async def _register_at(self, at: httpx.AsyncClient, user_id: str) -> httpx.Response:
        return await at.post("/users", json={"user_id": user_id}, headers={"X-Admin-Key": ADMIN_KEY})

    async def _prepare_edited(self, caller: Caller, number: int) -> None:
        at, session = self.clients.gateways[0], f"edited-{number}-{caller.user_id}"
        reply = await caller.add(at, session, [caller.message(f"swallow {number} original", next(_moments))])
        assert reply.status_code == 200, reply.text
        results = await caller.search(at, f"swallow {number}", filters={"session_id": f"chat:{session}"})
        [found] = [result for result in results if result["memory_type"] == "episode"]
        self.edited[caller.user_id, number] = found["id"]

    async def _say(self, caller: Caller, at: int, session: str, text: str, moment: int) -> int:
        reply = await caller.add(self.clients.gateways[at], session, [caller.message(text, moment)])
        self.notes.adds.append(Add(caller.user_id, session, text, moment, reply.status_code))
        assert reply.status_code in {200, 403}, reply.text
        return reply.status_code

    async def _chat(self, caller: Caller, step: Step) -> None:
        """A user's few own sessions, into which several connections speak."""
        text = f"falcon {mark(caller.user_id)} n{step.moment}"
        session = f"{caller.user_id}-{step.number % 3}"
        assert await self._say(caller, step.at[0], session, text, step.moment) == 200

    async def _race(self, caller: Caller, step: Step) -> None:
        """Everybody says something in one session, each at another process; then all once more."""
        callers = list(self.callers.values())
        for turn in range(2):
            replies = await asyncio.gather(
                *(
                    self._say(
                        one,
                        step.at[place % 3],
                        f"race-{step.number % 12}",
                        f"falcon {mark(one.user_id)} n{step.moment}t{turn}",
                        step.moment + 10 * turn + place,
                    )
                    for place, one in enumerate(callers)
                )
            )
            assert sorted(replies) == [200, 403, 403, 403], f"owners of race-{step.number % 12}: {replies}"

    async def _keyed(self, caller: Caller, step: Step) -> None:
        """The same request at every process at once, and once more afterwards; and another under the same key."""
        key, session = f"key-{step.moment}", f"{caller.user_id}-{step.number % 3}"
        text = f"falcon {mark(caller.user_id)} k{step.moment}"

        async def send(at: int, words: str) -> httpx.Response:
            messages = [caller.message(words, step.moment)]
            return await caller.add(self.clients.gateways[at], session, messages, key)

        replies = [*await asyncio.gather(*(send(at, text) for at in step.at)), await send(step.at[1], text)]
        self.notes.keyed[key] += [(reply.status_code, reply.text) for reply in replies]
        self.notes.adds.append(Add(caller.user_id, session, text, step.moment, replies[0].status_code))
        assert (await send(step.at[2], f"{text} else")).status_code == 409

    async def _fact(self, caller: Caller, step: Step) -> None:
        """The same twice and one alike, at once."""
        bodies = [fact(caller.user_id, number) for number in (step.number, step.number, step.number + TOPICS)]
        replies = await asyncio.gather(
            *(self.clients.services[at].post("/memories", json=body) for at, body in zip(step.at, bodies, strict=True))
        )
        assert [reply.status_code for reply in replies] == [201] * 3, [reply.text for reply in replies]
        self.notes.facts += [(caller.user_id, body) for body in bodies]

    async def _access(self, caller: Caller, step: Step) -> None:
        place = (caller.user_id, step.number % LANDMARKS)
        replies = await asyncio.gather(
            *(self.clients.services[at].get(f"/memories/{self.landmarks[place]}") for at in step.at)
        )
        assert [reply.status_code for reply in replies] == [200] * 3, [reply.text for reply in replies]
        self.notes.accesses[place] += 3

    async def _find(self, caller: Caller, step: Step) -> None:
        """What was acknowledged anywhere is found everywhere, at once, and by nobody else."""
        own = [add for add in self.notes.adds if add.user_id == caller.user_id and add.status == 200]
        if not own:
            return
        word = own[step.number % len(own)].text.split()[-1]
        found = await asyncio.gather(*(caller.search(self.clients.gateways[at], word) for at in step.at))
        for at, results in zip(step.at, found, strict=True):
            assert any(word in result["text"] for result in results), f"{caller.user_id} misses {word} at {at}"
        for other in self.callers.values():
            if other is not caller:
                text = str(await other.search(self.clients.gateways[step.at[0]], f"falcon {mark(caller.user_id)}"))
                assert mark(caller.user_id) not in text, f"{other.user_id} sees {caller.user_id}"

    async def _upload(self, caller: Caller, step: Step) -> None:
        content = f"the bytes of file {step.number % 6}, which several users have".encode()
        replies = await asyncio.gather(
            *(caller.upload(self.clients.gateways[at], f"{step.number % 6}.txt", content) for at in step.at)
        )
        assert {reply.status_code for reply in replies} <= {200, 201}, [reply.text for reply in replies]
        self.notes.uploads[caller.user_id, content] += [
            (reply.status_code, reply.json()["resource"]["id"]) for reply in replies
        ]

    async def _seen(self, caller: Caller, step: Step) -> None:
        """What one process has just taken and another one shown can be edited at the third."""
        text, session = f"ostrich s{step.moment}", f"seen-{step.moment}-{caller.user_id}"
        first, second, third = (self.clients.gateways[at] for at in step.at)
        reply = await caller.add(first, session, [caller.message(text, step.moment)])
        assert reply.status_code == 200, reply.text
        [found] = await caller.search(second, f"s{step.moment}")
        path = f"/memories/{found['id']}"
        reply = await third.put(path, json={"text": f"{text} corrected"}, headers=caller.headers)
        assert reply.status_code == 200, f"{caller.user_id} cannot edit {path}: {reply.text}"
        [found] = await caller.search(first, f"s{step.moment}")
        assert (found["text"], found["overridden"]) == (f"{text} corrected", True)

    async def _edit(self, caller: Caller, step: Step) -> None:
        """Three edits of one memory at once."""
        number = step.number % EDITED
        kinds = [
            ("override", "override", "restore"),
            ("delete", "restore", "override"),
            ("restore", "remove", "remove"),
        ]
        await asyncio.gather(
            *(
                self._edit_once(caller, number, kind, f"swallow {number} version {step.moment}-{at}", at)
                for kind, at in zip(kinds[step.number // 7 % 3], step.at, strict=True)
            )
        )

    async def _edit_once(self, caller: Caller, number: int, kind: str, text: str, at: int) -> None:
        path = f"/memories/{self.edited[caller.user_id, number]}"
        method, action = {
            "override": ("PUT", ""),
            "remove": ("DELETE", "/override"),
            "delete": ("DELETE", ""),
            "restore": ("POST", "/restore"),
        }[kind]
        body = {"text": text} if kind == "override" else None
        begun = time.monotonic()
        reply = await self.clients.gateways[at].request(method, path + action, json=body, headers=caller.headers)
        assert reply.status_code == 200 or (kind, reply.status_code) == ("override", 409), reply.text
        edit = Edit(kind, text, reply.status_code, begun, time.monotonic())
        self.notes.edits[caller.user_id, number].append(edit)
