"""Daily reports, difficult clusters: one article for each day, with nearly the same words and different figures."""

from __future__ import annotations

from functools import partial

from data.collections.gold.language import Terminal, compile_rules, expand, tidy, toml
from data.collections.gold.random_streams import Dice
from data.collections.gold.stories import (
    DAYS,
    MONTHS,
    ArticleTable,
    Paragraph,
    Story,
    company_name,
    date_of,
    make_cast,
    make_lexicon,
    make_person,
    names,
    number_terminals,
    town_name,
)

SERIES = ("market_wrap", "market_summary", "grain_report")
_UP, _DOWN = ("rose", "gained", "climbed", "added"), ("fell", "lost", "slipped", "shed")
_WENT_UP, _WENT_DOWN = ("rose", "climbed", "advanced"), ("fell", "slipped", "declined")
_INDICES = {
    "meridian": ("Meridian 40", 6_120),
    "continental": ("Continental Composite", 2_240),
    "allied": ("Allied 500", 1_290),
}
_CONTRACTS = {
    "grains": (2, 6, ("Wheat, nearby", "Wheat, deferred", "Corn, nearby", "Corn, deferred", "Soybeans", "Oats")),
    "livestock": (58, 96, ("Live cattle", "Feeder cattle", "Lean hogs", "Pork bellies", "Class III milk")),
}


def report(series: str, day: int, seed: int) -> Story:
    """Generate the report of a day in a series, a section of reports.toml.

    Other days have the same sentences with different figures, names and reasons.
    """
    text = toml("reports.toml")[series]
    lines = {f"{key} {i}": line for key in ("headline", "paragraphs") for i, line in enumerate(text[key].splitlines())}
    rules = compile_rules({**toml("reports.toml")["slots"], **lines})
    lasting, dice = Dice(seed, "series", series), Dice(seed, "report", series, day)
    lexicon = make_lexicon(text["topic"], lasting)
    cast = make_cast(lexicon, lasting)
    reporter, analyst = make_person(lexicon, lasting), make_person(lexicon, lasting)
    up, indices = dice.chance(55), _index_values(day, dice)
    terminals = {
        **number_terminals(dice),
        **_date_terminals(day, dice),
        **_movement_terminals(up, dice),
        **_amount_terminals(dice),
        **{f"{key}_{part}": partial(str, value) for key, values in indices.items() for part, value in values.items()},
        "analyst": partial(str, f"{analyst.given} {analyst.surname}"),
        "firm": partial(str, lasting.pick(names("company")) + " Securities"),
    }

    def paragraph(rule: str) -> Paragraph | ArticleTable:
        if lines[rule].startswith("["):
            return _article_table(lines[rule].strip("[]"), indices, "+" if up else "-", dice)
        return tuple(tidy(sentence) for sentence in expand(rule, rules, terminals, dice).split(" ^"))

    headlines = tuple(tidy(expand(rule, rules, terminals, dice)) for rule in lines if rule.startswith("headline"))
    lead, *rest = (paragraph(rule) for rule in lines if rule.startswith("paragraphs"))
    return Story(
        slug=text["slug"],
        topic=text["topic"],
        day=day,
        headlines=headlines,
        leads=(lead, lead),
        paragraphs=tuple(rest),
        captions=(f"Trading at the close on {DAYS[date_of(day).weekday()]}.",) * 3,
        reporter=f"{reporter.given} {reporter.surname}",
        agency=lasting.below(len(names("agency"))),
        cast=cast,
        lexicon=lexicon,
    )


def _index_values(day: int, dice: Dice) -> dict[str, dict[str, str]]:
    """Return points, percent and level of each index; levels vary with the day."""
    values = {}
    for key, (_, base) in _INDICES.items():
        level = base * 100 + (day * 37 % 101 - 50) * base // 40 + dice.below(base)
        points = dice.between(base // 40, base * 2)
        percent = points * 10_000 // level
        values[key] = {"points": _cents(points), "pct": _cents(percent), "level": _cents(level)}
    return values


def _cents(hundredths: int) -> str:
    """Format a number of hundredths: 612345 is 6,123.45."""
    return f"{hundredths // 100:,}.{hundredths % 100:02d}"


def _date_terminals(day: int, dice: Dice) -> dict[str, Terminal]:
    date = date_of(day)
    return {
        "weekday": lambda: DAYS[date.weekday()],
        "later": lambda: DAYS[(date.weekday() + dice.between(1, 3)) % 5],
        "month_day": lambda: f"{MONTHS[date.month - 1]} {date.day}",
        "month": lambda: MONTHS[(date.month + dice.between(0, 2)) % 12],
    }


def _movement_terminals(up: bool, dice: Dice) -> dict[str, Terminal]:
    pick = dice.pick
    with_day, against = (_UP, _DOWN) if up else (_DOWN, _UP)
    return {
        "moved": lambda: pick(with_day),
        "counter": lambda: pick(against),
        "either": lambda: pick(_UP + _DOWN),
        "went": lambda: pick(_WENT_UP if up else _WENT_DOWN),
        "drifted": lambda: pick(_WENT_UP + _WENT_DOWN),
        "moved_h": lambda: "gains" if up else "loses",
        "close_h": lambda: "higher" if up else "lower",
        "either_h": lambda: pick(("higher", "lower", "mixed", "steady")),
        "counter_h": lambda: "down" if up else "up",
        "change": lambda: "up" if up else "down",
        "extreme": lambda: "highest" if up else "lowest",
        "Winners": lambda: "Advancing" if up else "Declining",
        "losers": lambda: "declining" if up else "advancing",
    }


def _amount_terminals(dice: Dice) -> dict[str, Terminal]:
    between = dice.between
    return {
        "ratio": lambda: dice.pick(("three", "five", "seven", "nine")),
        "pct": lambda: _cents(between(4, 390)),
        "volume": lambda: _cents(between(105, 399)),
        "cents": lambda: str(between(2, 98)),
        "dollars": lambda: "$" + _cents(between(101, 690)),
        "price": lambda: "$" + _cents(between(800, 9_690)),
        "barrel": lambda: "$" + _cents(between(5_800, 7_790)),
        "yield": lambda: _cents(between(440, 499)),
        "bushel": lambda: "$" + _cents(between(200, 690)),
        "pound": lambda: _cents(between(5_800, 9_490)),
        "company": lambda: company_name(dice),
        "foreign": lambda: town_name(dice),
    }


def _article_table(kind: str, indices: dict[str, dict[str, str]], sign: str, dice: Dice) -> ArticleTable:
    """Return a table of quotes: indices, contracts, or the companies with the largest changes."""
    if kind == "indices":
        rows = [(_INDICES[key][0], v["level"], sign + v["points"], sign + v["pct"] + "%") for key, v in indices.items()]
        return ArticleTable((("Index", "Last", "Change", "Percent"), *rows))
    low, high, labels = _CONTRACTS.get(kind, (8, 96, [company_name(dice) for _ in range(8)]))
    quotes = [
        (
            label,
            _cents(dice.between(low * 100, high * 100)),
            dice.pick("+-") + _cents(dice.between(1, low * 12)),
            f"{dice.between(120, 48_000):,}",
        )
        for label in labels
    ]
    return ArticleTable((("Contract" if kind in _CONTRACTS else "Company", "Last", "Change", "Volume"), *quotes))
