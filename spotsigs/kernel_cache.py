"""The folders of compiled kernels."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

KEY = "NUMBA_CACHE_DIR"


def set_cache_folder() -> None:
    """Set numba's cache folder to one in the temporary folder if numba can write to neither of its own.

    Numba caches kernels next to the source or in the user's cache folder, and raises if it can write to neither, for
    example in a container without a home folder. It unpickles the cache, so that the folder must be owned by the user
    and closed to others; otherwise a new one is created.
    """
    if sys.platform != "linux" or KEY in os.environ or any(map(_is_writable, _usual_places())):
        return
    folder = Path(tempfile.gettempdir(), f"spotsigs-kernels-{os.getuid()}")
    os.environ[KEY] = str(folder) if _is_mine(folder) else tempfile.mkdtemp(prefix="spotsigs-kernels-")
    if "numba" in sys.modules:
        sys.modules["numba"].core.config.reload_config()


def _usual_places() -> list[Path]:
    """Return the cache folders of numba: next to the source, and in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return [Path(__file__).parent / "__pycache__", Path(cache)]


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


def delete_outdated_kernels(package: Path, version: str) -> None:
    """Delete the compiled kernels of another version of a package, if its folder can be written to.

    Numba unpickles the index of a kernel before it checks whether the source has changed. After an upgrade in place, an
    index may name a type that no longer exists, and the first call of the kernel would raise an AttributeError.
    """
    current = package / "__pycache__" / f"kernels-{version}"
    if current.exists():
        return
    with suppress(OSError):
        current.parent.mkdir(exist_ok=True)
        for outdated in current.parent.glob("kernels-*"):
            for index in package.rglob("*.nbi"):
                index.unlink(missing_ok=True)
            outdated.unlink(missing_ok=True)
        current.touch()
