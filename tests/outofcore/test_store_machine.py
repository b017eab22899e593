"""A store under anything that may happen to it, in any order, against a plain dict."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest
from faults import Denied, denying
from folders import PYTHONPATH
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from in_process import started
from stores import MEMORY, PARTS, match_on_disk, named, stories
from strategies import examples, is_long

from spotsigs.errors import InputError
from spotsigs.formats.jsonl import Jsonl
from spotsigs.matching.brute_force import BruteForce
from spotsigs.outofcore.pipeline import stored_segments
from spotsigs.records import Corpus
from spotsigs.signatures.extract import extract
from spotsigs.storage import atomic
from spotsigs.storage.store import sealed, unsealed
from spotsigs.workers.engines import Serial

ROWS = stories(48)
BATCH = 6


class Killed(BaseException):
    """The process ends here, as far as the store can see."""


class Killing(Denied):
    """Ends the process at a call; what it does on its way out does not count."""

    def __call__(self, name, path):
        try:
            super().__call__(name, path)
        except OSError:
            raise Killed from None


def expected(rows, tau):
    """Return the pairs of all rows, by the definition."""
    return pairs_by_definition(json.dumps(rows), tau)


@cache
def pairs_by_definition(rows, tau):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as file:
        file.write("\n".join(map(json.dumps, json.loads(rows))))
    try:
        signatures = extract(Jsonl(path=file.name), PARTS[0], PARTS[1], Serial())
        return named(BruteForce(tau=tau)(Corpus(PARTS[2](signatures))), signatures.doc_ids)
    finally:
        os.unlink(file.name)


ADDING = """
import sys
from pathlib import Path
from stores import MEMORY, PARTS, match_on_disk
from spotsigs.formats.jsonl import Jsonl
from spotsigs.workers.engines import Serial

for line in sys.stdin:
    folder, batch = line.rsplit(maxsplit=1)
    collection = Jsonl(path=f"{folder}/{batch}.jsonl", shard_bytes=1500)
    match_on_disk(Path(folder, "store"), collection, *PARTS, 0.4, Serial(), memory=MEMORY, add=True)
    print("added", flush=True)
"""


@cache
def other_process():
    """Return a process that adds the requested pages; it ends with this one, which closes its input."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return started(program=["-c", ADDING], environment={"PYTHONPATH": PYTHONPATH}, text=True, **pipes)


