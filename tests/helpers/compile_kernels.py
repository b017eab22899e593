"""Compile the kernels that most tests need, in two processes: ``python tests/helpers/compile_kernels.py``.

Without it, the workers of the tests and the processes that they start compile the same kernels at the same time.
"""

import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]


def pages(folder: str) -> None:
    """Match pages, in memory and on disk, with and without their templates."""
    from in_process import command, front_door

    tiny = ("data/tiny", "--engine", "serial", "--boilerplate", "remove")
    shingles = ("data=tiny", "engine=serial", "matcher=spotsigs_tight", "signature=shingles3", "clusters=components")
    runs = (
        command("dedup", *tiny, "--memory", "1GB", "--out", f"{folder}/disk"),
        command("inspect", *tiny, "--keep", "longest", "--no-open", "--out", f"{folder}/memory"),
        front_door(*shingles, "boilerplate=main_content", f"hydra.run.dir={folder}/run"),
    )
    for done in runs:
        assert done.returncode == 0, done.stderr


def vectors() -> None:
    """Run every matcher on texts and on generated vectors, then the clusters."""
    from hydra import compose, initialize_config_dir

    from data.collections.wt10g_like import Wt10gLike
    from experiments.config import build
    from spotsigs.clustering.clusters import ClusterMethod, cluster
    from spotsigs.errors import InputError
    from spotsigs.matching.prefix_join import self_join
    from spotsigs.records import Corpus
    from spotsigs.testing import corpus_of, news

    drawn = Corpus(Wt10gLike(documents=300).vectors())
    pairs = self_join(drawn.vectors, 0.5)  # first, since the other process needs its kernels last
    for method in ClusterMethod:
        cluster(pairs, clusters=method)
    matchers = {}
    for path in sorted((ROOT / "conf" / "matcher").glob("*.yaml")):
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            config = compose("config", ["data=tiny", f"matcher={path.stem}"])
        matchers[path.stem] = build(config["matcher"], "matcher")
    for matcher in matchers.values():
        with suppress(InputError):  # some read texts
            matcher(drawn)
    texts = corpus_of(news(5))
    for matcher in matchers.values():
        matcher(texts)


if __name__ == "__main__":
    if sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            pages(scratch) if sys.argv[1] == "pages" else vectors()
    else:
        parts = [subprocess.Popen([sys.executable, __file__, name]) for name in ("pages", "vectors")]
        sys.exit(max(part.wait() for part in parts))
