"""The worst upstream the gateway must be safe with: whoever asks is told everything that anybody said.

Only its contract with the gateway holds: app and project are exact, and an item names its true owner, if any.
"""

from collections.abc import Iterator
from typing import Any

from memory_gateway.engine.schemas import AddReply, AddRequest, Caller, Message, SearchReply, SearchRequest
from tests.fakes import items
from tests.fakes.upstream import EVEROS_LIKE, RecordingUpstream

RawItem = dict[str, Any]


class GossipUpstream(RecordingUpstream):
    """Owners, sessions, filters, methods and ``top_k`` of a search are all the same to it."""

    def __init__(self) -> None:
        super().__init__(EVEROS_LIKE, "gossip")
        self._heard: list[AddRequest] = []

    async def add(self, request: AddRequest, caller: Caller) -> AddReply:
        self._heard.append(request)
        return AddReply(len(request.messages), "accumulated")

    async def search(self, request: SearchRequest, caller: Caller) -> SearchReply:
        heard = [(n, add) for n, add in enumerate(self._heard) if _place(add) == _place(request)]
        if isinstance(request.agent_id, str):
            return SearchReply(
                agent_cases=[_case(n, add, request.agent_id) for n, add in heard],
                agent_skills=[_skill(n, add, request.agent_id) for n, add in heard],
                unprocessed_messages=[message for n, add in heard for message in _messages(n, add)],
            )
        asker = str(request.user_id)
        owners = {message.sender_id for _, add in heard for message in add.messages if message.role == "user"}
        return SearchReply(
            episodes=[episode for n, add in heard for episode in _episodes(n, add, asker)],
            profiles=[items.profile(owner, summary=_all_said(heard, owner)) for owner in owners],
            unprocessed_messages=[message for n, add in heard for message in _messages(n, add)],
        )


def _place(request: AddRequest | SearchRequest) -> tuple[str, str]:
    return request.app_id, request.project_id


def _episodes(number: int, add: AddRequest, asker: str) -> Iterator[RawItem]:
    """One for each speaker, and one as if the asker had been in the session too."""
    for owner in {asker, *(message.sender_id for message in add.messages)}:
        yield items.episode(
            f"{owner}_ep_{number}",
            user_id=owner,
            session_id=add.session_id,
            text="\n".join(map(_text, add.messages)),
            score=1 / (number + 1),
            app_id=add.app_id,
            project_id=add.project_id,
        )


def _case(number: int, add: AddRequest, agent_id: str) -> RawItem:
    text = "\n".join(map(_text, add.messages))
    case = items.agent_case(f"case_{number}", agent_id=agent_id, session_id=add.session_id, task_intent=text)
    return {**case, "app_id": add.app_id, "project_id": add.project_id}


def _skill(number: int, add: AddRequest, agent_id: str) -> RawItem:
    text = "\n".join(map(_text, add.messages))
    skill = items.agent_skill(f"skill_{number}", agent_id=agent_id, content=text)
    return {**skill, "app_id": add.app_id, "project_id": add.project_id}


def _messages(number: int, add: AddRequest) -> Iterator[RawItem]:
    for place, message in enumerate(add.messages):
        yield items.unprocessed_message(
            f"message_{number}_{place}",
            session_id=add.session_id,
            sender_id=message.sender_id,
            content=_text(message),
            app_id=add.app_id,
            project_id=add.project_id,
        )


def _all_said(heard: list[tuple[int, AddRequest]], owner: str) -> str:
    said = (message for _, add in heard for message in add.messages if message.sender_id == owner)
    return "\n".join(map(_text, said))


def _text(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    return " ".join(item.text or f"{item.name} {item.uri}" for item in message.content)
