"""Dates of documents, as tables, archives and HTTP headers write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import numpy as np

UNKNOWN = int(np.iinfo(np.int64).min)
"""Value for a date that is missing or cannot be read."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PARTS = re.compile(r"(\d{4})(?:-?(\d\d))?")
_TIMESTAMP = re.compile(r"(\d{8})(\d{6})(?:\d{3})?")


def microseconds(date: str | None) -> int:
    """Return a date in microseconds since 1970, or `UNKNOWN`.

    Parameters
    ----------
    date : str or None
        ISO 8601 with or without time and zone, the 14 digits of an archive, a year, a year and month, or the form of
        HTTP headers and mail. A time without a zone is in UTC.

    Examples
    --------
    >>> microseconds("Thu, 01 Jan 1970 00:00:01 GMT") == microseconds("1970-01-01T01:00:01+01:00") == 1_000_000
    True
    """
    moment = _moment((date or "").strip())
    if moment is None:
        return UNKNOWN
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _moment(date: str) -> datetime | None:
    if found := _TIMESTAMP.fullmatch(date):
        date = f"{found[1]}T{found[2]}"
    elif found := _PARTS.fullmatch(date):
        date = f"{found[1]}-{found[2] or '01'}-01"
    for form in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return form(date)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def unreadable_dates(names: Iterable[str], dates: Iterable[str | None]) -> Iterator[tuple[str, str]]:
    """Iterate over name and date of each document whose date cannot be read; documents without a date are left out."""
    return ((name, date) for name, date in zip(names, dates, strict=False) if date and microseconds(date) == UNKNOWN)
