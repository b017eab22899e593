"""Simplification of HTML before parsing: keep only the markup that affects the visible text.

A parser spends most of its time on elements and attributes that do not change the text. This pass drops comments,
attributes, elements that browsers do not show, and nearly all tags. It writes a space before every tag that is not
inline, so that the text of the parsed tree needs no separators. The tags of tables remain, because the parser moves
text that is in no cell out of its table; so do the tags of form controls that end or limit markup. The parser finds the
body and resolves character references.

Tags, comments and raw text end as in the tokenizer of the HTML Standard (section 13.2.5). That tokenizer depends on the
tree in two cases, raw text elements and CDATA sections inside SVG and MathML; in these, this pass is approximate.

On request, three control characters mark links and blocks. No token contains them, and the parser treats them as text.
Two mark the start and the end of a link's content. The third, a form feed, replaces the space before a tag; it is white
space to the parser, so it remains inside a table. The other two, between the tags of a table's rows, are moved out of
the table like any text there, and the link counts as empty.
"""

from __future__ import annotations

import numpy as np

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.types import Bytes, UInt64s

BLOCK_MARK, LINK_MARK, LINK_END_MARK = "\f", "\x1e", "\x1f"
"""Marks of a new block, the start of a link and its end."""

UNMARKED = bytes.maketrans((LINK_MARK + LINK_END_MARK).encode(), b"  ")
"""Table for ``bytes.translate`` that replaces a document's own link marks by spaces."""

# Kinds of elements. The end tags of the first three are never written.
_BLOCK, _SOLID, _HEAD, _INLINE, _HIDDEN, _SCRIPT, _LITERAL, _KEPT, _TABLE, _TEMPLATE, _SELECT, _FRAMES, _FOREIGN = (
    range(13)
)
_NAMES_OF_KIND = {
    # Separate words and begin the body. After these, a <frameset> is ignored; all unknown elements are _BLOCK.
    _SOLID: """applet area body br button dd dt embed hr image img li listing marquee object pre""",
    _HEAD: "base basefont bgsound head html link meta",  # do not begin the body
    _INLINE: """a abbr acronym b bdi bdo big blink cite code data del dfn em font i ins kbd mark nobr q s samp small
        span strike strong sub sup time tt u var wbr""",  # do not separate words
    _HIDDEN: "iframe noembed noframes noscript style",  # with content that is no markup and that browsers hide
    _SCRIPT: "script",
    _LITERAL: "textarea title xmp",  # with content that is no markup and that browsers show
    _KEPT: "caption col colgroup input keygen plaintext tbody td tfoot th thead tr",
    _TABLE: "table",
    _TEMPLATE: "template",
    _SELECT: "select",
    _FRAMES: "frameset",
    _FOREIGN: "math svg",
}
# Formatting elements, which a parser opens again each time the element that contains them ends.
_FORMAT_NAMES = "b big code em font i nobr s small strike strong tt u"
# Elements that nest no deeper without an end tag: void ones, and those that the next one closes.
_FLAT_NAMES = """a area base basefont bgsound body br caption col colgroup dd dt embed frame head hr html image img
    input keygen li link meta optgroup option p param rp rt source tbody td tfoot th thead tr track wbr"""
# Elements without an end tag.
_VOID_NAMES = "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr"
# An element's traits are one byte:  7 | 6: void | 5: flat | 4: formatting | 3 2 1 0: kind
_KIND, _FORMAT, _FLAT, VOID = 15, 16, 32, 64

MAX_TABLES = 300
"""Tables nested in each other; the parser's time is quadratic in the depth."""
_MAX_REFERENCE = 40  # bytes; no character reference is longer
_SPACE, _BANG, _QUOTE, _HASH, _AMPERSAND, _APOSTROPHE = b" !\"#&'"
_DASH, _SLASH, _LT, _EQUALS, _GT, _QUESTION = b"-/<=>?"
_NEW_BLOCK, _LINK, _LINK_END = map(ord, (BLOCK_MARK, LINK_MARK, LINK_END_MARK))
_SHADOW_ROOT = b"shadowroot"  # begins the attributes of a declarative shadow root: its content is shown
_A, _HREF = (np.uint64(int.from_bytes(name, "big")) for name in (b"a", b"href"))
_GOLDEN, _SLOT_BITS = np.uint64(0x9E3779B97F4A7C15), 9


