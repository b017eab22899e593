"""Generation of news stories: people, topics and the text before any edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache, partial
from itertools import chain, zip_longest

from data.collections.gold.language import CLASSES, FORMS, Terminal, expand, grammar, inflected, plain, tidy, toml
from data.collections.gold.random_streams import Bag, Dice

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
FIRST_DAY = date(2006, 2, 10)
SPAN = 84
"""Number of days in which stories are published."""
FEW = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "10", "11", "12", "14", "15")
COMMON = {"thing": 30, "act": 24, "adj": 40, "adv": 16, "person": 8, "body": 4, "mass": 12, "place": 4, "trait": 14}
"""Number of common words of each class in a story, in addition to the words of its topic."""

ONSETS = tuple("b br c d dr f g gr h j k l m n p pr r s st t tr v w".split())
VOWELS = ("a", "e", "i", "o", "u", "ea", "ai", "ou")
CODAS = ("", "", "", "l", "n", "r", "s", "m")
"""Syllables of invented words."""

Lexicon = Mapping[str, Bag[str]]
Paragraph = tuple[str, ...]
"""Sentences in neutral form: curly quotes, long dashes, ``|`` where an editor may cut."""


@dataclass(frozen=True)
class Person:
    """Invented person in a story."""

    given: str
    surname: str
    woman: bool
    role: str
    age: int


@dataclass(frozen=True)
class Cast:
    """People, organisations as (full, short) names, and towns of a story."""

    people: Sequence[Person]
    orgs: Sequence[tuple[str, str]]
    towns: Sequence[str]
    state: str


@dataclass(frozen=True)
class ArticleTable:
    """Table in an article, by rows."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Story:
    """Article before any edits; all its versions form one cluster.

    ``day`` counts from the first day of the collection; ``headlines`` and ``leads`` are alternatives, the first is the
    default; ``paragraphs`` follow the lead; ``agency`` is an index in names.toml; ``cast`` and ``lexicon`` serve local
    paragraphs.
    """

    slug: str
    topic: str
    day: int
    headlines: tuple[str, ...]
    leads: tuple[Paragraph | ArticleTable, ...]
    paragraphs: tuple[Paragraph | ArticleTable, ...]
    captions: tuple[str, ...]
    reporter: str
    agency: int
    cast: Cast = field(repr=False)
    lexicon: Lexicon = field(repr=False)


@cache
def names(key: str) -> list[str]:
    """Return one list of names.toml."""
    return [name.replace("_", " ") for name in toml("names.toml")[key].split()]


def town_name(dice: Dice) -> str:
    """Invent the name of a town."""
    lead = dice.pick(names("town_lead")) + " " if dice.chance(20) else ""
    return lead + dice.pick(names("town")) + dice.pick(names("town_end"))


def surname(dice: Dice) -> str:
    """Invent a family name."""
    return dice.pick(names("surname")) + dice.pick(names("surname_end"))


def company_name(dice: Dice) -> str:
    """Invent the name of a company."""
    return f"{dice.pick(names('company'))} {dice.pick(names('company_end')).rstrip('.')}"


def make_lexicon(topic: str, dice: Dice, invented: float = 0) -> Lexicon:
    """Choose and rank the words of a story, from its topic and common ones, with a Zipf distribution.

    ``invented`` % of the words are invented, since real stories have many words that occur in no other story.
    """
    own, common = toml("words.toml")[topic], toml("words.toml")["general"]
    bags = {}
    for name, kind in CLASSES.items():
        topical = dice.sample(own.get(name, "").split(), 24)
        general = dice.sample(common[name].split(), COMMON.get(name, 40))
        pairs = zip_longest(topical, general)
        ranked = [word for word in chain.from_iterable(pairs) if word is not None]
        if invented and name not in ("adv", "feel", "ease"):
            ranked = [invent(dice) if dice.chance(invented) else word for word in ranked]
        for form in FORMS[kind]:
            bags[name + form] = Bag.zipf([inflected(word, kind, form) for word in ranked])
    return bags


def invent(dice: Dice) -> str:
    """Invent a word of two or three syllables."""
    syllables = [dice.pick(ONSETS) + dice.pick(VOWELS) + dice.pick(CODAS) for _ in range(2 + dice.chance(15))]
    return "".join(syllables[:-1]) + syllables[-1] + dice.pick(("d", "l", "n", "r", "t", "k", "m"))


def make_cast(lexicon: Lexicon, dice: Dice) -> Cast:
    """Invent the people, organisations and towns of a story."""
    towns = [town_name(dice) for _ in range(3)]
    people = [make_person(lexicon, dice) for _ in range(dice.between(5, 9))]
    body = lexicon["body"].draw(dice)
    company, area = company_name(dice), dice.pick(("County", "City", "Regional", "Valley", "Area"))
    orgs = [
        (f"the {towns[0]} {area} {title(body)}", f"the {body}"),
        make_alliance(lexicon, dice),
        (company, company.split()[0]),
    ]
    return Cast(people, dice.sample(orgs, 3), towns, dice.pick(names("state")))


def make_person(lexicon: Lexicon, dice: Dice) -> Person:
    """Invent a person."""
    woman = dice.chance(45)
    given = dice.pick(names("women" if woman else "men"))
    return Person(given, surname(dice), woman, lexicon["person"].draw(dice), dice.between(23, 79))


def make_alliance(lexicon: Lexicon, dice: Dice) -> tuple[str, str]:
    """Invent an organisation with a cause."""
    lead, mid = dice.pick(names("org_lead")), dice.pick(names("org_mid"))
    cause = f"{title(lexicon['adj'].draw(dice))} {title(lexicon['thing.s'].draw(dice))}"
    return f"the {lead} {mid} {cause}", f"the {lead.lower()}"