class Stores(RuleBasedStateMachine):
    """Add batches of pages to a store; the model is the list of its pages."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="machine-"))
        self.store = self.folder / "store"
        self.model = {}  # number of a batch: its rows, in the order in which they were added
        self.begun = None  # the batch that a stopped call was adding
        self.is_new = 0

    def teardown(self):
        shutil.rmtree(self.folder)

    def rows(self):
        return [row for rows in self.model.values() for row in rows]

    def collection(self, batch):
        path = self.folder / f"{batch}.jsonl"
        if not path.exists():
            path.write_text("\n".join(map(json.dumps, ROWS[batch * BATCH : (batch + 1) * BATCH])))
        return Jsonl(path=str(path), shard_bytes=1500)

    def add(self, batch, tau=0.4):
        new = bool(self.model) and list(self.model) != [batch]
        add = new or batch in self.model
        matched = match_on_disk(self.store, self.collection(batch), *PARTS, tau, Serial(), memory=MEMORY, add=add)
        return named(matched.pairs, matched.doc_ids)

    def done(self, batch):
        self.model.setdefault(batch, ROWS[batch * BATCH : (batch + 1) * BATCH])
        self.begun = None

    def require(self, is_expected, error):
        assert is_expected, error

    def next(self):
        """Return the batch to add now: one that was begun comes first, for a store takes no other before."""
        if self.begun is not None:
            return self.begun
        self.is_new = max([-1, *self.model]) + 1
        return self.is_new

    @initialize()
    def first(self):
        self.add(0)
        self.done(0)

    @precondition(lambda self: self.next() < len(ROWS) // BATCH)
    @rule(tau=st.sampled_from([0.3, 0.6]))
    def added(self, tau):
        batch = self.next()
        pairs = self.add(batch, tau)
        self.done(batch)
        new = {row["id"] for row in ROWS[batch * BATCH : (batch + 1) * BATCH]}
        assert pairs == {pair for pair in expected(self.rows(), tau) if new & set(pair[:2]) or batch == 0}

    @precondition(lambda self: self.begun is None)
    @rule()
    def added_again(self):
        """The same documents again change no result."""
        self.add(list(self.model)[-1])

    @precondition(lambda self: self.next() < len(ROWS) // BATCH)
    @rule(at=st.integers(1, 120), number=st.sampled_from([errno.ENOSPC, errno.EIO]), killed=st.booleans())
    def stopped(self, at, number, killed):
        """A call fails, or the process ends there."""
        atomic.remove_orphans.cache_clear()
        batch = self.next()
        denied = (Killing if killed else Denied)(self.store, at, number)
        try:
            with denying(denied):
                self.add(batch)
        except (InputError, Killed) as error:
            self.require(isinstance(error, Killed) or os.strerror(number) in str(error), error)
            if (self.store / "segments" / f"{len(self.model):06d}" / "source.json").exists():
                self.begun = batch
        else:
            self.done(batch)

    @precondition(lambda self: self.begun is None)
    @rule(tau=st.sampled_from([0.3, 0.5, 0.9]))
    def joined(self, tau):
        matched = match_on_disk(self.store, None, *PARTS, tau, Serial(), memory=MEMORY)
        assert named(matched.pairs, matched.doc_ids) == expected(self.rows(), tau)

    @precondition(lambda self: self.begun is None)
    @rule(seed=st.integers(0, 2**32))
    def damaged(self, seed):
        """A bit of any file changes, and changes back: meanwhile the truth, or a sentence that names the store."""
        rng = random.Random(seed)
        path = rng.choice([p for p in sorted(self.store.rglob("*")) if p.is_file() and p.stat().st_size])
        content = bytearray(path.read_bytes())
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        before = path.read_bytes()
        path.write_bytes(content)
        try:
            matched = match_on_disk(self.store, None, *PARTS, 0.4, Serial(), memory=MEMORY)
            assert named(matched.pairs, matched.doc_ids) == expected(self.rows(), 0.4)
        except InputError as error:
            self.require(str(self.store) in str(error), error)
        finally:
            if path.exists() and path.read_bytes() == content:
                path.write_bytes(before)

    @precondition(lambda self: self.begun is None)
    @rule()
    def changed_input(self):
        """Another content under the name of a batch that is there is another batch, and refused or added as such."""
        batch = max(self.model)
        path = self.folder / f"{batch}.jsonl"
        before, facts = path.read_bytes(), path.stat()
        path.write_bytes(before.replace(b"word", b"drow"))
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        try:
            with pytest.raises(InputError, match=r"contains other documents|contains documents that were added"):
                match_on_disk(self.store, self.collection(batch), *PARTS, 0.4, Serial(), memory=MEMORY)
        finally:
            path.write_bytes(before)

    @precondition(lambda self: self.begun is None)
    @rule(version=st.sampled_from([1, 2, 99]))
    def other_schema(self, version):
        """A store of another program is refused, and left as it is."""
        path = self.store / "segments" / "000000" / "00000000" / "store.json"
        before = path.read_bytes()
        path.write_bytes(sealed(unsealed(before) | {"version": version}))
        forged = path.read_bytes()
        try:
            with pytest.raises(InputError, match=f"has schema version {version}, this program reads"):
                match_on_disk(self.store, None, *PARTS, 0.4, Serial(), memory=MEMORY)
            assert path.read_bytes() == forged
        finally:
            path.write_bytes(before)

    @precondition(lambda self: self.begun is None and max(self.model) + 2 < len(ROWS) // BATCH)
    @rule()
    def two_at_once(self):
        """Two processes add at the same time: the store has both batches, one after the other."""
        batches = [max(self.model) + 1, max(self.model) + 2]
        for batch in batches:
            self.collection(batch)
        print(self.folder, batches[1], file=other_process().stdin, flush=True)
        match_on_disk(self.store, self.collection(batches[0]), *PARTS, 0.4, Serial(), memory=MEMORY, add=True)
        assert other_process().stdout.readline() == "added\n"
        ids = list(stored_segments(self.store).doc_ids)
        for batch in sorted(batches, key=lambda batch: ids.index(ROWS[batch * BATCH]["id"])):
            self.done(batch)

    @invariant()
    def contains_what_was_added(self):
        if self.begun is None and self.model:
            assert list(stored_segments(self.store).doc_ids) == [row["id"] for row in self.rows()]


TestStores = Stores.TestCase
TestStores.settings = examples(10, stateful_step_count=20 if is_long() else 8)