def packed_name(name: str) -> int:
    """Return the key of a name, as `name_end` does: its last eight bytes, complemented if it is longer."""
    key = int.from_bytes(name.encode()[-8:], "big")
    return key if len(name) <= 8 else key ^ (1 << 64) - 1


def _element_table() -> tuple[UInt64s, Bytes]:
    """Return a hash table of packed element names (linear probing, 0 for an empty slot) and their traits."""
    traits = dict.fromkeys(f"{_FORMAT_NAMES} {_FLAT_NAMES} {_VOID_NAMES}".split(), _BLOCK)
    traits |= {name: kind for kind, names in _NAMES_OF_KIND.items() for name in names.split()}
    for trait, names in ((_FORMAT, _FORMAT_NAMES), (_FLAT, _FLAT_NAMES), (VOID, _VOID_NAMES)):
        traits |= {name: traits[name] | trait for name in names.split()}
    keys, values = np.zeros(1 << _SLOT_BITS, np.uint64), np.zeros(1 << _SLOT_BITS, np.uint8)
    for name in sorted(traits):
        key = packed_name(name)
        slot = (key * int(_GOLDEN) & (1 << 64) - 1) >> 64 - _SLOT_BITS
        while keys[slot]:
            slot = (slot + 1) & (1 << _SLOT_BITS) - 1
        keys[slot], values[slot] = key, traits[name]
    return keys, values


ELEMENT_KEYS, ELEMENT_TRAITS = _element_table()
"""Hash table of the names of elements, see `slot_of`: packed names, and the traits of each."""


@kernel
def _is_white(byte: int) -> bool:
    return byte == _SPACE or byte == 10 or byte == 13 or byte == 9 or byte == 12


@kernel
def is_letter(byte: int) -> bool:
    """Return whether a byte is a letter of ASCII."""
    return 97 <= byte | 32 <= 122


@kernel
def _find(html: Bytes, byte: int, at: int) -> int:
    """Return the first position of a byte at or after ``at``, or the length."""
    while at < len(html) and html[at] != byte:
        at += 1
    return at


@kernel
def name_end(html: Bytes, at: int) -> tuple[np.uint64, int]:
    """Return the lower-cased, packed element name at a position, and its end."""
    key, end = np.uint64(0), at
    while end < len(html) and html[end] != _GT and html[end] != _SLASH and not _is_white(html[end]):
        key = (key << np.uint64(8)) | np.uint64(html[end] | 32)
        end += 1
    # The complement distinguishes a longer name from the known one that its last eight bytes spell.
    return (key if end - at <= 8 else ~key), end


@kernel
def tag_end(html: Bytes, at: int) -> tuple[int, bool, bool, int]:
    """Return the end of a tag (-1 without one), and if it ends with ``/>``, has an ``href``; its attributes' number."""
    is_closed = has_href = False
    attributes = 0
    while at < len(html):
        byte = html[at]
        at += 1
        if byte == _GT:
            return at, is_closed, has_href, attributes
        is_closed = byte == _SLASH
        if is_closed or _is_white(byte):
            continue
        start, attributes = at - 1, attributes + 1
        while at < len(html) and not (
            html[at] == _EQUALS or html[at] == _GT or html[at] == _SLASH or _is_white(html[at])
        ):
            at += 1
        has_href |= at - start == 4 and name_end(html[:at], start)[0] == _HREF
        while at < len(html) and _is_white(html[at]):
            at += 1
        if at == len(html) or html[at] != _EQUALS:
            continue
        at += 1
        while at < len(html) and _is_white(html[at]):
            at += 1
        if at < len(html) and (html[at] == _QUOTE or html[at] == _APOSTROPHE):
            at = _find(html, html[at], at + 1) + 1
        else:
            while at < len(html) and html[at] != _GT and not _is_white(html[at]):
                at += 1
    return -1, False, has_href, attributes


