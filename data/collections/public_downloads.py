"""Public labelled collections, fetched once, checked against their published checksums."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data.collections.downloads import file_sha256, registry_row, replacing
from spotsigs.clustering.clusters import cluster
from spotsigs.errors import InputError, require
from spotsigs.formats.column_files import Parquet
from spotsigs.formats.compression import READ_ERRORS
from spotsigs.formats.input_files import SHARD_BYTES, lines, reason
from spotsigs.formats.jsonl import Jsonl
from spotsigs.formats.writers import Keep
from spotsigs.records import CopyableCollection, Pairs, Shard


@dataclass(frozen=True, kw_only=True)
class NewsCopy(CopyableCollection):
    """NEWS-COPY: front-page articles of 973 historical newspapers with their reproductions, read by OCR.

    The authors' own folder is gone; the copy that is left holds 14,211 articles in ``test`` and 4,988 in ``val``,
    clusters closed transitively. Its page states no licence, so it is fetched only after `accept_licence`.

    Parameters
    ----------
    split : str
        ``test`` or ``val``.
    path : str, optional
        A copy of the file, which is then read instead of being fetched.
    accept_licence : bool
        Whether the reader has satisfied themselves that they may use the articles.
    cache : str
        Folder of fetched files.

    References
    ----------
    E. Silcock, L. D'Amico-Wong, J. Yang and M. Dell, *Noise-Robust De-Duplication at Scale*, ICLR 2023.
    """

    split: str = "test"
    path: str | None = None
    accept_licence: bool = False
    cache: str = "data/cache"

    def __post_init__(self) -> None:
        require(self.split in ("test", "val"), f"split must be test or val, got {self.split!r}")

    def shards(self) -> Sequence[Shard]:
        """Return the collection's shares, fetching it the first time."""
        return self._file().shards()

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy the file without the removed documents, see `spotsigs.formats.writers.Copied`."""
        self._file().copy(folder, keep)

    def _file(self) -> Parquet:
        path = self.path
        if path is None:
            name = f"news_copy/{self.split}.parquet"
            if not self.accept_licence and not Path(self.cache, name).exists():
                raise InputError(
                    "the copy of NEWS-COPY that can be fetched states no licence; if you may use its articles, repeat "
                    "with data.accept_licence=true, or give your own copy by data.path="
                )
            path = str(fetch(name, self.cache))
        return Parquet(path=path, id_column="idx", text_column="article", cluster_column="cluster")


@dataclass(frozen=True, kw_only=True)
class CoreDeduplication(CopyableCollection):
    """CORE Deduplication Dataset 2020: titles and abstracts of 100,000 scholarly documents with labelled duplicates.

    Parameters
    ----------
    text : str
        ``original`` or ``processed``: which form of title and abstract to read.
    path : str, optional
        A copy of the file, which is then read instead of being fetched.
    cache : str
        Folder of fetched and prepared files.
    shard_bytes : int
        Bytes of the prepared file that a worker takes at a time.

    References
    ----------
    B. Gyawali, L. Anastasiou and P. Knoth, *Deduplication of Scholarly Documents using Locality Sensitive Hashing and
    Word Embeddings*, LREC 2020.

    Deviations
    ----------
    The labels name each document's duplicates; here they are closed transitively into clusters.
    """

    text: str = "original"
    path: str | None = None
    cache: str = "data/cache"
    shard_bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        require(self.text in ("original", "processed"), f"text must be original or processed, got {self.text!r}")

    def shards(self) -> Sequence[Shard]:
        """Return the collection's shares, fetching and preparing it the first time."""
        return self._file().shards()

    def copy(self, folder: Path, keep: Keep) -> None:
        """Copy the prepared file without the removed documents, see `spotsigs.formats.writers.Copied`."""
        self._file().copy(folder, keep)

    def _file(self) -> Jsonl:
        source = Path(self.path) if self.path else fetch("core_2020/train.jsonl", self.cache)
        if not source.is_file():
            raise InputError(f"{source} does not exist")
        prepared = Path(self.cache, "core_2020", f"{self.text}-{file_sha256(source)[:12]}.jsonl")
        if not prepared.exists():
            clusters = _core_clusters(source)
            with replacing(prepared) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as out:
                for row, cluster in zip(_core_rows(source), clusters, strict=True):
                    parts = (row.get(f"{self.text}_title"), row.get(f"{self.text}_abstract"))
                    text = "\n\n".join(part for part in parts if part)
                    record = {"id": str(row["core_id"]), "cluster": cluster, "text": text}
                    out.write(json.dumps(record) + "\n")
        return Jsonl(path=str(prepared), shard_bytes=self.shard_bytes)


def _core_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        for number, (_, line) in enumerate(lines(path), start=1):
            row = json.loads(line)
            if "core_id" not in row or "labelled_duplicates" not in row:
                raise InputError(f"line {number} of {path} has no core_id or no labelled_duplicates")
            yield row
    except json.JSONDecodeError as error:
        raise InputError(f"line {number} of {path} is not JSON: {error}") from error
    except READ_ERRORS as error:
        raise InputError(f"{path} {reason(error)}") from error


def _core_clusters(path: Path) -> list[str]:
    """Return each document's cluster, called by the id of its first member."""
    ids: list[str] = []
    labelled: list[list[str]] = []
    for row in _core_rows(path):
        ids.append(str(row["core_id"]))
        labelled.append([str(other) for other in row["labelled_duplicates"] or ()])
    number = {core_id: row for row, core_id in enumerate(ids)}
    edges = [(a, number[other]) for a, others in enumerate(labelled) for other in others if other in number]
    i, j = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    clusters = cluster(Pairs.build(i, j, np.ones(len(i)), len(ids)))
    return [ids[row] for row in clusters.representatives[clusters.labels].tolist()]


def fetch(name: str, cache: str) -> Path:
    """Return a public file, fetched the first time.

    Parameters
    ----------
    name : str
        Its name in ``data/collections/registry.txt``.
    cache : str
        Folder it is kept in.

    Raises
    ------
    InputError
        If it cannot be reached or differs from its checksum.
    """
    target = Path(cache, name)
    if target.exists():
        return target
    import pooch
    import requests

    checksum, _, url = registry_row(name)
    try:
        if checksum == "lfs":
            checksum = _published_checksum(url)
        with replacing(target) as temporary:
            pooch.retrieve(url, f"sha256:{checksum}", fname=temporary.name, path=temporary.parent, progressbar=True)
    except (requests.RequestException, OSError) as error:
        raise InputError(
            f"{name} could not be fetched from {url} (is there a network?): {type(error).__name__}; fetch it elsewhere "
            "and give its place by data.path="
        ) from error
    except ValueError as error:
        raise InputError(f"{url} is not the file that was published: {error}") from error
    return target


def _published_checksum(url: str) -> str:
    """Return the SHA-256 that the file's repository records for it at the revision in the address."""
    import requests

    answer = requests.get(url.replace("/resolve/", "/raw/"), timeout=60)
    answer.raise_for_status()
    found = re.search(r"oid sha256:([0-9a-f]{64})", answer.text[:1000])
    if found is None:
        raise InputError(f"{url} has no published checksum any more; give your own copy by data.path=")
    return found[1]
