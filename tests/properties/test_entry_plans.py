"""Plans of consolidation against comparing everything with everything, on fresh and on updated snapshots."""

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from memory_gateway.memory_service.entries.planning import Candidate, Planner
from tests.fakes.simple_entries import SimpleEntries, SimpleEntry
from tests.properties.entry_texts import base_texts, near


@st.composite
def crowds(draw: st.DrawFn) -> tuple[dict[int, Candidate], dict[int, Candidate]]:
    """Entries of one user, and the same entries after others have written."""
    entry = st.tuples(near(draw(base_texts)), st.integers(1, 10), st.integers(0, 2))
    before = dict(enumerate(draw(st.lists(entry, max_size=12)), 1))
    changed = draw(st.dictionaries(st.integers(1, 15), entry, max_size=4))
    gone = draw(st.sets(st.integers(1, 15), max_size=3))
    after = {number: fields for number, fields in {**before, **changed}.items() if number not in gone}
    return (
        {number: Candidate(number, 1, *fields) for number, fields in before.items()},
        {number: Candidate(number, 1 + (number in changed), *fields) for number, fields in after.items()},
    )


def outcome(planner: Planner, entries: dict[int, Candidate]) -> tuple[int, dict[int, str]]:
    """How many entries a plan merges, and what is left of them."""
    plan = planner.plan()
    left = {number: entry.content for number, entry in entries.items()}
    for step in plan.steps:
        assert left.pop(step.other)
        assert step.survivor in left
    assert plan.contents.keys() <= left.keys()
    left.update((number, content.text) for number, content in plan.contents.items())
    return len(plan.steps), left


def expected(entries: dict[int, Candidate]) -> tuple[int, dict[int, str]]:
    twin = SimpleEntries(
        {one.entry_no: SimpleEntry(one.entry_no, one.content, one.importance, one.priority) for one in entries.values()}
    )
    return twin.consolidate(0), {number: entry.content for number, entry in twin.entries.items()}


@settings(max_examples=200, deadline=None)
@given(crowds())
def test_a_plan_is_that_of_comparing_everything_with_everything(crowd: tuple[dict[int, Candidate], Any]) -> None:
    before, after = crowd
    planner = Planner(list(before.values()))
    merged = outcome(planner, before)
    assert merged == expected(before)
    event(f"{min(merged[0], 3)} merged")

    changed, gone = planner.differences({number: entry.change_no for number, entry in after.items()})
    assert {number for number in after if after[number] != before.get(number)} <= changed
    assert gone == before.keys() - after.keys()
    planner.update([after[number] for number in changed], gone)
    assert outcome(planner, after) == expected(after)