@kernel
def _is_shadow_root(html: Bytes, at: int, end: int) -> bool:
    """Return whether the start tag of a template, ``html[at:end]`` after the name, has an attribute ``shadowroot…``."""
    while at + len(_SHADOW_ROOT) < end:
        if _is_white(html[at]) or html[at] == _SLASH:
            same = True
            for k in range(len(_SHADOW_ROOT)):
                same &= html[at + 1 + k] | 32 == _SHADOW_ROOT[k]
            if same:
                return True
        at += 1
    return False


@kernel
def declaration_end(html: Bytes, at: int) -> int:
    """Return the position after the comment or declaration at a ``<``, or the same position if it is text."""
    following = html[at + 1]
    if following != _BANG and following != _QUESTION and following != _SLASH:
        return at
    if following != _BANG or at + 3 >= len(html) or html[at + 2] != _DASH or html[at + 3] != _DASH:
        return min(_find(html, _GT, at + 2) + 1, len(html))
    text = at + 4
    at = text
    while at < len(html):
        at = _find(html, _GT, at) + 1
        size = at - 1 - text
        if size == 0 or (size == 1 and html[text] == _DASH):
            return at
        if size >= 2 and html[at - 2] == _DASH and html[at - 3] == _DASH:
            return at
        if size >= 3 and html[at - 2] == _BANG and html[at - 3] == _DASH and html[at - 4] == _DASH:
            return at
    return len(html)


@kernel
def _spells(html: Bytes, at: int, start: int, end: int) -> bool:
    """Return whether the name at a position equals ``html[start:end]``, ignoring case."""
    last = at + end - start
    if last >= len(html) or not (html[last] == _GT or html[last] == _SLASH or _is_white(html[last])):
        return False
    while start < end and html[at] | 32 == html[start] | 32:
        start, at = start + 1, at + 1
    return start == end


@kernel
def raw_text_end(html: Bytes, at: int, start: int, end: int, is_script: bool) -> int:
    """Return the position of the end tag of the raw text element named ``html[start:end]``.

    In scripts, between ``<!--`` and ``-->``, the tags of a nested script are text.
    """
    is_escaped = is_nested = False
    while at < len(html):
        byte = html[at]
        if byte == _LT and at + 1 < len(html):
            if html[at + 1] == _SLASH and _spells(html, at + 2, start, end):
                if not is_nested:
                    return at
                is_nested = False
            elif is_script and is_escaped and _spells(html, at + 1, start, end):
                is_nested = True
            elif is_script and not is_escaped and at + 3 < len(html):
                is_escaped = html[at + 1] == _BANG and html[at + 2] == _DASH and html[at + 3] == _DASH
        elif byte == _GT and is_escaped and html[at - 1] == _DASH and html[at - 2] == _DASH:
            is_escaped = is_nested = False
        at += 1
    return at


@kernel
def slot_of(key: np.uint64, keys: UInt64s) -> np.int64:
    """Return the slot of a name in the table, or an empty slot for an unknown name."""
    slot = key * _GOLDEN >> np.uint64(64 - _SLOT_BITS)
    while keys[slot] != key and keys[slot] != 0:
        slot = (slot + np.uint64(1)) & np.uint64((1 << _SLOT_BITS) - 1)
    return np.int64(slot)


@kernel
def raw_text_kind(traits: int) -> int:
    """Return 0 for an element whose content is markup, 2 for a script, and 1 for another one with raw text."""
    kind = traits & _KIND
    return 2 if kind == _SCRIPT else int(kind in (_HIDDEN, _LITERAL))


@kernel
def _write_tag(html: Bytes, start: int, end: int, is_end: bool, is_closed: bool, out: Bytes, size: int) -> int:
    """Write a tag without attributes; return the new size."""
    out[size] = _LT
    out[size + 1] = _SLASH
    size += 2 if is_end else 1
    for at in range(start, end):
        out[size] = html[at]
        size += 1
    out[size] = _SLASH
    size += is_closed
    out[size] = _GT
    return size + 1


@kernel
def _write_name(out: Bytes, size: int, tag: bytes) -> int:
    """Append a tag; return the new size."""
    for letter in tag:
        out[size] = letter
        size += 1
    return size


