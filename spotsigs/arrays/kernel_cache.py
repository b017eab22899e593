"""The folders of compiled kernels."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from contextlib import suppress
from functools import cache
from hashlib import blake2b, sha1
from pathlib import Path

KEY = "NUMBA_CACHE_DIR"


def set_cache_folder() -> None:
    """Set numba's cache folder to one in the temporary folder if numba can write to neither of its own.

    Numba caches kernels next to the source or in the user's cache folder, and raises if it can write to neither, for
    example in a container without a home folder. It unpickles the cache, so that the folder must be owned by the user
    and closed to others; otherwise a new one is created.
    """
    if sys.platform != "linux" or KEY in os.environ or any(map(_is_writable, _default_folders())):
        return
    folder = Path(tempfile.gettempdir(), f"spotsigs-kernels-{os.getuid()}")
    os.environ[KEY] = str(folder) if _is_mine(folder) else tempfile.mkdtemp(prefix="spotsigs-kernels-")
    if "numba" in sys.modules:
        sys.modules["numba"].core.config.reload_config()


def _default_folders() -> list[Path]:
    """Return the cache folders of numba: next to the source, and in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return [Path(__file__).parent / "__pycache__", Path(cache)]


@cache
def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _is_mine(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        facts = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o077


def delete_outdated_kernels(package: Path) -> None:
    """Delete the compiled kernels of other sources of a package, where it can write.

    Numba unpickles the index of a kernel before it checks whether the source has changed. After an update in place, an
    index may name a type that no longer exists, and the first call of the kernel would raise an AttributeError. Nor
    does numba check the sources of what a kernel calls.
    """
    current = marker(package)
    if current.exists():
        return
    with suppress(OSError):
        current.parent.mkdir(parents=True, exist_ok=True)
        for folder in {path.parent for path in package.rglob("*.py")}:
            for index in _cache_of(folder).glob("*.nbi"):
                index.unlink(missing_ok=True)
        for outdated in current.parent.glob("kernels-*"):
            outdated.unlink(missing_ok=True)
        current.touch()


def marker(package: Path, what: str = "") -> Path:
    """Return the file whose existence states that kernels, all or some, were compiled from the package's sources."""
    return _cache_of(package) / f"kernels-{_checksum(package)}{what}"


def step_marker(step: str) -> Path:
    """Return the file whose existence states that the kernels of a step of this package are compiled, by this numba."""
    import llvmlite.binding  # type: ignore[import-untyped]  # ships no types
    from numba import __version__

    processor = llvmlite.binding.get_host_cpu_name()
    return marker(Path(__file__).parents[1], f"-{step}-{__version__}-{processor}")


def _cache_of(folder: Path) -> Path:
    """Return the folder in which numba caches the kernels of a folder's modules."""
    named = os.environ.get(KEY) or ("" if _is_writable(_default_folders()[0]) else str(_default_folders()[1] / "numba"))
    if not named:
        return folder / "__pycache__"
    return Path(named, f"{folder.name}_{sha1(str(folder).encode(), usedforsecurity=False).hexdigest()}")


@cache
def _checksum(package: Path) -> str:
    """Return a checksum of the modules that contain kernels or the types of their arguments."""
    digest = blake2b(digest_size=8)
    for path in sorted(package.rglob("*.py")):
        content = path.read_bytes()
        if b"@kernel" in content or b"NamedTuple" in content:
            digest.update(content)
    return digest.hexdigest()
