"""What a text shows at a glance: that it asks something, that it tells or asks a time. English and Chinese."""

import re

QUESTION = 1
TIMED = 2


def _any_of(*expressions: str) -> re.Pattern[str]:
    return re.compile("|".join(expressions), re.ASCII | re.IGNORECASE | re.DOTALL)


# What may stand behind a question mark: quotes, brackets, emphasis, emoticons, emoji, then one caption of a picture.
_BEHIND = (
    r"(?:[\s\"'“”‘’«»」』】）)}>*_`!！~～。…\u2600-\u27bf\u2b50\ufe0f\u200d\U0001f000-\U0001faff]|[:;=]-?[)(DPp])*"
)
_ENDS_ASKING = re.compile(
    rf"[?？؟⁇⁈⁉‽❓❔吗呢么](?<![这那多要]么)(?<!没什么)(?<!没怎么)(?<!着呢){_BEHIND}(?:\[[^\[\]]*\]{_BEHIND})?\Z"
)
_TAIL_CHARS = 400  # a question further from the end, before a longer caption, is not looked for

_DAY_NAMES = "(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_MONTH_NAMES = "january|february|march|april|(?-i:May)|june|july|august|september|october|november|december"
_ENGLISH_TIMES = (
    "yesterday|today|tonight|tomorrow|ago|since|recently|lately|noon|midnight|o'clock",
    f"{_DAY_NAMES}|{_MONTH_NAMES}|weeks?|weekends?|months?|years?",
    # A greeting or a wish is no time.
    "(?<!good )(?<!nice )(?<!great )days?|(?<!good )(?:mornings?|nights?|evenings?|afternoons?)",
    "(?:last|next|this) (?:spring|summer|autumn|fall|winter)",
    # "I just came"; not "a just cause", "more than just", "just like", "just because".
    r"(?<!\ba )(?<!\bthan )just(?! (?:a|an|as|because|cause|like|in case|about|so|the|that|this)\b)",
    "(?:19|20)[0-9]{2}|[0-9]{1,2}(?::[0-9]{2}| ?[ap]m)",
)
_INITIALS = "[adefjlmnorstwy0-9]"  # of all the words above: most words of a text are passed over at their first letter
_TELLS_TIME = _any_of(rf"\b(?={_INITIALS})(?:{'|'.join(_ENGLISH_TIMES)})\b", r"\b[0-9]{1,2} ?[ap]\.m\.")
_TELLS_TIME_CHINESE = _any_of(
    "昨[天日晚夜]|今[天日早晚晨夜年]|明[天日早晚年]|前[天年]|后[天年]|去年|刚才|刚刚|最近|近来|以来|自从",
    "早上|上午|中午|下午|晚上|凌晨|傍晚|半夜|点钟|日期|星期|礼拜|[月年][初底]|个月|月份",
    "[上下这本]一?个?[周月]|周[一二三四五六日末]|(?:[年月周天]|小时|分钟)[以之]?前",
    r"[0-9０-９一二两三四五六七八九十]\s?[月号日点]|[0-9０-９〇零一二三四五六七八九]{4}\s?年",
)


def cues(text: str) -> int:
    """The bits `QUESTION`, where the text ends as a question, and `TIMED`, where a time expression stands in it."""
    asks = _ENDS_ASKING.search(text, max(0, len(text) - _TAIL_CHARS))
    timed = _TELLS_TIME.search(text) or (not text.isascii() and _TELLS_TIME_CHINESE.search(text))
    return (QUESTION if asks else 0) | (TIMED if timed else 0)


_ASKED_UNIT = "(?:time|day|date|weekday|week|weekend|month|year|season)s?"
_AUXILIARY = "(?:did|do|does|is|are|was|were|will|would|has|have|had|can|could|should|shall|might)(?:n't)?"
_WONDERING = "(?:know|knew|tell me|told me|remember|recall|remind me|wonder|exactly|since|until|till|from)"
_ASKS_FOR_TIME = _any_of(
    rf"\bwhen(?:'s|’s| {_AUXILIARY}| exactly)\b",
    rf"\b{_WONDERING} when\b",
    r"\bwhen\W*\Z",
    # "When Ann moved?" asks, "When Ann moved, what did she take?" does not.
    r"\A\W*when\b(?!.*(?:,|\b(?:what|who|whom|whose|where|how|which|why)\b))",
    r"\bhow (?:long|often|recently|soon|many (?:minutes|hours|days|weeks|weekends|months|years))\b",
    rf"\b(?:what|which) (?:(?!an? |this |last |next |every )[a-z]+ )?{_ASKED_UNIT}\b",
    rf"\bwhat(?:'s|’s| is| was| are| were) the (?:exact )?{_ASKED_UNIT}\b",
)
_ASKS_FOR_TIME_CHINESE = _any_of(
    "什么(?:时候|时间|时刻|日子|日期)|[啥么]时候|何时|多会儿|多久|多长时间|日期是",
    "哪一?个?(?:[天年月周日]|星期|礼拜)|几[号月点]|(?:[周月]|星期|礼拜)几",
    r"多少(?:[天年周]|个?(?:小时|星期|礼拜|月))|几(?:[天年周]|个(?:小时|星期|礼拜|月))了?\s?[?？]?\Z",
)


def asks_for_time(query: str) -> bool:
    """True for a query that asks when, since when, how long, how often, or which day, week, month or year."""
    return bool(_ASKS_FOR_TIME.search(query) or (not query.isascii() and _ASKS_FOR_TIME_CHINESE.search(query)))
