"""Signatures and vectors on disk: a folder of memory-mapped arrays with a schema version and checksums.

A store is complete or absent: it is written to a temporary folder and renamed. On object storage, the manifest
``store.json`` is uploaded last, and a folder without it is no store. A remote store is copied when it is opened.

Each process compares the checksums of the files that it opens, once. They detect damage, not forgery. Vectors are
sorted by length, so that every partition by length, for any tau, is a contiguous range of rows.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from errno import EEXIST, EMFILE, ENFILE, ENOTEMPTY
from functools import cache, lru_cache
from io import BytesIO
from itertools import accumulate, islice, pairwise
from pathlib import Path
from time import time_ns
from typing import Any, BinaryIO

import numpy as np
import xxhash
from numpy.typing import DTypeLike, NDArray

from spotsigs.arrays.arrow import arrow_numbers, arrow_text
from spotsigs.arrays.row_blocks import gathered, scattered
from spotsigs.errors import InputError, reason, require, system_errors
from spotsigs.records import DocumentColumns, Phrases, RowNumbers, Signatures, Skipped, Vectors, WordGrams, unchecked
from spotsigs.storage import locations
from spotsigs.storage.atomic import create, destination, is_empty, move_aside, publish, staging_folder
from spotsigs.storage.exact_duplicates import ExactDuplicates
from spotsigs.storage.locations import as_path, checksum, is_remote

FORMAT = "spotsigs store"
VERSION = 7
"""Schema of all stores and results of tasks; stores of another version are built again."""

_MANIFEST = "store.json"
_ATTEMPTS = 100
_STRINGS = 4096
_HEADER = 128  # bytes before the values of a one-dimensional array in numpy's format
_SEAL = "seal"
TICK = 10**8
"""Nanoseconds in which two changes of a file may have the same time."""
_MOST_DOWNLOADS = 64  # remote stores of which a process keeps the files
_MOST_MANIFESTS = 1 << 12  # stores of which a process keeps the parsed manifests, of some kilobytes each

_COMPARED: set[int] = set()
"""States of the stores whose checksums this process has compared."""


def sealed(facts: Mapping[str, Any]) -> bytes:
    """Return facts as JSON with a checksum."""
    return json.dumps({**facts, _SEAL: _checksum_of(facts)}, indent=1).encode()


def unsealed(content: bytes) -> dict[str, Any]:
    """Return the facts of JSON with a checksum; raise ValueError if it does not match."""
    facts = json.loads(content)
    if not isinstance(facts, dict) or facts.pop(_SEAL, None) != _checksum_of(facts):
        raise ValueError("it does not match its checksum")
    return facts


def _checksum_of(facts: Mapping[str, Any]) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(facts, sort_keys=True).encode())


class Strings(Sequence[str]):
    """Strings in two memory-mapped arrays, decoded when they are read; a slice is another view of the arrays.

    Parameters
    ----------
    text : ndarray of uint8
        UTF-8 of all strings, concatenated.
    offsets : ndarray of int64, shape (n + 1,)
        Start of each string in `text`, and the end of the last one.
    """

    def __init__(self, text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self._text, self._offsets = text, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            first, last, _ = index.indices(len(self))
            return Strings(self._text, self._offsets[first : max(first, last) + 1])
        row = range(len(self))[index]
        return _decoded(self._text[self._offsets[row] : self._offsets[row + 1]].tobytes())

    def __iter__(self) -> Iterator[str]:
        for row in range(0, len(self), _STRINGS):
            offsets = self._offsets[row : row + _STRINGS + 1].tolist()
            content = self._text[offsets[0] : offsets[-1]].tobytes()
            for start, end in pairwise(offsets):
                yield _decoded(content[start - offsets[0] : end - offsets[0]])

    def arrow(self, rows: NDArray[np.int64]) -> Any:
        """Return some strings as an Arrow array, without a Python object for each; raise InputError if not UTF-8."""
        import pyarrow as pa

        buffers = (pa.py_buffer(np.ascontiguousarray(part)) for part in (self._offsets, self._text))
        taken = pa.LargeStringArray.from_buffers(len(self), *buffers).take(arrow_numbers(rows))
        try:
            taken.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InputError(f"a name in the store is not UTF-8 ({error}); build the store again") from error
        return taken.cast(pa.string())


def _decoded(name: bytes) -> str:
    try:
        return name.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise InputError(f"a name in the store is not UTF-8 ({error.reason}); build the store again") from error


def arrow_names(strings: Sequence[str], rows: NDArray[Any]) -> Any:
    """Return some of the strings as an Arrow array of strings, by their rows."""
    if isinstance(strings, Strings):
        return strings.arrow(rows.astype(np.int64, copy=False))
    return arrow_text(strings[row] for row in rows.tolist())


class Writer:
    """Writes the arrays of a store, whose `fingerprint` it has at the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts: dict[str, Any] = {}
        self.fingerprint = ""

    def put(self, name: str, values: NDArray[Any]) -> None:
        """Write an array that is in memory."""
        with self.growing(name, values.dtype) as append:  # numpy does not report why it fails on a full disk
            append(values)

    @contextmanager
    def growing(self, name: str, dtype: DTypeLike) -> Iterator[Callable[[NDArray[Any]], None]]:
        """Yield a function that appends values to a new array of the store."""
        kind = np.dtype(dtype)
        size = 0
        with (self.folder / f"{name}.npy").open("wb") as file:
            file.write(_header(kind, 0))

            def append(values: NDArray[Any]) -> None:
                nonlocal size
                file.write(np.ascontiguousarray(values, dtype=kind).data)
                size += len(values)

            yield append
            file.seek(0)
            file.write(_header(kind, size))

    def strings(self, name: str, values: Iterable[str]) -> None:
        """Write strings, see `Strings`."""
        offsets = array("q", [0])
        with self.growing(f"{name}.text", np.uint8) as append:
            values = iter(values)
            while block := [value.encode("utf-8", "surrogatepass") for value in islice(values, _STRINGS)]:
                append(np.frombuffer(b"".join(block), np.uint8))
                offsets.extend(islice(accumulate(map(len, block), initial=offsets[-1]), 1, None))
        self.put(f"{name}.offsets", np.frombuffer(offsets, np.int64))


