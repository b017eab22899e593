"""Compressed content: gzip, zstd and bzip2, detected by its first bytes."""

from __future__ import annotations

import bz2
import io
import re
from pathlib import Path
from typing import IO, Any, cast

import zstandard
from isal import igzip_lib

from spotsigs.storage.locations import is_remote
from spotsigs.text.size_limits import MAX_PAGE, in_words, largest_page

READ_ERRORS = (EOFError, OSError)
"""Raised by reading a damaged or vanished file; the last 16 KiB of compressed bytes before damage may be lost."""

BLOCK = 1 << 20
"""Bytes of a file that are read at a time."""

_PIECE = 1 << 14
_FIRST_PIECE = 1 << 9  # of a member that may be short: a decompressor copies the bytes after its member
_ZSTD_PIECE = 1 << 9  # unpacks to 16 MiB at most, because zstd packs 128 KiB into four bytes; more for larger pages
_MOST_DICTIONARY = 64 << 20
_DAMAGE: tuple[type[Exception], ...] = (cast(Any, igzip_lib).IsalError, zstandard.ZstdError)
_ISAL = {"gzip": igzip_lib.DECOMP_GZIP, "zlib": igzip_lib.DECOMP_ZLIB, "deflate": igzip_lib.DECOMP_DEFLATE}
_SKIPPABLE = re.compile(rb"[\x50-\x5c\x5e\x5f]\x2a\x4d\x18")
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x5d\x2a\x4d\x18": "zstd with dictionary",
    b"BZh": "bzip2",
}
_MAGIC_OF = {name: magic for magic, name in _MAGIC.items()} | dict.fromkeys(("zlib", "deflate"), b"")
ENDINGS = {"gzip": ".gz", "zstd": ".zst", "bzip2": ".bz2"}
"""Usual ending of a file of each compression."""


def open_stored(path: Path) -> IO[bytes]:
    """Open a file for reading its stored bytes; a remote file is read a block at a time."""
    if not is_remote(path):
        return path.open("rb")
    return io.BufferedReader(cast(io.RawIOBase, path.open("rb", BLOCK)), BLOCK)


def packing_of(head: bytes) -> str:
    """Return ``gzip``, ``zstd``, ``zstd with dictionary``, ``bzip2`` or ``plain`` for the first bytes of a file."""
    if _SKIPPABLE.match(head):  # as pzstd writes before each frame
        return "zstd"
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "plain")


