"""News sites: their typography and templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property

import jinja2

from data.collections.gold.language import HERE, toml
from data.collections.gold.stories import ArticleTable, title

_QUOTES = {
    "straight": ('"', '"', "'", "'", "'"),
    "curly": ("“", "”", "‘", "’", "’"),
    "entity": ("&quot;", "&quot;", "'", "'", "&#39;"),
    "named": ("&ldquo;", "&rdquo;", "&lsquo;", "&rsquo;", "&rsquo;"),
}


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a site writes its articles; sites.toml describes the fields."""

    quotes: str
    dash: str
    dateline: str
    byline: str
    credit: str
    house: Mapping[str, str] = field(hash=False)
    headlines_style: str
    links: bool = False
    pages: int = 0

    @cached_property
    def _typography(self) -> dict[int, str]:
        """Table from characters of neutral text to characters of the style."""
        open_double, close_double, open_single, close_single, apostrophe = _QUOTES[self.quotes]
        return str.maketrans(
            {
                "&": "&amp;",
                "<": "&lt;",
                ">": "&gt;",
                "“": open_double,
                "”": close_double,
                "‘": open_single,
                "’": close_single,
                "'": apostrophe,
            }
        )

    def markup(self, text: str) -> str:
        """Convert neutral text to the style's spelling, quotes and dashes, escaped for HTML."""
        for word, preferred in self.house.items():
            text = text.replace(word, preferred)
        return text.translate(self._typography).replace(" — ", self.dash)

    def headline(self, text: str) -> str:
        """Return a headline in the style's capitalization, as HTML."""
        return self.markup(title(text) if self.headlines_style == "title" else text)

    def block(self, paragraph: Sequence[str] | ArticleTable) -> str:
        """Return a paragraph or table of an article as HTML."""
        if isinstance(paragraph, ArticleTable):
            rows = ("<td>" + "</td><td>".join(map(self.markup, row)) + "</td>" for row in paragraph.rows)
            return "<table><tr>" + "</tr>\n<tr>".join(rows) + "</tr></table>"
        return self.markup(" ".join(paragraph).replace("|", ""))


@dataclass(frozen=True, kw_only=True)
class Site:
    """Site of sites.toml, which describes the fields."""

    key: str
    name: str
    town: str
    state: str
    owner: str
    template: str
    encoding: str
    charset: str
    style: Style
    weight: int
    towns: int
    desks: Sequence[str] = field(hash=False)

    @property
    def domain(self) -> str:
        """Host name in the reserved top-level domain ``example``."""
        return f"www.{self.key.replace('-', '')}.example"


@cache
def sites() -> tuple[Site, ...]:
    """Return the sites of sites.toml, in order."""
    of_style = {item.name for item in fields(Style)}
    read = []
    for key, values in toml("sites.toml").items():
        style = Style(**{name: value for name, value in values.items() if name in of_style})
        read.append(Site(key=key, style=style, **{name: values[name] for name in values.keys() - of_style}))
    return tuple(read)


@cache
def template(name: str) -> jinja2.Template:
    """Return a site template of ``templates/``, whose values `data.collections.gold.pages` supplies as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"dropcap": dropcap, "wrapped": wrapped}
    return environment.get_template(f"{name}.html")


def dropcap(html: str) -> str:
    """Mark up the first letter of a word."""
    return f"<span class=cap>{html[0]}</span>{html[1:]}" if html[0].isalpha() else html


def wrapped(text: str, width: int, prefix: str = "") -> str:
    """Wrap text between words at ``width`` characters."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return f"\n{prefix}".join(lines)
