"""Simplification of HTML before parsing: keep only the markup that affects the visible text.

A parser spends most of its time on elements and attributes that do not change the text. This pass drops comments,
attributes, elements that browsers do not show, and the tags of inline elements. It writes a space before every other
tag, so that the text of the parsed tree needs no separators. The parser then builds the tree, finds the body and
resolves character references.

Tags, comments and raw text end as in the tokenizer of the HTML Standard (section 13.2.5). That tokenizer depends on the
tree in two cases, raw text elements and CDATA sections inside SVG and MathML; in these, this pass is approximate.

On request, three control characters mark links and blocks. No token contains them, and the parser treats them as text.
Two mark the start and the end of a link's content. The third, a form feed, replaces the space before a tag; it is white
space to the parser, so it remains inside a table. The other two, between the tags of a table's rows, are moved out of
the table like any text there, and the link counts as empty.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

BLOCK_MARK, LINK_MARK, LINK_END_MARK = "\f", "\x1e", "\x1f"
"""Marks of a new block, the start of a link and its end."""

UNMARKED = bytes.maketrans((LINK_MARK + LINK_END_MARK).encode(), b"  ")
"""Table for ``bytes.translate`` that replaces a document's own link marks by spaces."""

# Inline elements, which do not separate words. All others do, including unknown ones.
_INLINE_NAMES = """a abbr acronym b bdi bdo big blink cite code data del dfn em font i ins kbd mark nobr q s samp small
    span strike strong sub sup time tt u var wbr"""
# Formatting elements, which the parser opens again each time the element that contains them ends.
_FORMAT_NAMES = "b big code em font i nobr s small strike strong tt u"
# Elements whose content is not markup: those that browsers hide, and those that they show.
_HIDDEN_NAMES = "iframe noembed noframes noscript style"
_LITERAL_NAMES = "textarea title xmp"
# Elements that may remain open without nesting deeper: void ones, and those that the next one closes.
_FLAT_NAMES = """area base basefont bgsound body br caption col colgroup embed frame head hr html img
    input keygen link meta option p param source tbody td tfoot th thead tr track"""
# Elements that the next one closes only across paragraphs and divisions: <li><dt><li> nests.
_ITEM_NAMES = "dd dt li"
# Special elements of the standard: the end tag of an unknown element closes no element beyond them.
_SPECIAL_NAMES = """address applet article aside blockquote button center dd details dir div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 header hgroup li listing main marquee menu nav object ol p plaintext
    pre search section select summary table template ul ruby body br embed head hr img meta"""
# Elements beyond which only the end tags of a table and a template close an element.
_BARRIER_NAMES = """applet marquee object select table template annotation-xml desc foreignobject mi mn mo ms mtext
    title"""
# Elements whose end tags are stopped by the preceding list alone.
_SCOPED_NAMES = """address applet article aside blockquote button center dd details dir div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 header hgroup li listing main marquee menu nav object ol p pre search section
    select summary ul"""
_SPECIAL, _BARRIER, _SCOPED, _ROOT, _FORMAT = 1, 2, 4, 8, 16  # roles on the stack; _ROOT: svg and math
_NESTED, _INLINE, _HIDDEN, _SCRIPT, _LITERAL, _FLAT, _FOREIGN, _ITEM = range(8)

_MAX_DEPTH = 512  # browsers have such a limit; the parser's time is quadratic in the depth
_MAX_REFERENCE = 40  # bytes; no character reference is longer
_SPACE, _BANG, _QUOTE, _HASH, _AMPERSAND, _APOSTROPHE = b" !\"#&'"
_DASH, _SLASH, _LT, _EQUALS, _GT, _QUESTION, _BRACKET = b"-/<=>?]"
_BLOCK, _LINK, _LINK_END = map(ord, (BLOCK_MARK, LINK_MARK, LINK_END_MARK))
_A, _HREF = (np.uint64(int.from_bytes(name, "big")) for name in (b"a", b"href"))
_DD, _DT, _P, _DIV, _ADDRESS, _LI, _OL, _UL, _BUTTON, _FORM, _TABLE, _TEMPLATE, _SELECT, _FRAMESET = (
    np.uint64(int.from_bytes(name, "big"))
    for name in (
        b"dd", b"dt", b"p", b"div", b"address", b"li", b"ol", b"ul", b"button", b"form", b"table", b"template",
        b"select", b"frameset",
    )
)  # fmt: skip
_BR, _WBR, _NOSCRIPT = (np.uint64(int.from_bytes(name, "big")) for name in (b"br", b"wbr", b"noscript"))
_GOLDEN, _SLOT_BITS = np.uint64(0x9E3779B97F4A7C15), 9