@kernel
def _write_nothing(out: Bytes, size: int) -> int:
    """Return the size after dropping markup; a ``<wbr>`` replaces it if an unfinished character reference precedes."""
    at = size - 1
    while at > max(size - _MAX_REFERENCE, 0) and (is_letter(out[at]) or 48 <= out[at] <= 57 or out[at] == _HASH):
        at -= 1
    if at >= 0 and out[at] == _AMPERSAND:
        return _write_name(out, size, b"<wbr>")
    return size


@kernel
def _simplify(html: Bytes, keys: UInt64s, traits: Bytes, out: Bytes, marked: bool, is_xhtml: bool) -> int:
    """Write the simplified page, with marks on request; return its size, or -1 if it must be converted from XHTML."""
    at, size = int(np.int64(0)), int(np.int64(0))  # a literal compiles what is called twice
    tables = templates = shown = foreign = 0  # open elements; shown: templates whose content is
    in_select = has_frames = has_body = is_solid = False
    while at < len(html):
        if html[at] != _LT or at + 1 == len(html):
            out[size] = html[at]
            size, at = size + (templates == 0), at + 1
            continue
        is_end = html[at + 1] == _SLASH
        start = at + 2 if is_end else at + 1
        if start == len(html) or not is_letter(html[start]):
            after = declaration_end(html, at) if start < len(html) else at
            if is_xhtml and after >= len(html):  # perhaps a comment without an end
                return -1
            if after == at:  # text; the space prevents a tag with the text after a dropped tag
                out[size], out[size + 1] = _LT, _SPACE
                size, at = size + 2 * (templates == 0), at + 1
            else:
                size, at = _write_nothing(out, size), after
            continue
        key, end = name_end(html, start)
        at, is_closed, has_href, _ = tag_end(html, end)
        if at < 0:
            if is_xhtml:
                return -1
            break  # the standard drops a tag without an end, too
        slot = slot_of(key, keys)
        kind = traits[slot] & _KIND
        if is_xhtml and is_closed and not is_end and not traits[slot] & VOID:
            return -1
        if kind == _INLINE:
            size = _write_nothing(out, size)
            if marked and key == _A and templates == 0:
                out[size] = _LINK if has_href and not is_end else _LINK_END
                size += 1
            continue
        before = out[size - 1] if size > 0 else _GT
        if before != _GT and (before != _NEW_BLOCK if marked else not _is_white(before)):
            out[size] = _NEW_BLOCK if marked else _SPACE
            size += 1
        if kind == _FOREIGN:
            foreign = max(foreign - 1, 0) if is_end else foreign + (not is_closed)
        if is_closed and foreign:
            continue  # in SVG and MathML, "/>" closes an element
        if kind == _LITERAL and (foreign or in_select or has_frames):
            kind = _BLOCK  # there, its content is markup; not where XHTML is converted
            if is_xhtml and not is_end:
                return -1
        if kind == _TEMPLATE and not foreign and templates == 0:
            if is_end and shown:
                shown, kind = shown - 1, _BLOCK
            elif not is_end and _is_shadow_root(html, end, at):
                shown, kind = shown + 1, _BLOCK
        if kind == _TEMPLATE and not foreign:  # its content is not shown
            templates = max(templates - 1, 0) if is_end else templates + 1
        if (kind in (_HIDDEN, _SCRIPT) or (kind == _LITERAL and templates)) and not is_end:
            at = raw_text_end(html, at, start, end, kind == _SCRIPT)
            if is_xhtml and at == len(html):
                return -1
        if templates or kind in (_TEMPLATE, _HIDDEN, _SCRIPT, _HEAD):
            continue
        if kind in (_BLOCK, _FOREIGN, _SOLID):
            # A parser in the head begins the body. One tag is enough, and a second one that refuses a <frameset>.
            if not is_end and not is_solid and (kind == _SOLID or not has_body):
                size = _write_name(out, size, b"<br>" if kind == _SOLID else b"<p>")
                has_body, is_solid = True, kind == _SOLID
            continue
        if kind == _TABLE:
            tables += 1 if not is_end else -min(tables, 1)
            if tables + is_end > MAX_TABLES:
                continue
        elif kind == _SELECT:
            in_select = not is_end
        elif kind == _FRAMES:
            if is_end or has_frames:
                continue
            has_frames = True
        size = _write_tag(html, start, end, is_end, is_closed, out, size)
        if kind == _LITERAL and not is_end:
            text_end = raw_text_end(html, at, start, end, kind == _SCRIPT)
            if is_xhtml and text_end == len(html):
                return -1
            while at < text_end:
                out[size] = html[at]
                size, at = size + 1, at + 1
    return size