@lru_cache
def _header(kind: np.dtype[Any], size: int) -> bytes:
    """Return the header of a one-dimensional array, which numpy pads so that the size can grow."""
    out = BytesIO()
    facts = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (size,)}
    np.lib.format.write_array_header_1_0(out, facts)
    if len(out.getvalue()) != _HEADER:
        raise RuntimeError(f"numpy wrote an array header that has not {_HEADER} bytes")
    return out.getvalue()


@contextmanager
def writing(folder: str | Path, kind: str) -> Iterator[Writer]:
    """Write a store of some kind, which replaces a previous one when the block ends without an error.

    Raises
    ------
    InputError
        If the path is something other than a store, or cannot be written to.
    """
    folder = as_path(folder)
    if _is_foreign(folder):
        raise InputError(f"{folder} is no store and will not be overwritten; give another path")
    failure = f"the store {destination(folder)} cannot be written"
    with system_errors(failure, "; give another path"), staging_folder(folder) as temporary:
        writer = Writer(temporary / "new")
        writer.folder.mkdir()
        yield writer
        files = {
            path.name: {"bytes": path.stat().st_size, "xxh3_128": checksum(path)}
            for path in sorted(writer.folder.iterdir())
        }
        manifest = {"format": FORMAT, "version": VERSION, "kind": kind, **writer.facts, "files": files}
        (writer.folder / _MANIFEST).write_bytes(sealed(manifest))
        writer.fingerprint = _fingerprint(files)
        if is_remote(folder):
            _upload(writer.folder, folder)
        else:
            _put_in_place(writer.folder, folder, temporary)


