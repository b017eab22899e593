"""Fuzz one target, guided by coverage: `python tests/fuzz/fuzz.py warc -max_total_time=60`, or all by `make fuzz`.

Inputs that fail are written to `tests/fuzz/corpus/TARGET/crash-*` and remain there as tests.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("NUMBA_BOUNDSCHECK", "1")  # kernels raise if they read or write outside of an array
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir(), "spotsigs-fuzz-numba")))
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers"), str(HERE.parents[1])]

import atheris
from guided import MODULES

import spotsigs.matching.join_driver
import spotsigs.matching.prefix_join
import spotsigs.signatures.extract
import spotsigs.signatures.spots
import spotsigs.text.visible  # noqa: F401 - before: the compiler of the kernels does not know instrumented bytecode

with atheris.instrument_imports(include=MODULES):
    import targets


def main() -> None:
    """Fuzz the target named first, followed by libFuzzer's own arguments."""
    name, *arguments = sys.argv[1:]
    target = targets.TARGETS[name]
    corpus = HERE / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    grown = Path(tempfile.gettempdir(), f"spotsigs-fuzz-{name}")
    grown.mkdir(exist_ok=True)
    for k, seed in enumerate(targets.seeds()[name]):
        target(seed)
        (grown / f"seed{k}").write_bytes(seed)
    limits = ["-timeout=20", "-rss_limit_mb=3000", "-max_len=4096", f"-artifact_prefix={corpus}/"]
    more = {}
    if name == "html":  # kernels give no coverage that could guide
        pages = targets.seeds()[name]
        more["custom_mutator"] = lambda _data, size, seed: targets.changed_page(random.Random(seed), pages)[:size]
        limits += ["-len_control=0"]
    atheris.Setup([sys.argv[0], *limits, *arguments, str(grown), str(corpus)], target, **more)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
