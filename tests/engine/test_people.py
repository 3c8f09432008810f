"""Whom a query names, and what is left of it to be searched for."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.engine.people import Naming, Participant, names_of, naming


def named(query: str, *names: str) -> Naming:
    """With participants numbered from 0."""
    people = [Participant(number, f"id{number}", name) for number, name in enumerate(names)]
    return naming(query, names_of(people))


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("What did Ben buy?", "What did buy?"),
        ("Ben's bicycle", "bicycle"),
        ("the colour of Ben\u2019s bicycle", "the colour of bicycle"),
        ("what does BEN like", "what does like"),
        ("ben and the bicycle, ben?", "and the bicycle, ?"),
    ],
)
def test_a_name_and_its_possessive_are_taken_out_in_any_case(query: str, rest: str) -> None:
    assert named(query, "Ann", "Ben") == Naming(rest, 1)


@pytest.mark.parametrize("query", ["Where does Ben live?", "Where does Ben Frost live?", "where does BEN FROST live?"])
def test_the_first_name_means_its_owner_and_the_full_name_goes_whole(query: str) -> None:
    assert named(query, "Ann Lee", "Ben Frost") == Naming(query[:10] + " live?", 1)


def test_a_first_name_that_two_people_share_names_nobody_and_stays() -> None:
    assert named("Where does Ben live?", "Ben Frost", "Ben Lee") == Naming("Where does Ben live?", None)
    assert named("Where does Ben Lee live?", "Ben Frost", "Ben Lee") == Naming("Where does live?", 1)


def test_a_first_name_of_two_letters_could_be_any_word() -> None:
    assert named("Is it to be?", "To Nguyen") == Naming("Is it to be?", None)


def test_of_several_named_none_is_the_speaker_but_all_are_taken_out() -> None:
    assert named("When did Ann's sister meet Ben?", "Ann", "Ben", "Carla") == Naming("When did sister meet ?", None)


@pytest.mark.parametrize("role", ["user", "Assistant", "AI", "me", "You", "我", "用户", "客服"])
def test_roles_are_no_names(role: str) -> None:
    assert named(f"what did {role} say about tea", role) == Naming(f"what did {role} say about tea", None)
    assert named(f"what did {role} say about tea", f"{role} 2") == Naming(f"what did {role} say about tea", None)


@pytest.mark.parametrize("query", ["the annual report of Anna", "Joann went", "Ann2 spoke", "Annä came"])
def test_a_latin_name_is_a_whole_word(query: str) -> None:
    assert named(query, "Ann") == Naming(query, None)


def test_names_that_begin_alike_are_told_apart() -> None:
    assert named("the annual report of Anna", "Ann", "Anna") == Naming("the annual report of", 1)


def test_a_han_name_is_found_wherever_it_stands() -> None:
    assert named("王小明的生日是哪天？", "李雷", "王小明") == Naming("的生日是哪天?", 1)
    assert named("VIP王小明2号", "李雷", "王小明") == Naming("VIP 2号", 1)
    assert named("昨天李雷和王小明吃了什么", "李雷", "王小明") == Naming("昨天 和 吃了什么", None)


@pytest.mark.parametrize("name", ["a.b", "C++", "(x)", "a|b", "[z]", "x*", "\\d", "^^"])
def test_a_name_is_taken_literally(name: str) -> None:
    assert named(f"what did {name} say", name) == Naming("what did say", 0)
    assert named("what did axb or a 7 say", name) == Naming("what did axb or a 7 say", None)


@pytest.mark.parametrize("name", ["", "   ", "\u3000"])
def test_an_empty_name_names_nobody(name: str) -> None:
    assert named("what did he say", name) == Naming("what did he say", None)


@pytest.mark.parametrize("name", ["!!!", "🙂🙂", "%%"])
def test_a_name_of_symbols_names_and_one_alone_stays_the_query(name: str) -> None:
    assert named(f"tea {name} milk", name) == Naming("tea milk", 0)
    assert named(name, name) == Naming(name, 0)


@pytest.mark.parametrize("query", ["Ben", "Ben?", "Ben Frost's", "ann  ben"])
def test_a_query_of_names_alone_stays_whole(query: str) -> None:
    assert named(query, "Ann", "Ben Frost").rest == query


def test_one_id_may_stand_for_a_name() -> None:
    assert named("What did a_b write?", "axb", "a_b") == Naming("What did write?", 1)


def test_one_of_very_many_is_named() -> None:
    names = [f"Person{number} Smith{number}" for number in range(1_000)]
    assert named("Where does Person777 Smith777 live?", *names) == Naming("Where does live?", 777)


@pytest.mark.parametrize(
    ("query", "names", "answer"),
    [
        ("where does Ann Lee live", ("Ann", "Ann Lee"), Naming("where does live", 1)),
        ("where does Ann live", ("Ann", "Ann Lee"), Naming("where does live", 0)),
        ("小王子在哪里", ("小王", "小王子"), Naming("在哪里", 1)),
        ("where does Ann live", ("Ann", "Ann"), Naming("where does live", None)),
    ],
)
def test_the_longest_name_is_meant_and_one_that_two_people_bear_names_neither(
    query: str, names: tuple[str, ...], answer: Naming
) -> None:
    assert named(query, *names) == answer


@pytest.mark.parametrize("query", ["ＡＮＮ  ＬＥＥ的生日", "Ann\u3000Lee的生日", "ann lee的生日"])
def test_width_and_spacing_do_not_hide_a_name(query: str) -> None:
    assert named(query, "Ben", "Ann  Lee") == Naming("的生日", 1)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("Где работает Иванович?", "Иван"),
        ("国王是谁？", "王"),
        ("a day at the sea", "a"),
        ("what is it about", "about"),
        ("Did I mark the exam?", "Mark Lee"),
        ("Will it rain", "Will Smith"),
        ("Mark the date", "Mark"),
    ],
)
def test_what_may_be_a_word_or_a_part_of_one_is_no_name(query: str, name: str) -> None:
    assert named(query, name) == Naming(query, None)


@pytest.mark.parametrize(
    ("query", "name"), [("Where is Mark now?", "Mark Lee"), ("does Will smoke", "Will"), ("Где работает Иван?", "Иван")]
)
def test_names_that_are_words_as_well_are_meant_where_they_are_written_as_names(query: str, name: str) -> None:
    answer = named(query, name)
    assert answer.speaker == 0
    assert name.split(maxsplit=1)[0] not in answer.rest


def test_a_text_that_grows_when_it_is_normalised_is_searched_no_further_than_its_length() -> None:
    names = [chr(0x4E00 + number) + chr(0x5E00 + number) for number in range(1_000)]
    query = "".join(names) + "\ufdfa" * 6_000
    answer = named(query, *names)
    assert (answer.speaker, len(answer.rest) <= len(query)) == (None, True)


words = st.text(st.sampled_from("aAnN bB.+('s\u2019İßſé王小🙂\\|[^$%1\u3000\n"), max_size=12) | st.text(max_size=12)


@given(words | st.text(max_size=60), st.lists(words, max_size=6))
def test_any_names_and_any_query_do(query: str, names: list[str]) -> None:
    answer = named(query, *names)
    assert len(answer.rest) <= max(len(query), len(unicodedata.normalize("NFKC", query)))
    assert answer.speaker is None or answer.speaker < len(names)
    assert any(map(str.isalnum, answer.rest)) == any(map(str.isalnum, query)), "something is left to search for"
