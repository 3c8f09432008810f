import pytest

from memory_gateway.gateway.names import app_or_project, plain_name, session_name
from memory_gateway.kit.errors import InvalidInput


def test_a_conversation_id_is_short_for_its_chat_session() -> None:
    assert session_name(None, "1") == "chat:1"
    assert session_name("chat:1", None) == "chat:1"
    assert session_name(None, "周工/7") == "chat:周工/7"


@pytest.mark.parametrize("both", [(None, None), ("a", "b")])
def test_exactly_one_of_the_two_names_a_session(both: tuple[str | None, str | None]) -> None:
    with pytest.raises(InvalidInput) as caught:
        session_name(*both)
    assert caught.value.field == "session_id"


@pytest.mark.parametrize("name", ["", " a", "a ", "a\nb", "a\x00", "a\x7f", "a\u2028b", "\u3000a", "x" * 129])
def test_a_session_name_that_a_store_would_change_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        session_name(name, None)
    assert caught.value.field == "session_id"


def test_the_prefix_of_resources_is_the_gateways_own() -> None:
    with pytest.raises(InvalidInput) as caught:
        session_name("resource:ann:r1", None)
    assert caught.value.field == "session_id"
    assert session_name(None, "resource:ann:r1") == "chat:resource:ann:r1"


def test_apps_and_projects_default() -> None:
    assert app_or_project(None, "app_id") == "default"
    assert app_or_project("My.app@1+2-3_4", "app_id") == "My.app@1+2-3_4"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "é", "x" * 129, "a\n", "%"])
def test_a_plain_name_is_plain(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        plain_name(name, "project_id")
    assert caught.value.field == "project_id"
