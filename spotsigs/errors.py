"""`InputError`, the checks that raise it, and the text of messages.

A message names an option by `option` or `flag`. Whoever prints the message spells the option: `str` of an error as a
keyword and a key of ``run.py``, the command ``spotsigs`` as its own options. A message is therefore the same in every
process.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from enum import Enum
from math import nan
from numbers import Integral, Real
from typing import Any, TypeVar

LONGEST = 60
"""Characters of a value that a message shows."""


_NAME, _VALUE, _END = "\ue000", "\ue001", "\ue002"  # characters for private use, around an option in a message
_OPTION = re.compile(f"{_NAME}(\\w[\\w.]*)(?:{_VALUE}([^{_END}]*))?{_END}")


def option(name: str, value: object = "") -> str:
    """Return an option with its value for a message, see `spelled`.

    Examples
    --------
    >>> spelled(option("tau", 0.44))
    'tau=0.44'
    """
    return f"{_NAME}{name}{_VALUE}{value}{_END}"


def flag(name: str) -> str:
    """Return the name of an option alone for a message, see `spelled`."""
    return f"{_NAME}{name}{_END}"


def as_key(name: str, value: str | None) -> str:
    """Spell an option as a keyword of a function and a key of ``run.py``; without a value, its name alone."""
    return name if value is None else f"{name}={value}"


def spelled(message: str, spelling: Callable[[str, str | None], str] = as_key) -> str:
    """Return a message with its options in the spelling of a door, a function from a name and a value to text."""
    return _OPTION.sub(lambda found: spelling(found[1], found[2]), message)


class InputError(ValueError):
    """Bad input or configuration: one sentence that names the fault, its position, and the allowed values."""

    def __str__(self) -> str:
        return self.spelled()

    def spelled(self, spelling: Callable[[str, str | None], str] = as_key) -> str:
        """Return the sentence with its options in the spelling of a door, see `spotsigs.options.as_option`."""
        return spelled(super().__str__(), spelling)


def require(condition: bool, sentence: str) -> None:
    """Raise `InputError` with the sentence unless the condition holds."""
    if not condition:
        raise InputError(sentence)


def as_tau(tau: Any) -> float:
    """Return a similarity threshold in (0, 1] as a float64, or raise `InputError`.

    Fractions, decimals and numpy's numbers are accepted.
    """
    number = isinstance(tau, (Real, Decimal)) and not isinstance(tau, bool)
    require(number, f"{flag('tau')} must be a number in (0, 1], got {shown(tau)}")
    try:
        value = float(tau)
    except (OverflowError, ValueError):
        value = nan
    require(0.0 < value <= 1.0, f"{flag('tau')} must be in (0, 1], got {tau}")
    return value


def as_count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return a whole number, or raise `InputError` if it is none or out of range; `bool` is no number here."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    require(whole, f"{name} must be a whole number, got {shown(value)}")
    number = int(value)
    allowed = f"must be at least {least}" if most is None else f"must be in [{least}, {most}]"
    require(least <= number and (most is None or number <= most), f"{name} {allowed}, got {number}")
    return number


def as_number(name: str, value: Any) -> float:
    """Return a number as a float, or raise `InputError`."""
    number = isinstance(value, (Real, Decimal)) and not isinstance(value, bool)
    require(number, f"{name} must be a number, got {shown(value)}")
    return float(value)


def as_flag(name: str, value: Any) -> bool:
    """Return a truth value, Python's or numpy's, or raise `InputError`."""
    require(type(value).__name__ in ("bool", "bool_"), f"{name} must be True or False, got {shown(value)}")
    return bool(value)


Choice = TypeVar("Choice", bound=Enum)


def as_choice(name: str, value: Any, choices: type[Choice], note: str = "") -> Choice:
    """Return the member of an enumeration that a value names, or raise `InputError` with all members and a note.

    Examples
    --------
    >>> Size = Enum("Size", {"small": "small", "large": "large"})
    >>> as_choice("size", "smal", Size)
    Traceback (most recent call last):
    ...
    spotsigs.errors.InputError: size must be 'small' or 'large', got 'smal'; did you mean 'small'?
    """
    if isinstance(value, choices):
        return value
    members = {str(member.value): member for member in choices}
    if isinstance(value, str) and value in members:
        return members[value]
    close = did_you_mean(value, members)
    raise InputError(f"{name} must be {either(map(repr, members))}{note}, got {shown(value)}{close}")


def did_you_mean(word: Any, words: Iterable[str]) -> str:
    """Return ``; did you mean 'that'?`` if a word resembles one of the words, else an empty string."""
    from difflib import get_close_matches

    close = get_close_matches(word, list(words), n=1) if isinstance(word, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def either(words: Iterable[str]) -> str:
    """Return alternatives as text: ``a, b or c``."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def shown(value: Any) -> str:
    """Return a value of any type for a message: its repr if that is one short line, else its type."""
    try:
        text = repr(value) if isinstance(value, (str, bytes, int, float, complex, Enum, type(None))) else ""
    except ValueError:  # an integer of too many digits
        text = ""
    return text if 0 < len(text) <= LONGEST else f"an object of type {type(value).__name__}"


def printable(text: str) -> str:
    r"""Return untrusted text with every control, bidirectional and other invisible character escaped.

    Examples
    --------
    >>> print(printable("two" + chr(10) + "lines"))
    two\nlines
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number of things: ``1 task``, ``2 tasks``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


@contextmanager
def system_errors(what: str, way_out: str = "") -> Iterator[None]:
    """Report an error of the system in the block as an `InputError`; that no program reads the output stays one."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"{what}: {reason(error)}{way_out}") from error


def reason(error: OSError) -> str:
    """Return the system's message for an error, without the words that libraries add to it.

    Examples
    --------
    >>> import errno
    >>> reason(OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left on device"))
    'No space left on device'
    """
    return os.strerror(error.errno) if error.errno else str(error)