@kernel
def _cost(html: Bytes, keys: UInt64s, traits: Bytes) -> tuple[int, int, int]:
    at = int(np.int64(0))
    depth = deepest = formats = again = attributes = 0
    opened = np.zeros(len(keys), np.int64)  # by name: start tags without an end tag
    while at + 1 < len(html):
        at = _find(html, _LT, at)
        is_end = at + 1 < len(html) and html[at + 1] == _SLASH
        start = at + 2 if is_end else at + 1
        if start >= len(html) or not is_letter(html[start]):
            at = max(declaration_end(html, at), at + 1) if start < len(html) else len(html)
            continue
        key, end = name_end(html, start)
        at, is_closed, _, n_attributes = tag_end(html, end)
        attributes, again = max(attributes, n_attributes), again + formats
        if at < 0:
            break
        slot = slot_of(key, keys)
        kind = traits[slot] & _KIND
        if kind in (_HIDDEN, _SCRIPT, _LITERAL) and not is_end and not is_closed:
            at = raw_text_end(html, at, start, end, kind == _SCRIPT)
        if traits[slot] & _FLAT or (is_closed and not is_end):
            continue
        change = 1 if not is_end else -min(opened[slot], 1)
        opened[slot] += change
        depth += change
        deepest = max(deepest, depth)
        if traits[slot] & _FORMAT:
            formats += change
    return deepest, again, attributes


def parsing_cost(html: bytes) -> tuple[int, int, int]:
    """Estimate the quantities that determine the time and memory of a parser, in addition to the size of the page.

    A tag that ends with ``/>`` is taken to be closed, and an end tag to close the last element of its name; a page that
    is written to mislead can nest deeper.

    Returns
    -------
    deepest : int
        Depth of nesting: the parser's time is quadratic in it. Elements that the parser closes by itself do not count.
    again : int
        Elements that the parser opens again: ``<p><b><i>one<p>two`` opens two.
    attributes : int
        Largest number of attributes of a tag: some parsers compare each with all others.
    """
    return _cost(np.frombuffer(html, np.uint8), ELEMENT_KEYS, ELEMENT_TRAITS)


def simplify(html: bytes, *, marked: bool = False) -> bytes:
    """Drop the markup that does not affect the text of a page.

    Parameters
    ----------
    html : bytes
        Page in UTF-8, or in any superset of ASCII.
    marked : bool
        Mark links and blocks; the page must not contain such characters itself (`UNMARKED`). `LINK_MARK` follows the
        start tag of a link (an ``a`` with an ``href``), `LINK_END_MARK` replaces the end tag or precedes the next
        ``a``, and `BLOCK_MARK` replaces the space.

    Returns
    -------
    bytes
        Page without attributes, comments, hidden elements and most tags, with a space for each tag that follows a
        word, and tables nested at most 300 deep.
    """
    out = np.empty(2 * len(html) + 8, np.uint8)
    size = _simplify(np.frombuffer(html, np.uint8), ELEMENT_KEYS, ELEMENT_TRAITS, out, marked, False)
    return out[:size].tobytes()


def simplify_xhtml(xhtml: bytes, *, marked: bool = False) -> bytes | None:
    """Simplify a page of XHTML as `simplify` does, or return None if it must be converted into HTML first.

    Nearly no page must: XHTML is written so that browsers read it as HTML. A page need not be converted if
    `spotsigs.text.xhtml.as_html` would return it as it is. It must have no CDATA section.
    """
    out = np.empty(2 * len(xhtml) + 8, np.uint8)
    size = _simplify(np.frombuffer(xhtml, np.uint8), ELEMENT_KEYS, ELEMENT_TRAITS, out, marked, True)
    return None if size < 0 else out[:size].tobytes()