def _is_foreign(folder: Path) -> bool:
    if is_remote(folder):  # a killed process has written arrays without a manifest
        names = locations.sizes(folder)
        return _MANIFEST not in names and not all(name.endswith(".npy") for name in names)
    if not folder.exists() or (folder / _MANIFEST).is_file():
        return False
    return not folder.is_dir() or any(folder.iterdir())


def _upload(new: Path, folder: Path) -> None:
    """Upload a finished store, ``store.json`` last, unless the same one is there; a previous one is deleted first."""
    if _is_there(new, folder):
        return
    manifest = new / _MANIFEST
    locations.remove(folder / _MANIFEST)
    locations.put(sorted(path for path in new.iterdir() if path != manifest), folder)
    locations.put([manifest], folder)


def _is_there(new: Path, folder: Path) -> bool:
    """Return whether the same store exists, undamaged; of a remote one only the sizes are compared."""
    manifest = new / _MANIFEST
    try:
        if locations.read(folder / _MANIFEST) != manifest.read_bytes():
            return False
        opened(folder, json.loads(manifest.read_bytes())["kind"], verify=not is_remote(folder))
        files = locations.sizes(folder)
        return all(files.get(path.name) == path.stat().st_size for path in new.iterdir())
    except (OSError, InputError):
        return False


def _put_in_place(new: Path, folder: Path, temporary: Path) -> None:
    """Rename a finished store to its path, unless the same one is there: another process may read it."""
    for attempt in range(_ATTEMPTS):
        if _is_there(new, folder):
            return
        with suppress(FileNotFoundError):
            move_aside(folder, temporary / f"old{attempt}")
        try:
            publish(new, folder)
        except OSError as error:  # another process has written its store in the meantime
            if error.errno not in (EEXIST, ENOTEMPTY) or attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def claim(folder: Path, name: str, facts: Mapping[str, Any]) -> list[str]:
    """Write the purpose of an empty folder into a file; return the facts that an existing file states otherwise.

    Raises
    ------
    InputError
        If the folder contains other files, or cannot be written.
    """
    path = folder / name
    try:
        if not locations.exists(path):
            empty = not locations.sizes(folder) if is_remote(folder) else not folder.exists() or is_empty(folder)
            require(empty, f"{folder} is not empty; give another path")
            create(path, sealed(facts))
        known = unsealed(locations.read(path))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is damaged: {error}; delete {folder} and give the same again") from error
    except OSError as error:
        message = f"{destination(path)} cannot be written or read: {reason(error)}; give another path"
        raise InputError(message) from error
    return [key for key in facts if known.get(key) != facts[key]]


