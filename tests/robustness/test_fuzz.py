"""The fuzz targets on what was found by fuzzing, on valid inputs, and on changes of those that hypothesis makes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

FUZZ = Path(__file__).parents[1] / "fuzz"
sys.path.insert(0, str(FUZZ))
from guided import MODULES
from targets import TARGETS, seeds

SEEDS = seeds()


def test_the_fuzzer_is_guided_through_the_readers_by_their_names():
    """A wrong name would switch the guidance off without a message."""
    for module in MODULES:
        assert any(f"{name}.".startswith(f"{module}.") for name in sys.modules), module


@pytest.mark.parametrize("name", TARGETS)
def test_valid_inputs(name):
    for content in SEEDS[name]:
        TARGETS[name](content)


@pytest.mark.parametrize(
    ("name", "path"),
    [pytest.param(p.parent.name, p, id=f"{p.parent.name}-{p.name}") for p in sorted(FUZZ.glob("corpus/*/*"))],
)
def test_inputs_that_failed_once_are_read(name, path):
    TARGETS[name](path.read_bytes())


@st.composite
def changed(draw, name):
    """Return a valid input with a few blocks replaced, doubled or cut out."""
    content = draw(st.sampled_from(SEEDS[name]))
    for _ in range(draw(st.integers(1, 4))):
        start, stop = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
        new = draw(st.one_of(st.binary(max_size=20), st.just(content[start:stop] * 2), st.sampled_from(PIECES)))
        content = content[:start] + new + content[stop:]
    return content


PIECES = [
    *(b"", b"\0", b"\xff\xfe", b"\r\n", b"\n\n", b'"', b"<", b"<!--", b"<script>", b"</DOC>\n", b"<DOC>\n<DOCNO>"),
    *(b"WARC/1.0\r\n", b"Content-Length: 99999999999999999999\r\n", b"\x1f\x8b\x08\0", b"-1"),
    *(b"9" * 5000, b"[" * 2000, b" " * 3000),
]


@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs(name):
    @examples(40)
    @given(changed(name))
    def check(content):
        TARGETS[name](content)

    check()
