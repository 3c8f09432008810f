"""What a language model would answer to EverOS's prompts, made from the prompt's own words: the same every time."""

import json
import re
from collections.abc import Callable
from typing import Any

NEW_TOPIC = "NEWTOPIC"  # a message with this word begins a conversation of its own
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_MOST_FACTS = 12
_QUOTED = r'((?:[^"\\]|\\.)*)'

# EverOS takes no skill that is shorter than some lines.
_STEPS = """## Steps
1. Read the logs of the service that fails
2. Look at the configuration of what it waits for
3. Change one setting, and verify the result

## Pitfalls
- A restart comes last"""

SEEN_IN_FILE = "Seen in the file: a sketch of the falcon deployment, with three boxes."


def reply_to(prompt: str) -> str:
    """The answer to the first kind of prompt whose marks all stand in this one."""
    for marks, answer in _KINDS:
        if all(mark in prompt for mark in marks):
            return answer(prompt)
    raise LookupError(f"EverOS asked something that nobody foresaw: {prompt[:200]!r}")


def overlap(query: str, text: str) -> float:
    """The share of the query's words that stand in the text: what a reranker says here."""
    asked, told = (set(re.findall(r"\w+", one.lower())) for one in (query, text))
    return round(len(asked & told) / max(1, len(asked)), 4)


def _boundaries(prompt: str) -> str:
    lines = re.findall(r"^\[(\d+)\] \[[^\]]+\] (.*)$", prompt, re.MULTILINE)
    ends = [int(number) - 1 for number, line in lines if NEW_TOPIC in line and int(number) > 1]
    return _json(reasoning="by mark", boundaries=ends, should_wait=not ends)


def _facts(prompt: str) -> str:
    episode, time = _found(r'- EPISODE_TEXT: "(.*)"\n- TIME: "([^"]*)"', prompt, re.DOTALL)
    sentences = [sentence.strip().rstrip(".") for sentence in _SENTENCE_END.split(episode) if sentence.strip()]
    return _json(atomic_facts={"time": time or "then", "atomic_fact": sentences[:_MOST_FACTS]})


def _episode(prompt: str) -> str:
    pattern = r'"timestamp": (.*?),\n\s*"speaker": (.*?),\n\s*"content": (.*?)\n\s*\}'
    said = [each for each in re.findall(pattern, prompt, re.DOTALL) if "{" not in each[0]]
    told = [f"On {time.strip()} {speaker.strip()} said: {text.strip()}." for time, speaker, text in said]
    title = said[0][2].strip().split("\n")[0][:60] if said else "Nothing"
    return _json(title=title, content=" ".join(told) or "Nothing was said.")


def _new_profile(prompt: str) -> str:
    user, statements = _statements(prompt, r"TARGET USER:? ?\**:? ?(\S+?)\*\*", prompt)
    trait = {"trait": "Precise", "description": "Gives details", "basis": "wording", "evidence": "first conversation"}
    return _json(explicit_info=[_statement(user, statements[:1])], implicit_traits=[trait])


def _changed_profile(prompt: str) -> str:
    records = prompt.rpartition("【Conversation Records】")[2].partition("【Task】")[0]
    user, statements = _statements(prompt, r"TARGET USER: (\S+?)\*\*", records)
    operation = {"action": "add", "type": "explicit_info", "data": _statement(user, statements[-1:])}
    return _json(operations=[operation], update_note="by rule")


def _statements(prompt: str, pattern: str, records: str) -> tuple[str, list[str]]:
    (user,) = _found(pattern, prompt)
    return user, re.findall(rf"\(user_id:{re.escape(user)}\): (.*)", records)


def _statement(user: str, said: list[str]) -> dict[str, str]:
    words = said[0][:120] if said else "nothing"
    return {"category": "Statement", "description": f"{user} said: {words}", "evidence": "a conversation"}


def _case(prompt: str) -> str:
    asked = re.findall(rf'"role": "user", "content": "{_QUOTED}"', prompt)
    tools = re.findall(r'"name": "([^"]+)"', prompt)
    return _json(
        task_intent=asked[0][:160] if asked else "a task",
        approach="\n".join([*(f"{number}. call {tool}" for number, tool in enumerate(tools, 1)), "Outcome: done"]),
        key_insight="Look at the configuration before a restart",
        quality_score=0.9,
    )


def _skill(prompt: str) -> str:
    (intent,) = _found(rf'"task_intent": "{_QUOTED}"', prompt)
    skill = {
        "name": "diagnose-" + re.sub(r"[^a-z0-9]+", "-", intent.lower())[:40].strip("-"),
        "description": f"When to use: {intent}",
        "content": _STEPS,
        "confidence": 0.6,
    }
    return _json(operations=[{"action": "add", "data": skill}], update_note="by rule")


def _ranking(prompt: str) -> str:
    pattern = r"User query:\n(.*?)\n\nCandidates.*?\n(\[.*\])\n\nReturn at most"
    query, listed = _found(pattern, prompt, re.DOTALL)
    scored = [{"id": one["id"], "score": overlap(query, json.dumps(one))} for one in json.loads(listed)]
    return _json(ranked=sorted(scored, key=lambda one: -one["score"]))


def _more_queries(prompt: str) -> str:
    (query,) = _found(r"Original Query:\n(.*?)\n", prompt)
    return _json(queries=[f"{query} details", f"related to {query}"], reasoning="by rule")


def _web_page(prompt: str) -> str:
    return re.sub(r"<[^>]+>", " ", prompt.rpartition("\n---\n")[2])


def _always(**fields: Any) -> Callable[[str], str]:
    return lambda _: _json(**fields)


def _found(pattern: str, prompt: str, flags: int = 0) -> tuple[str, ...]:
    match = re.search(pattern, prompt, flags)
    if match is None:
        raise LookupError(f"EverOS's prompt is another than {pattern!r} expects")
    return match.groups()


def _json(**fields: Any) -> str:
    return json.dumps(fields)


# Later kinds have marks that earlier ones have too, so the order counts.
_KINDS: tuple[tuple[tuple[str, ...], Callable[[str], str]], ...] = (
    (("episode boundary detection expert",), _boundaries),
    (("boundaries", "should_wait"), _boundaries),
    (('"atomic_fact"', "EPISODE_TEXT"), _facts),
    (("user profile updater",), _changed_profile),
    (("explicit_info", "implicit_traits", "TARGET USER"), _new_profile),
    (("has_exploration",), _always(has_exploration=True, has_user_correction=False, reason="by rule")),
    (("distilling agent interaction trajectories",), _case),
    (('"operations"', "[Output Format]"), _skill),
    (("clustering expert",), _always(idx=-1, reason="by rule")),
    (('"ranked"', "Candidates (JSON array"), _ranking),
    (
        ("is_sufficient",),
        _always(is_sufficient=True, reasoning="by rule", key_information_found=[], missing_information=[]),
    ),
    (("query reformulation",), _more_queries),
    (("<<image_url>>",), lambda _: SEEN_IN_FILE),
    (("HTML", "\n---\n"), _web_page),
    (('"title"', '"content"'), _episode),
)