@dataclass(frozen=True)
class Reader:
    """An open store."""

    folder: Path  # its path; of a remote store, the path of the downloaded files
    facts: dict[str, Any]  # its manifest
    download: _Download | None = field(default=None, repr=False)  # these files, which exist as long as a reader of them

    def array(self, name: str, dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of the store, memory-mapped and read-only; raise InputError if it is of another type.

        An array of a remote store that was not downloaded is read into memory.
        """
        if is_remote(self.folder):
            return self.whole(name, dtype)
        with self._open(name, dtype) as file:
            return np.asarray(np.memmap(file, dtype, "r", _HEADER, (self.length(name, dtype),)))

    def mapped(self, name: str, dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of the store, memory-mapped; writes, which kernels do not exclude, stay in memory."""
        size = self.length(name, dtype)
        with self._open(name, dtype) as file:
            return np.asarray(np.memmap(file, dtype, "c", _HEADER, (size,))) if size else np.empty(0, dtype)

    def part(self, name: str, dtype: DTypeLike, start: int, stop: int) -> NDArray[Any]:
        """Read a range of an array into memory, so that no page of the file stays mapped.

        Raises
        ------
        InputError
            If it is missing, of another type, or has no such range.
        """
        file: Any
        with self._open(name, dtype) as file:
            sound = 0 <= start <= stop <= self.length(name, dtype)
            require(sound, f"{self.folder / name}.npy has no range from {start} to {stop}; build the store again")
            values = np.empty(stop - start, dtype)
            file.seek(start * values.itemsize, os.SEEK_CUR)
            whole = file.readinto(values.view(np.uint8)) == values.nbytes
            require(whole, f"{self.folder / name}.npy is truncated; build the store again")
            return values

    def whole(self, name: str, dtype: DTypeLike) -> NDArray[Any]:
        """Read an array into memory."""
        return self.part(name, dtype, 0, self.length(name, dtype))

    @contextmanager
    def _open(self, name: str, dtype: DTypeLike) -> Iterator[BinaryIO]:
        """Open the file of an array at its first value, and report errors of the block as `InputError`."""
        path, n = self.folder / f"{name}.npy", self.length(name, dtype)
        try:
            with path.open("rb") as file:
                sound = file.read(_HEADER) == _header(np.dtype(dtype), n)
                require(sound, f"{path} is no array of {n:,} values of {np.dtype(dtype)}; build the store again")
                yield file
        except InputError:
            raise
        except (OSError, MemoryError, ValueError) as error:
            raise _unreadable(path, error) from error

    def length(self, name: str, dtype: DTypeLike) -> int:
        """Return the length of an array of the store, from the size of its file, which is not read."""
        facts = self.facts["files"].get(f"{name}.npy")
        require(facts is not None, f"{self.folder / name}.npy is missing; build the store again")
        return max(int(facts["bytes"]) - _HEADER, 0) // np.dtype(dtype).itemsize

    def has(self, name: str) -> bool:
        """Whether the store has an array, which stores of earlier releases may lack."""
        return f"{name}.npy" in self.facts["files"]

    def strings(self, name: str) -> Strings:
        """Return strings of the store."""
        return Strings(self.array(f"{name}.text", np.uint8), self.array(f"{name}.offsets", np.int64))


class _Download:
    """Files of a remote store in a local folder, which is deleted when no reader uses it."""

    def __init__(self, remote: Path, files: Mapping[str, Any]) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=_downloads()))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        for name, facts in files.items():
            path, local = remote / name, self.folder / name
            try:
                locations.fetch(path, local)
            except FileNotFoundError as error:
                raise _unreadable(path, error) from error
            _check_size(path, local.stat().st_size, facts["bytes"])
            _require_checksum(path, checksum(local), facts["xxh3_128"])


@lru_cache(_MOST_DOWNLOADS)
def downloaded(folder: str, files: str) -> _Download:
    """Return the files of a remote store, by its URL and its list of files as JSON."""
    return _Download(as_path(folder), json.loads(files))


@cache
def _downloads() -> Path:
    """Return the folder with the copies of this process, which is deleted when the process ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(staging_folder(Path(tempfile.gettempdir(), "spotsigs-copies")))


def _require_checksum(path: Path, computed: str, expected: str) -> None:
    require(computed == expected, f"{path} does not match its checksum, it is damaged; build the store again")


def _unreadable(path: Path, error: BaseException) -> InputError:
    """Return why an array cannot be read: the store is damaged, or the system lacks resources."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path} is missing; build the store again")
    if isinstance(error, OSError) and error.errno is not None:
        more = "; allow more open files (ulimit -n)" if error.errno in (EMFILE, ENFILE) else ""
        return InputError(f"{path} cannot be read now: {reason(error)}{more}; the store is not changed")
    if isinstance(error, MemoryError):
        return InputError(f"{path} cannot be read: there is not enough memory; the store is not changed")
    return InputError(f"{path} is no array of a store: {error}; build the store again")