def _packed(name: str) -> int:
    """Return the key of a name, equal to that of `_name_end`."""
    key = int.from_bytes(name.encode()[-8:], "big")
    return key if len(name) <= 8 else key ^ (1 << 64) - 1


def _element_table() -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.uint8]]:
    """Return a hash table of packed element names (linear probing, 0 for an empty slot), their kinds and roles."""
    kinds = {"script": _SCRIPT, "svg": _FOREIGN, "math": _FOREIGN}
    for names, kind in (
        (_INLINE_NAMES, _INLINE),
        (_HIDDEN_NAMES, _HIDDEN),
        (_LITERAL_NAMES, _LITERAL),
        (_FLAT_NAMES, _FLAT),
        (_ITEM_NAMES, _ITEM),
    ):
        kinds |= dict.fromkeys(names.split(), kind)
    roles = {"svg": _ROOT, "math": _ROOT}
    for names, role in (
        (_SPECIAL_NAMES, _SPECIAL),
        (_BARRIER_NAMES, _BARRIER),
        (_SCOPED_NAMES, _SCOPED),
        (_FORMAT_NAMES, _FORMAT),
    ):
        roles |= {name: roles.get(name, 0) | role for name in names.split()}
    keys, found = np.zeros(1 << _SLOT_BITS, np.uint64), np.zeros((2, 1 << _SLOT_BITS), np.uint8)
    for name in sorted({*kinds, *roles}):
        key = _packed(name)
        slot = (key * int(_GOLDEN) & (1 << 64) - 1) >> 64 - _SLOT_BITS
        while keys[slot]:
            slot = (slot + 1) & (1 << _SLOT_BITS) - 1
        keys[slot] = key
        found[:, slot] = kinds.get(name, _NESTED), roles.get(name, 0)
    return keys, found[0], found[1]


_KEYS, _KINDS, _ROLES = _element_table()


@njit(cache=True, nogil=True)
def _is_white(byte: int) -> bool:
    return byte == _SPACE or byte == 10 or byte == 13 or byte == 9 or byte == 12


@njit(cache=True, nogil=True)
def _is_letter(byte: int) -> bool:
    return 97 <= byte | 32 <= 122


@njit(cache=True, nogil=True)
def _find(html: NDArray[np.uint8], byte: int, at: int) -> int:
    """Return the first position of a byte at or after ``at``, or the length."""
    while at < len(html) and html[at] != byte:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _name_end(html: NDArray[np.uint8], at: int) -> tuple[np.uint64, int]:
    """Return the lower-cased, packed element name at a position, and its end."""
    key, end = np.uint64(0), at
    while end < len(html) and html[end] != _GT and html[end] != _SLASH and not _is_white(html[end]):
        key = (key << np.uint64(8)) | np.uint64(html[end] | 32)
        end += 1
    # The complement distinguishes a longer name from the known one that its last eight bytes spell.
    return (key if end - at <= 8 else ~key), end


@njit(cache=True, nogil=True)
def _tag_end(html: NDArray[np.uint8], at: int) -> tuple[int, bool, bool, int]:
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
        has_href |= at - start == 4 and _name_end(html[:at], start)[0] == _HREF
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


@njit(cache=True, nogil=True)
def _declaration_end(html: NDArray[np.uint8], at: int) -> int:
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


