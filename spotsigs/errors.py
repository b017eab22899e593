"""The one exception for what a user can mend."""

import os
from decimal import Decimal
from math import nan
from numbers import Real
from typing import Any


class InputError(ValueError):
    """Bad input or configuration: one sentence that names what, where, and what is allowed."""


def require(condition: bool, sentence: str) -> None:
    """Raise `InputError` with the sentence unless the condition holds."""
    if not condition:
        raise InputError(sentence)


def as_tau(tau: Any) -> float:
    """Return a similarity threshold as the float64 that every test compares with.

    Parameters
    ----------
    tau : number
        In (0, 1]: also a fraction, a decimal, or numpy's.

    Raises
    ------
    InputError
        If it is no such number, or lies outside once it is a float64.
    """
    number = isinstance(tau, (Real, Decimal)) and not isinstance(tau, bool)
    require(number, f"tau must be a number in (0, 1], got {tau!r}")
    try:
        value = float(tau)
    except (OverflowError, ValueError):
        value = nan
    require(0.0 < value <= 1.0, f"tau must lie in (0, 1], got {tau}")
    return value


def printable(text: str) -> str:
    r"""Return untrusted text as it may be printed: no character that a terminal or a log would obey.

    Examples
    --------
    >>> print(printable("two" + chr(10) + "lines"))
    two\nlines
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number of things: ``1 task``, ``2 tasks``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def reason(error: OSError) -> str:
    """Return what the system says is wrong, without the words that libraries put around it.

    Examples
    --------
    >>> import errno
    >>> reason(OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left on device"))
    'No space left on device'
    """
    return os.strerror(error.errno) if error.errno else str(error)