def opened(folder: str | Path, kind: str, *, verify: bool = True) -> Reader:
    """Open a store that must have some kind of content.

    With `verify`, the files of a remote store are copied, and the checksum of every file is compared, unless this
    process has done so and the files have not changed since. Without, only the manifest is read.

    Raises
    ------
    InputError
        If there is no such store, it has another version, or a file of it is missing, truncated or damaged.
    """
    folder = as_path(folder)
    manifest = _manifest(folder)
    if manifest.get("kind") != kind:
        raise InputError(f"the store {folder} contains {manifest.get('kind')}, not {kind}")
    files = manifest.get("files")
    sound = isinstance(files, dict) and all(map(_is_described, files.items()))
    require(sound, f"{folder / _MANIFEST} does not list the content of the store; build the store again")
    assert isinstance(files, dict)
    if verify and is_remote(folder):
        download = downloaded(str(folder), json.dumps(files))
        return Reader(download.folder, manifest, download)
    reader = Reader(folder, manifest)
    if verify:
        _compare_checksums(folder, files)
    return reader


def _state_of(path: str) -> tuple[int, ...] | None:
    """Return what identifies the content of a local file, its size first and its last change last; None without it."""
    try:
        file = os.stat(path)
    except OSError:
        return None
    return file.st_size, file.st_dev, file.st_ino, file.st_mtime_ns, max(file.st_mtime_ns, file.st_ctime_ns)


def _compare_checksums(folder: Path, files: dict[str, Any]) -> None:
    """Compare sizes and checksums of a store, checksums unless that was done and its files have not changed since."""
    states = {name: _state_of(os.path.join(folder, name)) for name in files}
    for name, state in states.items():
        if state is None or state[0] != files[name]["bytes"]:
            _check_size(folder / name, None if state is None else state[0], files[name]["bytes"])
    compared = xxhash.xxh3_128_intdigest(f"{states} {_fingerprint(files)}".encode())
    if compared in _COMPARED:
        return
    for name, facts in files.items():
        _require_checksum(folder / name, checksum(folder / name), facts["xxh3_128"])
    if time_ns() - max((state[-1] for state in states.values() if state), default=0) > TICK:
        _COMPARED.add(compared)


def _manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a store, which this process parses again only if its file has changed since."""
    if is_remote(folder):
        return _read_manifest(folder)
    state = _state_of(os.path.join(folder, _MANIFEST))
    if state is None or time_ns() - state[-1] <= TICK:
        return _read_manifest(folder)
    return _known_manifest(folder, state)


@lru_cache(_MOST_MANIFESTS)
def _known_manifest(folder: Path, state: tuple[int, ...]) -> dict[str, Any]:
    return _read_manifest(folder)


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Read a manifest of this version, and compare its checksum."""
    path = folder / _MANIFEST
    try:
        content = locations.read(path)
        manifest = json.loads(content)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{folder} is no store: it has no {_MANIFEST}") from None
    except OSError as error:
        raise _unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({error}); build the store again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{folder} is no store: its {_MANIFEST} does not name the format {FORMAT!r}")
    if manifest.get("version") != VERSION:
        raise InputError(
            f"the store {folder} has schema version {manifest.get('version')}, this program reads version {VERSION}; "
            "build the store again"
        )
    try:
        return unsealed(content)
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}; build the store again") from error


def layout_of(store: str | Path) -> int | None:
    """Return the schema version of a store; None if it has no manifest that can be read."""
    try:
        manifest = json.loads(locations.read(as_path(store) / _MANIFEST))
    except (OSError, ValueError, RecursionError):
        return None
    version = manifest.get("version") if isinstance(manifest, dict) else None
    return version if isinstance(version, int) else None


def fingerprint(store: str | Path) -> str:
    """Return the checksums of all files of a store."""
    return _fingerprint(_manifest(as_path(store))["files"])


def _fingerprint(files: Mapping[str, Any]) -> str:
    return ",".join(facts["xxh3_128"] for _, facts in sorted(files.items()))