@njit(cache=True, nogil=True)
def _cdata_end(html: NDArray[np.uint8], at: int) -> int:
    """Return the end of the CDATA section at a ``<``, or the same position if there is none."""
    for k, letter in enumerate(b"<![CDATA["):
        if at + k >= len(html) or html[at + k] != letter:
            return at
    at += 9
    while at < len(html) and not (html[at] == _GT and html[at - 1] == _BRACKET and html[at - 2] == _BRACKET):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _spells(html: NDArray[np.uint8], at: int, start: int, end: int) -> bool:
    """Return whether the name at a position equals ``html[start:end]``, ignoring case."""
    last = at + end - start
    if last >= len(html) or not (html[last] == _GT or html[last] == _SLASH or _is_white(html[last])):
        return False
    while start < end and html[at] | 32 == html[start] | 32:
        start, at = start + 1, at + 1
    return start == end


@njit(cache=True, nogil=True)
def _raw_text_end(html: NDArray[np.uint8], at: int, start: int, end: int, is_script: bool) -> int:
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


@njit(cache=True, nogil=True)
def _slot_of(key: np.uint64, keys: NDArray[np.uint64]) -> np.int64:
    """Return the slot of a name in the table, or an empty slot for an unknown name."""
    slot = key * _GOLDEN >> np.uint64(64 - _SLOT_BITS)
    while keys[slot] != key and keys[slot] != 0:
        slot = (slot + np.uint64(1)) & np.uint64((1 << _SLOT_BITS) - 1)
    return np.int64(slot)


@njit(cache=True, nogil=True)
def _close(stack: NDArray[np.uint64], roles: NDArray[np.uint8], depth: int, key: np.uint64, role: np.uint8) -> int:
    """Return the depth after an end tag; the search for its start tag stops at the same elements as in the standard.

    If the standard's parser closes more elements, the depth returned is larger: it is an upper bound.
    """
    stops = _BARRIER if role & (_SCOPED | _FORMAT) else _SPECIAL | _BARRIER
    for level in range(depth - 1, -1, -1):
        open_key = stack[level]
        if open_key == key:
            if (key != _FORM and not role & _FORMAT) or level == depth - 1:
                return level
            for k in range(level, depth - 1):  # the elements inside remain open
                stack[k], roles[k] = stack[k + 1], roles[k + 1]
            return depth - 1
        if key == _TEMPLATE or (key == _TABLE and open_key != _TEMPLATE):
            continue
        if roles[level] & stops or (key == _P and open_key == _BUTTON) or (key == _LI and open_key in (_OL, _UL)):
            break
    return depth


@njit(cache=True, nogil=True)
def _is_foreign(roles: NDArray[np.uint8], depth: int) -> bool:
    """Return whether the current content is SVG or MathML, in which ``/>`` closes an element."""
    for level in range(depth - 1, -1, -1):
        if roles[level]:
            return bool(roles[level] == _ROOT)
    return False


@njit(cache=True, nogil=True)
def _may_be_foreign(roles: NDArray[np.uint8], depth: int) -> bool:
    """Return whether the current content may be SVG or MathML, which not every special element ends."""
    return bool((roles[:depth] & _ROOT).any())


@njit(cache=True, nogil=True)
def _end_foreign(stack: NDArray[np.uint64], roles: NDArray[np.uint8], depth: int) -> None:
    """Hide open SVG and MathML elements from end tags: an element of HTML may have ended them or nests in them."""
    for level in range(depth - 1, -1, -1):
        if roles[level] not in (0, _ROOT):
            break
        stack[level] = 0
        if roles[level]:
            roles[level] |= _SPECIAL


@njit(cache=True, nogil=True)
def _is_raw(stack: NDArray[np.uint64], roles: NDArray[np.uint8], depth: int) -> bool:
    """Return whether an element such as a title certainly starts raw text: not in SVG, a select or a frameset."""
    for level in range(depth):
        if roles[level] & _ROOT or stack[level] == _SELECT or stack[level] == _FRAMESET:
            return False
    return True


@njit(cache=True, nogil=True)
def _close_item(stack: NDArray[np.uint64], depth: int, key: np.uint64) -> int:
    """Return the depth before a list item, which closes the previous one and the paragraphs and divisions in it."""
    for level in range(depth - 1, -1, -1):
        open_key = stack[level]
        if open_key == key or (key in (_DD, _DT) and open_key in (_DD, _DT)):
            return level
        if open_key != _P and open_key != _DIV and open_key != _ADDRESS:
            break
    return depth


