"""Identity of what results depend on: JSON values, compared when a stored result is used again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_type_hints
from uuid import uuid4


def identity(value: Any) -> Any:
    """Return JSON that describes a value.

    A value is a number, a string, an enumeration member, a path, a list, tuple, set or mapping of such values, a record
    (a dataclass), or a function of a module. A record becomes an object with the name of its type and its fields,
    except those that its ``repr`` omits. Any other value differs from all values.

    Examples
    --------
    >>> from spotsigs.signatures.idf import IdfFilter
    >>> identity(IdfFilter(idf_min=0.2))["idf_min"]
    0.2
    """
    if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return identity(value.value)
    if isinstance(value, Mapping):
        return {str(key): identity(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [identity(one) for one in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(identity, value), key=json.dumps)
    if is_dataclass(value) and not isinstance(value, type):
        values = {field.name: identity(getattr(value, field.name)) for field in fields(value) if field.repr}
        return {"type": type(value).__name__, **values}
    if isinstance(value, Path):
        return str(value)
    name = getattr(value, "__qualname__", "<")
    return f"{type(value).__name__} {uuid4()}" if "<" in name else f"{value.__module__}.{name}"


def difference(known: Any, given: Any, at: str = "") -> str:
    """Return where two identities differ, in a few words; the empty string if they do not."""
    if isinstance(known, dict) and isinstance(given, dict) and known.get("type") == given.get("type"):
        differences = (difference(known.get(key), given.get(key), key) for key in [*known, *given])
        return next(filter(None, differences), "")
    if known == given:
        return ""
    one, other = _shortened(known), _shortened(given)
    return f"{at}={one!r}, not {other!r}" if at else f"{one}, not {other}"


def _shortened(value: Any) -> Any:
    """Return the name of the type of a record, and any other identity as it is."""
    return value.get("type", value) if isinstance(value, dict) else value


def restored(value: Any, classes: Mapping[str, type]) -> Any:
    """Return the value that an `identity` describes, of records of some classes, by the names of their types.

    Raises
    ------
    KeyError
        If it has a record of another class.
    """
    if isinstance(value, list):
        return [restored(one, classes) for one in value]
    if not isinstance(value, dict) or "type" not in value:
        return value
    cls = classes[value["type"]]
    kinds = get_type_hints(cls)

    def typed(name: str) -> Any:
        kind = kinds[name]
        made = restored(value[name], classes)
        return kind(made) if isinstance(kind, type) and issubclass(kind, Enum) else made

    return cls(**{name: typed(name) for name in value if name != "type"})


def values_of(value: Any, name: str) -> Iterator[Any]:
    """Yield the values of all fields of a name, at any depth of an identity."""
    if isinstance(value, dict):
        if name in value:
            yield value[name]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from values_of(one, name)