def _is_described(entry: tuple[str, Any]) -> bool:
    name, facts = entry
    return Path(name).name == name and isinstance(facts, dict) and facts.keys() >= {"bytes", "xxh3_128"}


def _check_size(path: Path, size: int | None, expected: int) -> None:
    require(size is not None, f"{path} is missing; build the store again")
    fault = "is truncated" if size is not None and size < expected else "is too long"
    require(size == expected, f"{path} {fault}: {size} of {expected} bytes; build the store again")


def entry_spans(indptr: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Cut rows into consecutive spans with a limited number of entries; a row with more is a span of its own."""
    first, n = 0, len(indptr) - 1
    while first < n:
        last = int(np.searchsorted(indptr, indptr[first] + most, side="right")) - 1
        last = min(max(last, first + 1), n)
        yield first, last
        first = last


@dataclass(frozen=True)
class StoredVectors:
    """Vectors of a store."""

    vectors: Vectors  # memory-mapped, rows in ascending order of length, rows of equal length in document order
    rows: NDArray[np.int64]  # (n,) the document number of each row
    doc_ids: Sequence[str] = field(repr=False)  # document ids by document number
    exact_duplicates: ExactDuplicates = field(repr=False)  # exact duplicates, by document number
    store: Reader = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def compared_lengths(self) -> NDArray[Any]:
        """Return the signature occurrences of each document, or of its representative, in the smallest type."""
        lengths = self.vectors.lengths.astype(np.min_scalar_type(self.vectors.lengths.max(initial=0)))
        return gathered(scattered(lengths, self.rows), self.exact_duplicates.representatives)


def type_of_ids(vectors: Reader) -> np.dtype[Any]:
    """Return the type of the ids of signatures in a store of vectors: int32, or int64 if there are too many."""
    return np.dtype(str(vectors.facts.get("ids", "int32")))


def open_vectors(folder: str | Path) -> StoredVectors:
    """Open vectors written by `spotsigs.outofcore.vectorize.build_vectors`."""
    store = opened(folder, "vectors")
    rows = store.array("rows", np.int64)
    vectors = unchecked(
        Vectors,
        indptr=store.array("indptr", np.int64),
        ids=store.array("ids", type_of_ids(store)),
        counts=store.array("counts", np.int32),
        lengths=store.array("lengths", np.int64),
        doc_ids=RowNumbers(len(rows)),
        vocabulary=store.array("vocabulary", np.uint64),
    )
    exact_duplicates = ExactDuplicates(store.array("content", np.int32), store.array("representatives", np.int32))
    return StoredVectors(vectors, rows, store.strings("doc_ids"), exact_duplicates, store)


def save_signatures(folder: str | Path, signatures: Signatures, **facts: Any) -> str:
    """Write signatures before any filter as a store, in document order; return its `fingerprint`.

    The ``facts`` are JSON values of its manifest.
    """
    documents = signatures.documents
    with writing(folder, "signatures") as store:
        store.put("indptr", signatures.indptr)
        store.put("hashes", signatures.hashes)
        store.put("counts", signatures.counts)
        store.put("digests", documents.digests.reshape(-1))
        store.put("tokens", documents.tokens)
        store.put("sections", documents.sections)
        store.put("missing", documents.missing)
        store.put("main_tokens", documents.main_tokens)
        store.put("languages", documents.languages)
        if (phrases := signatures.phrases) is not None:
            store.put("phrase_indptr", phrases.indptr)
            store.put("phrases", phrases.entries)
        if (grams := signatures.grams) is not None:
            store.put("gram_indptr", grams.indptr)
            store.put("grams", grams.hashes)
            facts["gram_bits"] = grams.bits
        store.put("has_cluster", np.array([cluster is not None for cluster in documents.clusters], dtype=np.bool_))
        store.strings("doc_ids", documents.ids)
        store.strings("clusters", (cluster or "" for cluster in documents.clusters))
        store.strings("dates", (date or "" for date in documents.dates))
        store.strings("skipped", (skipped.id for skipped in signatures.skipped))
        store.strings("reasons", (skipped.reason for skipped in signatures.skipped))
        labelled = any(cluster is not None for cluster in documents.clusters)
        store.facts = {
            "rows": len(signatures),
            "labelled": labelled,
            "skipped": len(signatures.skipped),
            **facts,
        }
    return store.fingerprint


def load_signatures(folder: str | Path, *columns: str) -> Signatures:
    """Open signatures written by `save_signatures`; arrays are memory-mapped, see `Reader.mapped`, the rest is read.

    If columns are named, such as ``hashes``, ``skipped`` or ``tokens``, only these and ``indptr`` are read into memory,
    and the others are empty, so that a stage can go over many blocks: mapped files stay open.
    """
    store = opened(folder, "signatures")
    arrays = store.whole if columns else store.mapped

    def array(name: str, dtype: DTypeLike) -> NDArray[Any]:
        return arrays(name, dtype) if not columns or name in columns else np.empty(0, dtype)

    def strings(name: str, of: str | None = None) -> Sequence[str]:
        return store.strings(name) if not columns or (of or name) in columns else ()

    def part(name: str, offsets: str) -> tuple[NDArray[np.int64], NDArray[np.uint64]] | None:
        wanted = (not columns or name in columns) and store.has(name)
        return (arrays(offsets, np.int64), arrays(name, np.uint64)) if wanted else None

    grams, phrases = part("grams", "gram_indptr"), part("phrases", "phrase_indptr")
    documents = DocumentColumns(
        ids=tuple(strings("doc_ids")),
        clusters=_labels(store) if not columns or "clusters" in columns else (),
        dates=tuple(date or None for date in strings("dates")),
        digests=array("digests", np.uint64).reshape(-1, 4),
        tokens=array("tokens", np.int32),
        sections=array("sections", np.uint64),
        missing=array("missing", np.int32),
        main_tokens=array("main_tokens", np.int32),
        languages=array("languages", np.uint16),
    )
    return Signatures(
        documents=documents,
        indptr=arrays("indptr", np.int64),
        hashes=array("hashes", np.uint64),
        counts=array("counts", np.int32),
        skipped=tuple(map(Skipped, strings("skipped"), strings("reasons", "skipped"))),
        grams=None if grams is None else WordGrams(*grams, store.facts["gram_bits"]),
        phrases=None if phrases is None else Phrases(*phrases),
    )


def _labels(store: Reader) -> tuple[str | None, ...]:
    """Return the labels of the documents of a store of signatures."""
    known = store.array("has_cluster", np.bool_)
    if not known.any():
        return (None,) * len(known)
    return tuple(name if has else None for name, has in zip(store.strings("clusters"), known.tolist(), strict=True))


def concatenated_on_disk(
    parts: Iterator[tuple[NDArray[Any], ...]], dtypes: tuple[Any, ...], scratch: Path
) -> list[NDArray[Any]]:
    """Concatenate arrays column by column into memory-mapped, writable files of a folder, one part in memory at a time.

    Each part has an array for each column, and ``dtypes`` the types of the columns.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.NamedTemporaryFile(dir=scratch, delete=False)) for _ in dtypes]
        for part in parts:
            for file, values, dtype in zip(files, part, dtypes, strict=True):
                file.write(np.ascontiguousarray(values, dtype).data)
    return [
        np.asarray(np.memmap(file.name, dtype, "r+")) if Path(file.name).stat().st_size else np.empty(0, dtype)
        for file, dtype in zip(files, dtypes, strict=True)
    ]


def remove_tree(folder: Path) -> None:
    """Delete a local or remote folder, if it exists."""
    if is_remote(folder):
        locations.remove(folder, recursive=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)