@njit(cache=True, nogil=True)
def _nest(
    stack: NDArray[np.uint64],
    open_roles: NDArray[np.uint8],
    depth: int,
    key: np.uint64,
    kind: np.int64,
    role: np.uint8,
    is_end: bool,
    is_empty: bool,
) -> int:
    """Return the depth after a tag, one more than the capacity of the stack if its element does not fit."""
    is_html = role & _SPECIAL or (kind == _INLINE and key != _A)
    if is_html and (not is_end or key in (_P, _BR)) and _is_foreign(open_roles, depth):
        _end_foreign(stack, open_roles, depth)
    if is_end:
        return _close(stack, open_roles, depth, key, role)
    nests = kind in (_NESTED, _FOREIGN, _ITEM) or (kind == _INLINE and key not in (_A, _WBR))
    if not nests and not role & _SPECIAL:  # in SVG and MathML all elements nest, and "/>" closes them
        nests = _may_be_foreign(open_roles, depth)
    if not nests or (is_empty and not role & _SPECIAL):
        return depth
    if kind == _ITEM:
        depth = _close_item(stack, depth, key)
    if depth < len(stack):
        stack[depth], open_roles[depth] = key, role
    return depth + 1


@njit(cache=True, nogil=True)
def _write_tag(
    html: NDArray[np.uint8], start: int, end: int, is_end: bool, is_closed: bool, out: NDArray[np.uint8], size: int
) -> int:
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


@njit(cache=True, nogil=True)
def _write_nothing(out: NDArray[np.uint8], size: int) -> int:
    """Return the size after dropping markup; a ``<wbr>`` replaces it if an unfinished character reference precedes."""
    at = size - 1
    while at > max(size - _MAX_REFERENCE, 0) and (_is_letter(out[at]) or 48 <= out[at] <= 57 or out[at] == _HASH):
        at -= 1
    if at >= 0 and out[at] == _AMPERSAND:
        for letter in b"<wbr>":
            out[size] = letter
            size += 1
    return size


@njit(cache=True, nogil=True)
def _simplify(
    html: NDArray[np.uint8],
    keys: NDArray[np.uint64],
    kinds: NDArray[np.uint8],
    roles: NDArray[np.uint8],
    out: NDArray[np.uint8],
    marked: bool,
) -> int:
    """Write the simplified page, with marks on request; return its size."""
    at, size, depth = int(np.int64(0)), int(np.int64(0)), int(np.int64(0))  # a literal compiles what is called twice
    stack, open_roles = np.empty(_MAX_DEPTH, np.uint64), np.empty(_MAX_DEPTH, np.uint8)
    while at < len(html):
        if html[at] != _LT or at + 1 == len(html):
            out[size] = html[at]
            size, at = size + 1, at + 1
            continue
        is_end = html[at + 1] == _SLASH
        start = at + 2 if is_end else at + 1
        if start == len(html) or not _is_letter(html[start]):
            after = _declaration_end(html, at) if start < len(html) else at
            if after == at:  # text; the space prevents a tag with the text after a dropped tag
                out[size], out[size + 1] = _LT, _SPACE
                size, at = size + 2, at + 1
            else:
                size, at = _write_nothing(out, size), after
            continue
        key, end = _name_end(html, start)
        at, is_closed, has_href, _ = _tag_end(html, end)
        if at < 0:
            break  # the standard drops a tag without an end, too
        slot = _slot_of(key, keys)
        kind = np.int64(kinds[slot])
        if kind == _INLINE:
            size = _write_nothing(out, size)
            if marked and key == _A:
                out[size] = _LINK if has_href and not is_end else _LINK_END
                size += 1
            continue
        before = out[size - 1] if size > 0 else _GT
        if before != _GT and (before != _BLOCK if marked else not _is_white(before)):
            out[size] = _BLOCK if marked else _SPACE
            size += 1
        is_empty = is_closed and (kind == _FOREIGN or _is_foreign(open_roles, depth))
        if kind in (_HIDDEN, _SCRIPT):
            if not is_end and not is_empty:
                at = _raw_text_end(html, at, start, end, kind == _SCRIPT)
            continue
        inside = _nest(stack, open_roles, depth, key, kind, roles[slot], is_end, is_empty)
        if inside > _MAX_DEPTH:
            continue
        depth = inside
        size = _write_tag(html, start, end, is_end, is_closed, out, size)
        if kind == _LITERAL and not is_end and not is_empty:
            text_end = _raw_text_end(html, at, start, end, kind == _SCRIPT)
            is_raw = _is_raw(stack, open_roles, depth)
            while at < text_end:
                out[size] = html[at]
                size += 1
                if html[at] == _LT and not is_raw:
                    out[size] = _SPACE  # the space makes it text in any context
                    size += 1
                at += 1
    return size