def title(text: str) -> str:
    """Capitalize the first letter of every word."""
    return " ".join(word[:1].upper() + word[1:] for word in text.split(" "))


def date_of(day: int) -> date:
    """Return the date of a day of the collection."""
    return FIRST_DAY + timedelta(days=day)


class ProseWriter:
    """Generator of prose about a story: supplies the grammar with words, names, numbers and dates."""

    def __init__(self, lexicon: Lexicon, cast: Cast, dice: Dice, here: str | None = None) -> None:
        self.dice, self.cast, self.here = dice, cast, here or cast.towns[0]
        self.people = Bag.zipf(cast.people, 1)
        self.orgs = Bag.zipf(cast.orgs, 1)
        self.towns = Bag.zipf(cast.towns, 1)
        self.introduced: set[str] = set()
        self.last: Person | None = None
        self.rules = grammar()
        self.terminals: dict[str, Terminal] = {symbol: partial(bag.draw, dice) for symbol, bag in lexicon.items()}
        self.terminals |= {
            "who": self._who,
            "name": self._name,
            "he": self._he,
            "his": self._his,
            "org": self._org,
            "orgshort": self._orgshort,
            "Orgshort": self._headline_org,
            "town": partial(self.towns.draw, dice),
            "here": lambda: self.here,
            "age": lambda: str(dice.between(23, 79)),
        }
        self.terminals |= number_terminals(dice)

    def paragraph(self, symbol: str) -> Paragraph:
        """Return the sentences of one paragraph."""
        raw = expand(symbol, self.rules, self.terminals, self.dice)
        return tuple(tidy(sentence) for sentence in raw.split(" ^"))

    def line(self, symbol: str) -> str:
        """Return a text without marks for cuts."""
        return tidy(expand(symbol, self.rules, self.terminals, self.dice)).replace("|", "")

    def _who(self) -> str:
        person = self.last = self.people.draw(self.dice)
        if person.surname in self.introduced:
            return person.surname
        self.introduced.add(person.surname)
        full = f"{person.given} {person.surname}"
        form = self.dice.below(5)
        if form == 0:
            return f"{full}, {person.age}, a {person.role} from {self.towns.draw(self.dice)},"
        if form == 1:
            return f"{full}, a {person.role} with {self._org()},"
        if form == 2:
            return f"{person.role} {full}"
        return f"{full}, a {person.role}," if form == 3 else f"{full}, the {person.role},"

    def _name(self) -> str:
        person = self.last = self.people.draw(self.dice)
        if person.surname in self.introduced:
            return person.surname
        self.introduced.add(person.surname)
        return f"{person.given} {person.surname}"

    def _he(self) -> str:
        if self.last is None:
            return self._who()
        return "she" if self.last.woman else "he"

    def _his(self) -> str:
        if self.last is None:
            return "their"
        return "her" if self.last.woman else "his"

    def _org(self) -> str:
        full, short = self.orgs.draw(self.dice)
        if full in self.introduced and self.dice.chance(70):
            return short
        self.introduced.add(full)
        return full

    def _orgshort(self) -> str:
        return self.orgs.draw(self.dice)[1]

    def _headline_org(self) -> str:
        return title(self._orgshort().removeprefix("the "))


def number_terminals(dice: Dice) -> dict[str, Terminal]:
    """Return the terminals of amounts and dates."""
    between = dice.between

    def decimal(high: int) -> str:
        return f"{between(1, high)}.{between(1, 9)}"

    return {
        "few": lambda: dice.pick(FEW),
        "tens": lambda: str(between(13, 97)),
        "hundreds": lambda: str(between(110, 980)),
        "thousands": lambda: f"{between(1, 96)},{between(0, 999):03d}",
        "percent": lambda: f"{between(3, 96) if dice.chance(70) else decimal(19)} percent",
        "money": lambda: f"${between(2, 900) if dice.chance(50) else decimal(9)} million",
        "year": lambda: str(between(1958, 2004)),
        "day": lambda: dice.pick(DAYS),
        "month": lambda: dice.pick(MONTHS),
    }


def make_story(topic: str, day: int, length: int, dice: Dice, lexicon: Lexicon, earlier: Story | None = None) -> Story:
    """Generate a story of ``length`` paragraphs after the lead.

    A follow-up of an `earlier` story has its people, words and two of its background paragraphs.
    """
    lexicon = earlier.lexicon if earlier else lexicon
    cast = earlier.cast if earlier else make_cast(lexicon, dice)
    writer = ProseWriter(lexicon, cast, dice)
    leads = (writer.paragraph("lead"), ProseWriter(lexicon, cast, dice).paragraph("lead"))
    plan = ["history" if i % 5 == 3 else "middle" for i in range(length - 1)] + ["close"]
    paragraphs: list[Paragraph | ArticleTable] = [writer.paragraph(symbol) for symbol in plan]
    if earlier:
        known = [p for i, p in enumerate(earlier.paragraphs) if i % 5 == 3][:2]
        paragraphs[-1:-1] = known
    headlines = tuple(writer.line("headline") for _ in range(6))
    slug = "-".join(plain(lexicon["thing"].items[i]).replace(" ", "-").replace("'", "") for i in (0, 2))
    byline = make_person(lexicon, dice)
    return Story(
        slug,
        topic,
        day,
        headlines,
        leads,
        tuple(paragraphs),
        tuple(writer.line("caption") for _ in range(3)),
        f"{byline.given} {byline.surname}",
        dice.below(len(names("agency"))),
        cast,
        lexicon,
    )
