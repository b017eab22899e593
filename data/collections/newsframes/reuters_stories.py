"""Stories of Reuters-21578 that went out more than once, in the versions in which they went out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

WORDS = re.compile(r"[^\W_]+")
HEADLINE_WORDS = 4
BODY_WORDS = 150
APART = timedelta(hours=48)
SHARED = 0.03
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DATE = re.compile(rf"(\d+)-({'|'.join(_MONTHS)})-(\d{{4}}) (\d+):(\d+):(\d+)")
_SIGN_OFF = re.compile(r"\s*(?:\breuters?\b[\s.;:,\x03-]*)?\x03?\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Text:
    """A text as it was sent.

    Attributes
    ----------
    id : str
        Its number in the collection.
    headline : str
        As it was printed.
    paragraphs : tuple of str
        Its body.
    """

    id: str
    headline: str
    paragraphs: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """Words of the body, lower case."""
        return words("\n".join(self.paragraphs))


@dataclass(frozen=True)
class NewsStory:
    """All texts of one story, in the order in which they went out.

    Attributes
    ----------
    name : str
        Made of the first text's number and the headline.
    texts : tuple of Text
        At least two; some may be equal.
    """

    name: str
    texts: tuple[Text, ...]

    @property
    def versions(self) -> list[Text]:
        """Texts that differ in their words, each once."""
        return list({tuple(text.words): text for text in reversed(self.texts)}.values())[::-1]


def words(text: str) -> list[str]:
    """Return the words of a text: runs of letters and digits, lower case."""
    return WORDS.findall(text.lower())


def grams(tokens: Sequence[str], n: int) -> set[tuple[str, ...]]:
    """Return the different runs of n words."""
    return set(zip(*(tokens[i:] for i in range(n)), strict=False))


def resent(rows: Iterable[Mapping[str, Any]]) -> list[NewsStory]:
    """Group texts by the rule: same headline, soon after one another, long enough.

    What bodies share is not looked at. Headlines are equal in their words and have at least `HEADLINE_WORDS`; a text
    went out at most `APART` after the one before it; bodies have at least `BODY_WORDS`.

    Parameters
    ----------
    rows : iterable of mapping
        ``id``, ``title``, ``date`` and ``body`` of each text, as Reuters-21578 has them.

    Returns
    -------
    list of Story
        In the order of their first texts' dates.
    """
    dated: dict[tuple[str, ...], list[tuple[datetime, int, Text]]] = {}
    for row in rows:
        headline = " ".join(str(row.get("title", "")).split())
        text = Text(str(row["id"]), headline, paragraphs(str(row.get("body", ""))))
        key = tuple(words(headline))
        if len(key) >= HEADLINE_WORDS and len(text.words) >= BODY_WORDS:
            date = _date(str(row["date"]))
            if date is not None:
                dated.setdefault(key, []).append((date, int(text.id), text))
    found = []
    for texts in dated.values():
        texts.sort(key=lambda item: item[:2])
        breaks = [i for i, (a, b) in enumerate(pairwise(texts), 1) if b[0] - a[0] > APART]
        for start, stop in pairwise([0, *breaks, len(texts)]):
            if stop - start >= 2:
                found.append((texts[start][:2], tuple(text for _, _, text in texts[start:stop])))
    return [NewsStory(_name(texts), texts) for _, texts in sorted(found, key=lambda item: item[0])]


def edited(stories: Iterable[NewsStory]) -> list[NewsStory]:
    """Return the stories with at least two different texts."""
    return [story for story in stories if len(story.versions) >= 2]


def apart(stories: Sequence[NewsStory]) -> list[NewsStory]:
    """Return the stories without those that share more than `SHARED` of their 5-grams with an earlier one.

    The share is that of the smaller of both stories' sets of 5-grams.
    """
    kept: list[NewsStory] = []
    sets: list[set[tuple[str, ...]]] = []
    for story in stories:
        own = set().union(*(grams(text.words, 5) for text in story.texts))
        if all(len(own & other) <= SHARED * min(len(own), len(other)) for other in sets):
            kept.append(story)
            sets.append(own)
    return kept


def paragraphs(body: str) -> tuple[str, ...]:
    """Return the paragraphs of a body: they begin with four blanks; the agency's sign-off at the end is left out."""
    parts = re.split(r"\n(?= {3,})|\n\s*\n", _SIGN_OFF.sub("", body))
    return tuple(text for text in (" ".join(part.split()) for part in parts) if text)


def _date(printed: str) -> datetime | None:
    """Read a date such as ``26-FEB-1987 15:01:01.79``; a few texts have none that exists."""
    match = _DATE.search(printed)
    if match is None:
        return None
    day, month, year, hour, minute, second = match.groups()
    try:
        return datetime(int(year), 1 + _MONTHS.index(month), int(day), int(hour), int(minute), int(second))
    except ValueError:
        return None


def _name(texts: Sequence[Text]) -> str:
    slug = "-".join(words(texts[0].headline)[:5])
    return f"{int(texts[0].id):05d}-{slug}"
