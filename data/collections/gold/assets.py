"""Inline styles and scripts: most of a page's bytes, constant for each site, without prose."""

from __future__ import annotations

import re

from data.collections.gold.language import Terminal, toml
from data.collections.gold.random_streams import Dice

_SLOT = re.compile("@([a-z])")


def css(dice: Dice, size: int) -> str:
    """Return about ``size`` bytes of style rules."""
    lists, rules, total = toml("assets.toml"), [], 0
    parts = lists["parts"].split()
    while total < size:
        properties = dice.sample(lists["properties"], dice.between(2, 6))
        selector = f".{dice.pick(parts)}{dice.pick(lists['states'])}"
        rules.append(_filled(f"{selector} {{ {'; '.join(properties)} }}", "", dice))
        total += len(rules[-1]) + 1
    return "\n".join(rules)


def js(dice: Dice, size: int) -> str:
    """Return about ``size`` bytes of script, with markup and closing tags inside its strings."""
    lists, functions, total = toml("assets.toml"), [], 0
    parts, verbs = lists["parts"].split(), lists["verbs"].split()
    while total < size:
        name = f"{dice.pick(verbs)}{dice.pick(parts).capitalize()}{dice.below(30)}"
        functions.append(_filled(dice.pick(lists["functions"]), name, dice))
        total += len(functions[-1]) + 1
    return "\n".join(functions)


def _filled(text: str, name: str, dice: Dice) -> str:
    """Fill the slots of a text in assets.toml."""
    makers: dict[str, Terminal] = {
        "n": lambda: name,
        "c": lambda: f"{dice.below(1 << 24):06x}",
        "d": lambda: str(dice.between(1, 40)),
        "k": lambda: str(dice.between(41, 980)),
        "f": lambda: dice.pick(toml("assets.toml")["fonts"]),
    }
    return _SLOT.sub(lambda match: makers[match[1]](), text)
