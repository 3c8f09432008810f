"""The filter language in three tables: what is kept, what restricts nothing, and what is refused in which words.

Seen on EverOS 1.5.1. Every upstream must agree, in `search` and in `get`.
"""

from typing import Any

from tests.conformance.corpus import DAY, ENDS, SESSIONS, START

Filter = dict[str, Any]

FROM, UNTIL = ENDS["chat:falcon"], ENDS["chat:late"]
WINDOW = {"chat:falcon", "chat:group"}

# The same half-open window, written in two ways (the later condition must not replace the earlier).
WINDOWS: dict[str, Filter] = {
    "in two nodes": {"AND": [{"timestamp": {"gte": FROM}}, {"timestamp": {"lt": UNTIL}}]},
    "in one node": {"timestamp": {"gte": FROM, "lt": UNTIL}},
}

KEPT: dict[str, tuple[Filter, set[str]]] = {
    "session, plain": ({"session_id": "chat:tea"}, {"chat:tea"}),
    "session, eq": ({"session_id": {"eq": "chat:tea"}}, {"chat:tea"}),
    "session, ne": ({"session_id": {"ne": "chat:tea"}}, set(SESSIONS) - {"chat:tea"}),
    "session, in": ({"session_id": {"in": ["chat:tea", "chat:late", "never"]}}, {"chat:tea", "chat:late"}),
    "session, gt and lte": ({"session_id": {"gt": "chat:falcon", "lte": "chat:late"}}, {"chat:group", "chat:late"}),
    "session, gte and lt": ({"session_id": {"gte": "chat:falcon", "lt": "chat:late"}}, WINDOW),
    "session, another's prefix": ({"session_id": "chat:te"}, set()),
    "session, a wild card": ({"session_id": "chat:%"}, set()),
    "session, a quote": ({"session_id": "chat:tea' OR '1'='1"}, set()),
    "session, empty text": ({"session_id": ""}, set()),
    "two ne": ({"AND": [{"session_id": {"ne": "chat:tea"}}, {"session_id": {"ne": "chat:late"}}]},
               {"chat:falcon", "chat:group", "chat:tools"}),
    "timestamp, plain": ({"timestamp": FROM}, {"chat:falcon"}),
    "timestamp, eq": ({"timestamp": {"eq": FROM}}, {"chat:falcon"}),
    "timestamp, ne": ({"timestamp": {"ne": FROM}}, set(SESSIONS) - {"chat:falcon"}),
    "timestamp, in": ({"timestamp": {"in": [FROM, UNTIL]}}, {"chat:falcon", "chat:late"}),
    "timestamp, gt": ({"timestamp": {"gt": UNTIL}}, {"chat:tools"}),
    "timestamp, lte": ({"timestamp": {"lte": FROM}}, {"chat:tea", "chat:falcon"}),
    "timestamp, seconds": ({"timestamp": {"gte": FROM // 1000, "lt": UNTIL // 1000}}, WINDOW),
    "timestamp, ISO": ({"timestamp": {"gte": "2026-05-29T20:26:41Z", "lt": "2026-05-31T20:26:40Z"}}, WINDOW),
    "timestamp, ISO with a zone": (
        {"timestamp": {"gte": "2026-05-29T22:26:41+02:00", "lt": "2026-05-31T16:26:40-04:00"}}, WINDOW
    ),
    "timestamp, a day": ({"timestamp": {"gte": "2026-05-29", "lt": "2026-05-31"}}, WINDOW),
    "timestamp, a millisecond later": ({"timestamp": {"gte": FROM + 1, "lt": UNTIL + 1}}, {"chat:group", "chat:late"}),
    "timestamp, before all time": ({"timestamp": {"gte": -1}}, set(SESSIONS)),
    "timestamp, zero": ({"timestamp": {"gte": 0}}, set(SESSIONS)),
    "timestamp, a fraction": ({"timestamp": {"lt": START + DAY + 0.5}}, {"chat:tea"}),
    "sender, plain": ({"sender_id": "ben"}, {"chat:group"}),
    "sender, eq": ({"sender_id": {"eq": "bot"}}, set(SESSIONS) - {"chat:late"}),
    "sender, in": ({"sender_id": {"in": ["ben", "nobody"]}}, {"chat:group"}),
    "sender, part of a name": ({"sender_id": "be"}, set()),
    "parent type": ({"parent_type": "memcell"}, set(SESSIONS)),
    "parent type, another": ({"parent_type": "other"}, set()),
    "parent id, unknown": ({"parent_id": "nothing"}, set()),
    "siblings are ANDed": ({"sender_id": "bot", "timestamp": {"lt": UNTIL}}, {"chat:tea", "chat:falcon", "chat:group"}),
    "a field beside AND": ({"AND": [{"timestamp": {"gte": FROM}}], "session_id": "chat:late"}, {"chat:late"}),
    "a field beside OR": (
        {"OR": [{"session_id": "chat:tea"}, {"session_id": "chat:late"}], "sender_id": "bot"}, {"chat:tea"}
    ),
    "AND beside OR": ({"AND": [{"sender_id": "bot"}], "OR": [{"session_id": "chat:tea"}, {"session_id": "chat:late"}]},
                      {"chat:tea"}),
    "OR": ({"OR": [{"session_id": "chat:tea"}, {"sender_id": "ben"}]}, {"chat:tea", "chat:group"}),
    "OR with an empty node": ({"OR": [{}, {"session_id": "chat:tea"}]}, {"chat:tea"}),
    "AND in OR in AND": (
        {"AND": [{"OR": [{"AND": [{"session_id": "chat:tea"}, {"sender_id": "bot"}]}, {"session_id": "chat:late"}]},
                 {"timestamp": {"gte": START}}]},
        {"chat:tea", "chat:late"},
    ),
    "two hundred levels": ({}, {"chat:tea"}),
    "a contradiction": ({"AND": [{"session_id": "chat:tea"}, {"session_id": "chat:late"}]}, set()),
}  # fmt: skip

NO_RESTRICTION: dict[str, Filter] = {
    "empty": {},
    "session null": {"session_id": None},
    "timestamp null": {"timestamp": None},
    "unknown field null": {"foo": None},
    "reserved field null": {"owner_id": None},
    "AND empty": {"AND": []},
    "OR empty": {"OR": []},
    "AND null": {"AND": None},
    "OR null": {"OR": None},
    "AND of an empty node": {"AND": [{}]},
    "OR of an empty node": {"OR": [{}]},
    "AND of a null condition": {"AND": [{"session_id": None}]},
}

_STRING = "value for {!r} must be a string".format
_TIME = "timestamp value for 'timestamp' must be ms or ISO string"
_LIST = "value for {!r} with 'in' must be a non-empty list".format
_OPERATOR = "unsupported operator {!r} on field {!r}".format
_RESERVED = "filter field {!r} is reserved; pass it at the top of the request".format
_NODE = "Input should be a valid dictionary or object to extract fields from: {}".format

REFUSED: dict[str, tuple[Filter, str]] = {
    "unknown field": ({"foo": "x"}, "unsupported filter field: 'foo'"),
    "unknown field, deep": ({"AND": [{"OR": [{"bar": 1}]}]}, "unsupported filter field: 'bar'"),
    "unknown field, after a known one": ({"session_id": "s", "foo": 1}, "unsupported filter field: 'foo'"),
    "user_id is no field": ({"user_id": "x"}, "unsupported filter field: 'user_id'"),
    "lower case and": ({"and": [{"session_id": "s"}]}, "unsupported filter field: 'and'"),
    "NOT": ({"NOT": [{"session_id": "s"}]}, "unsupported filter field: 'NOT'"),
    "owner_id": ({"owner_id": "x"}, _RESERVED("owner_id")),
    "owner_type": ({"owner_type": "user"}, _RESERVED("owner_type")),
    "app_id": ({"app_id": "x"}, _RESERVED("app_id")),
    "project_id": ({"project_id": "x"}, _RESERVED("project_id")),
    "owner_id, deep": ({"OR": [{"owner_id": "x"}]}, _RESERVED("owner_id")),
    "unknown operator": ({"session_id": {"like": "x"}}, _OPERATOR("like", "session_id")),
    "nin": ({"session_id": {"nin": ["x"]}}, _OPERATOR("nin", "session_id")),
    "between": ({"timestamp": {"between": [1, 2]}}, _OPERATOR("between", "timestamp")),
    "AND inside a field": ({"session_id": {"AND": [{"eq": "a"}]}}, _OPERATOR("AND", "session_id")),
    "sender ne": ({"sender_id": {"ne": "x"}}, "operator 'ne' is not supported on array field 'sender_id'"),
    "sender gte": ({"sender_id": {"gte": "x"}}, "operator 'gte' is not supported on array field 'sender_id'"),
    "session, number": ({"session_id": 5}, _STRING("session_id")),
    "session, truth": ({"session_id": True}, _STRING("session_id")),
    "session, list": ({"session_id": ["a"]}, _STRING("session_id")),
    "session, empty map": ({"session_id": {}}, "empty operator map for field 'session_id'"),
    "session, eq null": ({"session_id": {"eq": None}}, _STRING("session_id")),
    "session, ne null": ({"session_id": {"ne": None}}, _STRING("session_id")),
    "session, eq list": ({"session_id": {"eq": ["a"]}}, _STRING("session_id")),
    "session, gt number": ({"session_id": {"gt": 5}}, _STRING("session_id")),
    "session, in nothing": ({"session_id": {"in": []}}, _LIST("session_id")),
    "session, in text": ({"session_id": {"in": "abc"}}, _LIST("session_id")),
    "session, in null": ({"session_id": {"in": None}}, _LIST("session_id")),
    "session, in map": ({"session_id": {"in": {"a": 1}}}, _LIST("session_id")),
    "session, a number in the list": ({"session_id": {"in": ["a", 5]}}, _STRING("session_id")),
    "session, a null in the list": ({"session_id": {"in": ["a", None]}}, _STRING("session_id")),
    "sender, number": ({"sender_id": 5}, _STRING("sender_id")),
    "sender, eq null": ({"sender_id": {"eq": None}}, _STRING("sender_id")),
    "sender, empty map": ({"sender_id": {}}, "empty operator map for field 'sender_id'"),
    "sender, in nothing": ({"sender_id": {"in": []}}, _LIST("sender_id")),
    "sender, a number in the list": ({"sender_id": {"in": [5]}}, _STRING("sender_id")),
    "timestamp, words": ({"timestamp": "yesterday"}, _TIME),
    "timestamp, gte words": ({"timestamp": {"gte": "soon"}}, _TIME),
    "timestamp, empty text": ({"timestamp": ""}, _TIME),
    "timestamp, digits in text": ({"timestamp": {"gte": "1780000000000"}}, _TIME),
    "timestamp, truth": ({"timestamp": True}, _TIME),
    "timestamp, list": ({"timestamp": [1]}, _TIME),
    "timestamp, gte null": ({"timestamp": {"gte": None}}, _TIME),
    "timestamp, gte map": ({"timestamp": {"gte": {"a": 1}}}, _TIME),
    "timestamp, beyond time": ({"timestamp": {"gte": 10**18}}, _TIME),
    "timestamp, in nothing": ({"timestamp": {"in": []}}, _LIST("timestamp")),
    "timestamp, words in the list": ({"timestamp": {"in": ["x"]}}, _TIME),
    "parent_type, number": ({"parent_type": 5}, _STRING("parent_type")),
    "parent_id, list": ({"parent_id": ["a"]}, _STRING("parent_id")),
    "AND is a map": ({"AND": {"session_id": "s"}}, "Input should be a valid list: filters.AND"),
    "AND is text": ({"AND": "x"}, "Input should be a valid list: filters.AND"),
    "OR is a map": ({"OR": {"session_id": "s"}}, "Input should be a valid list: filters.OR"),
    "AND of text": ({"AND": ["x"]}, _NODE("filters.AND.0")),
    "AND of null": ({"AND": [{}, None]}, _NODE("filters.AND.1")),
    "OR of lists": ({"OR": [["x"]]}, _NODE("filters.OR.0")),
    "deep AND of text": ({"AND": [{"OR": ["x"]}]}, _NODE("filters.AND.0.OR.0")),
}


def nested(levels: int, innermost: Filter) -> Filter:
    node = innermost
    for level in range(levels):
        node = {("AND", "OR")[level % 2]: [node]}
    return node


KEPT["two hundred levels"] = (nested(200, {"session_id": "chat:tea"}), {"chat:tea"})