def compression(path: Path) -> str:
    """Return the compression of a file, as `packing_of` names it."""
    with open_stored(path) as file:
        return packing_of(file.read(4))


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading its unpacked content; a truncated one raises EOFError at its end."""
    packing = compression(path)
    if packing == "plain":
        return open_stored(path) if is_remote(path) else path.open("rb", BLOCK)
    return io.BufferedReader(_File(open_stored(path), packing), BLOCK)


class Members(io.RawIOBase):
    """Unpacked content of a sequence of gzip members, zstd frames or bzip2 streams, any of which may be empty.

    The file is read from its current position; ``packing`` is a name of `packing_of`, ``zlib`` or ``deflate``. If
    ``raises``, reading raises EOFError where the file is truncated and OSError where it is damaged; otherwise the
    content ends there, and ``damage`` is the reason. With ``trailing``, bytes after the last member that do not begin
    another one are ignored, as browsers do.
    """

    def __init__(
        self,
        file: IO[bytes],
        packing: str,
        *,
        raises: bool = True,
        trailing: bool = False,
        dictionary: zstandard.ZstdCompressionDict | None = None,
    ) -> None:
        self._file, self._raises, self._trailing = file, raises, trailing
        self.dictionary = _dictionary(file) if packing == "zstd with dictionary" else dictionary
        self._packing = packing.partition(" ")[0]
        self._base = self._fed = file.tell()  # offsets in the file of the input block and of the last piece of it
        self._input, self._at, self._size = b"", 0, _FIRST_PIECE
        self._output: bytes | memoryview = b""
        self._member: Any = None
        self._start, self._given = self._base, 0
        self._any = False
        self.damage: Exception | None = None

    def readable(self) -> bool:
        """Return true."""
        return True

    def position(self, waiting: int) -> tuple[int, int]:
        """Return the file offset of the last member that was read, and the offset in it, some bytes before its end."""
        return self._start, self._given - waiting

    @property
    def stop(self) -> tuple[int, int]:
        """File offsets of the last member, and of the first bytes that are not unpacked."""
        return self._start, self._base + self._at if self.damage is None else self._fed

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Unpack into a buffer; return the number of bytes, 0 at the end."""
        piece = self.piece(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def piece(self, size: int) -> bytes:
        """Return the next bytes, at most `size` and all of one member; none at the end."""
        try:
            while not self._output and self.damage is None and self._advance(size):
                pass
        except _DAMAGE as error:
            self.damage = OSError(f"damaged {self._packing} data: {error}")
        except READ_ERRORS as error:
            self.damage = error
        if self._raises and self.damage is not None and not self._output:
            raise self.damage
        output = self._output if len(self._output) <= size else memoryview(self._output)
        piece, self._output = bytes(output[:size]), output[size:]
        self._given += len(piece)
        return piece

    def _advance(self, size: int) -> bool:
        """Unpack at most `size` bytes; return False at the end of the file."""
        if self._member is None and not self._begins():
            return False
        piece = b""
        if self._member.needs_input:
            if self._at == len(self._input):
                self._refill()
            piece = self._input[self._at : self._at + self._size]
            if not piece:
                self._fed = self._base + self._at
                raise EOFError("the compressed stream is truncated")
            self._fed = self._base + self._at
            self._at += len(piece)
            self._size = min(2 * self._size, _PIECE)
        self._output = self._member.decompress(piece, size)
        if self._member.eof:
            self._at -= len(self._member.unused_data)
            self._member = None
        return True

    def _begins(self) -> bool:
        """Start the next member, after any padding; return False if there is none."""
        while len(self._input) - self._at < 4 and self._refill():
            pass
        while self._packing == "gzip" and self._any and self._input[self._at : self._at + 1] == b"\0":
            self._at = len(self._input) - len(self._input[self._at :].lstrip(b"\0"))
            while len(self._input) - self._at < 4 and self._refill():
                pass
        head = self._input[self._at : self._at + 4]
        is_other = not head.startswith(_MAGIC_OF[self._packing]) and packing_of(head) != self._packing
        if not head or (self._any and self._trailing and is_other):
            return False
        if self._packing == "gzip" and not b"\x1f\x8b".startswith(head[:2]):
            raise OSError("damaged gzip data: bytes that begin no member")
        self._start = self._fed = self._base + self._at
        self._given, self._size, self._any = 0, _FIRST_PIECE, True
        self._member = self._decompressor()
        return True

    def _refill(self) -> bool:
        """Append the next block of the file to the unread input; return False at the end of the file."""
        block = self._file.read(_PIECE)
        self._base += self._at
        self._input, self._at = self._input[self._at :] + block, 0
        return bool(block)

    def _decompressor(self) -> Any:
        if self._packing in _ISAL:
            return igzip_lib.IgzipDecompressor(flag=_ISAL[self._packing])
        return bz2.BZ2Decompressor() if self._packing == "bzip2" else _ZstdFrame(self.dictionary)


class _File(Members):
    """Members of a file that is closed with them."""

    def close(self) -> None:
        self._file.close()
        super().close()


class _ZstdFrame:
    """A zstd frame, with the interface of `bz2.BZ2Decompressor`; its window is limited as pages are."""

    def __init__(self, dictionary: zstandard.ZstdCompressionDict | None) -> None:
        self._most = max(8 << 20, largest_page())
        self._piece = max(_ZSTD_PIECE, largest_page() >> 15)
        self._frame = zstandard.ZstdDecompressor(dictionary, max_window_size=self._most).decompressobj()
        self._input = memoryview(b"")
        self.unused_data = b""

    def decompress(self, piece: bytes, _size: int) -> bytes:
        self._input = memoryview(piece) if piece else self._input
        some, self._input = self._input[: self._piece], self._input[self._piece :]
        try:
            content: bytes = self._frame.decompress(some)
        except zstandard.ZstdError as error:
            if "too much memory" not in str(error):
                raise
            omit = ", or set no memory budget and no store" if self._most < MAX_PAGE else ""
            raise OSError(
                f"its zstd window is larger than {in_words(self._most)}; unpack it (zstd -d --long=31){omit}"
            ) from error
        if self.eof:
            self.unused_data = self._frame.unused_data + bytes(self._input)
        return content

    @property
    def needs_input(self) -> bool:
        return not self._input

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof)


def _dictionary(file: IO[bytes]) -> zstandard.ZstdCompressionDict:
    """Read the dictionary in the skippable frame before the first record."""
    size = int.from_bytes(file.read(8)[4:], "little")
    content = file.read(min(size, _MOST_DICTIONARY))
    if packing_of(content) == "zstd":
        content = zstandard.ZstdDecompressor().decompress(content, _MOST_DICTIONARY)
    return zstandard.ZstdCompressionDict(content)