@njit(cache=True, nogil=True)
def _cost(
    html: NDArray[np.uint8],
    keys: NDArray[np.uint64],
    kinds: NDArray[np.uint8],
    roles: NDArray[np.uint8],
    most: int,
) -> tuple[int, int, int]:
    """Return the depth of nesting, at most ``most + 1``, and the numbers of elements opened again and of attributes.

    All are upper bounds: if it is uncertain whether text is raw, its start tags count and its end tags do not.
    """
    at, depth, deepest, unsure, attributes = int(np.int64(0)), int(np.int64(0)), 0, 0, 0
    formats = again = 0
    stack, open_roles = np.empty(most, np.uint64), np.empty(most, np.uint8)
    while at + 1 < len(html) and deepest <= most:
        at = _find(html, _LT, at)
        is_end = at + 1 < len(html) and html[at + 1] == _SLASH
        start = at + 2 if is_end else at + 1
        if start >= len(html) or not _is_letter(html[start]):
            if start < len(html) and html[start] == _BANG and _may_be_foreign(open_roles, depth):
                unsure = max(unsure, _cdata_end(html, at))
            at = max(_declaration_end(html, at), at + 1) if start < len(html) else len(html)
            continue
        key, end = _name_end(html, start)
        at, is_closed, _, found = _tag_end(html, end)
        attributes = max(attributes, found)
        if at < 0:
            break
        again += formats
        if is_end and start < unsure:
            continue
        slot = _slot_of(key, keys)
        kind, role = np.int64(kinds[slot]), roles[slot]
        is_empty = is_closed and (kind == _FOREIGN or _is_foreign(open_roles, depth))
        if kind in (_HIDDEN, _SCRIPT, _LITERAL) and not is_end and not is_empty:
            if start < unsure:
                unsure, kind = len(html), np.int64(_NESTED)
            elif key == _NOSCRIPT:  # its content is markup if scripts are disabled
                kind = np.int64(_NESTED)
            else:
                text_end = _raw_text_end(html, at, start, end, kind == _SCRIPT)
                if _is_raw(stack, open_roles, depth):
                    at = text_end
                else:
                    unsure, kind = text_end, np.int64(_NESTED)
        before, depth = depth, _nest(stack, open_roles, depth, key, kind, role, is_end, is_empty)
        if role & _FORMAT:
            formats += 1 if not is_end else depth - before
        deepest = max(deepest, depth)
    return deepest, again, attributes


def parsing_cost(html: bytes, most: int) -> tuple[int, int, int]:
    """Return the quantities that determine the time and memory of a parser, in addition to the size of the page.

    Returns
    -------
    deepest : int
        Depth of nesting, at most ``most + 1``: the parser's time is quadratic in it. Elements that the parser closes by
        itself do not count.
    again : int
        Upper bound of the number of elements that the parser opens again: ``<p><b><i>one<p>two`` opens two.
    attributes : int
        Largest number of attributes of a tag: some parsers compare each with all others.
    """
    return _cost(np.frombuffer(html, np.uint8), _KEYS, _KINDS, _ROLES, most)


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
        Page without attributes, comments, hidden elements and inline tags, with a space before each tag that follows a
        word, and elements nested at most 512 deep.
    """
    out = np.empty(2 * len(html) + 8, np.uint8)
    size = _simplify(np.frombuffer(html, np.uint8), _KEYS, _KINDS, _ROLES, out, marked)
    return out[:size].tobytes()
