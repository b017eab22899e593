"""Stories of Reuters-21578 that were sent more than once, in all their versions."""

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
    """Text as sent by the agency; ``id`` is its number in Reuters-21578."""

    id: str
    headline: str
    paragraphs: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """Lower-cased words of the body."""
        return words("\n".join(self.paragraphs))


@dataclass(frozen=True)
class NewsStory:
    """Two or more texts of a story, in order of time; some may be equal. The name is the first number and headline."""

    name: str
    texts: tuple[Text, ...]

    @property
    def versions(self) -> list[Text]:
        """Texts with distinct words."""
        return list({tuple(text.words): text for text in reversed(self.texts)}.values())[::-1]


def words(text: str) -> list[str]:
    """Return the lower-cased runs of letters and digits of a text."""
    return WORDS.findall(text.lower())


def grams(tokens: Sequence[str], n: int) -> set[tuple[str, ...]]:
    """Return the distinct n-grams of words."""
    return set(zip(*(tokens[i:] for i in range(n)), strict=False))


def resent(rows: Iterable[Mapping[str, Any]]) -> list[NewsStory]:
    """Group texts with the same headline that were sent within a short time and are long enough.

    The rule does not use the similarity of bodies. Headlines have the same words, at least `HEADLINE_WORDS`. A text is
    at most `APART` later than the previous one. Bodies have at least `BODY_WORDS`. Stories are in order of their first
    texts. A row has ``id``, ``title``, ``date`` and ``body`` of a text of Reuters-21578.
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
    stories_resent = []
    for texts in dated.values():
        texts.sort(key=lambda item: item[:2])
        breaks = [i for i, (a, b) in enumerate(pairwise(texts), 1) if b[0] - a[0] > APART]
        for start, stop in pairwise([0, *breaks, len(texts)]):
            if stop - start >= 2:
                stories_resent.append((texts[start][:2], tuple(text for _, _, text in texts[start:stop])))
    return [NewsStory(_name(texts), texts) for _, texts in sorted(stories_resent, key=lambda item: item[0])]


def edited(stories: Iterable[NewsStory]) -> list[NewsStory]:
    """Return the stories with at least two distinct texts."""
    return [story for story in stories if len(story.versions) >= 2]


def apart(stories: Sequence[NewsStory]) -> list[NewsStory]:
    """Drop the stories that share more than a fraction `SHARED` of their 5-grams with an earlier one.

    The fraction is relative to the smaller of the two sets of 5-grams.
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
    """Return the paragraphs of a body, which start with four blanks, without the agency's sign-off."""
    parts = re.split(r"\n(?= {3,})|\n\s*\n", _SIGN_OFF.sub("", body))
    return tuple(text for text in (" ".join(part.split()) for part in parts) if text)


def _date(printed: str) -> datetime | None:
    """Parse a date such as ``26-FEB-1987 15:01:01.79``; return None if it is invalid."""
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
