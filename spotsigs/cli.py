"""The command ``spotsigs``: near-duplicates of any input, in one line.

Every verb builds `Settings`, as ``python run.py`` does, and runs them.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from spotsigs import __version__, defaults, terminal
from spotsigs.errors import InputError, as_choice, as_tau, counted, did_you_mean, printable, reason, require, shown
from spotsigs.spelling import command_spelling
from spotsigs.terminal import expand_home, open_streams, say_when_compiling

VERBS: dict[str, tuple[str, str, str]] = {
    "dedup": (
        "copy an input without its near-duplicates",
        "One document of each group of near-duplicates is kept; FOLDER-results/removed.csv has the reason for others.",
        "spotsigs dedup crawl.warc.gz --out kept/",
    ),
    "pairs": (
        "list the pairs of near-duplicates",
        "Tab-separated doc_a, doc_b, similarity, shared, union; with --out, a folder of tables instead.",
        "spotsigs pairs pages/ --tau 0.6 > pairs.tsv",
    ),
    "cluster": (
        "group near-duplicates",
        "Tab-separated doc, cluster, representative; with --out, a folder of tables instead.",
        "spotsigs cluster articles.parquet --text body > clusters.tsv",
    ),
    "query": (
        "find the documents of a store that resemble a page",
        "Most similar documents first; an earlier command with --store made the store.",
        "spotsigs query page.html --store my.store",
    ),
    "threshold": (
        "propose a threshold, with pairs to judge by eye",
        "Writes threshold.html and tables.",
        "spotsigs threshold pages/ --out threshold/",
    ),
    "inspect": (
        "show the groups side by side in a browser",
        "Writes clusters.html and opens it.",
        "spotsigs inspect crawl.warc.gz",
    ),
}

INPUT = ("dedup", "pairs", "cluster", "threshold", "inspect")
STORED = ("dedup", "pairs", "cluster", "inspect")
TABLES = ("pairs", "cluster", "threshold", "inspect")
"""Verbs that read an input, that can write a store, and that write tables only."""

COLUMNS = ("id", "text", "html", "cluster", "date")
OPTIONS: tuple[tuple[tuple[str, ...], str, str, str], ...] = (
    (INPUT, "input", "", "file, folder, 'pattern*', URL, or - for standard input"),
    (("query",), "page", "", "file, or - for standard input"),
    (INPUT, "--format", "FORMAT", "detected from the content where omitted"),
    *((INPUT, f"--{column}", "COLUMN", f"column with the {column} of each document") for column in COLUMNS),
    (INPUT, "--memory", "SIZE", "hard budget of all processes, such as 2GB"),
    (INPUT, "--workers", "N", "processes that read"),
    (INPUT, "--strict", "", "stop at the first unreadable record"),
    (
        (*INPUT, "query"), "--tau", "NUMBER|auto",
        f"similarity threshold: that of the store, else {defaults.TAU_PAGES:g} for pages with links and "
        f"{defaults.TAU:g} for text and with --boilerplate keep",
    ),
    (
        (*INPUT, "query"), "--boilerplate", "auto|remove|keep|main_content",
        "remove: the template that pages of one site share is not compared; "
        f"{defaults.BOILERPLATE} where omitted (or that of the store)",
    ),
    (
        (*INPUT, "query"), "--language", "CODE",
        "of the pages: en, de, fr, …; detected for each page where omitted (or that of the store)",
    ),
    (INPUT, "--idf-min", "NUMBER", f"band of signatures by rarity ({defaults.IDF_MIN:g})"),
    (INPUT, "--idf-max", "NUMBER", f"band of signatures by rarity ({defaults.IDF_MAX:g})"),
    (INPUT, "--clusters", "leaders|components", f"({defaults.CLUSTERS})"),
    (INPUT, "--keep", "first|longest|newest|none", "which document is kept"),
    (
        ("pairs", "cluster", "inspect"), "--measure", "jaccard|containment",
        "containment: intersection over the shorter page, which finds a teaser in its article",
    ),
    (("dedup",), "--out", "FOLDER", "the copy, in the input's own format"),
    (TABLES, "--out", "FOLDER", "tables of the run"),
    (("dedup",), "--results", "FOLDER", "tables of the run; FOLDER-results by default"),
    (("dedup",), "--overwrite", "", "replace the copy that is there"),
    (("inspect",), "--no-open", "", "write the page only"),
    (STORED, "--store", "FOLDER", "keep signatures, to add to and to query"),
    (STORED, "--add", "", "add to the store; report only pairs with new documents"),
    (("query",), "--store", "FOLDER", "made by an earlier command"),
)  # fmt: skip
"""Verbs, name, placeholder of the value and help of each option; an option without a placeholder is a switch."""

REQUIRED = {("dedup", "--out"), ("query", "--store")}

DEFAULTS: dict[str, Any] = {
    "add": False, "clusters": defaults.CLUSTERS, "idf_max": str(defaults.IDF_MAX), "idf_min": str(defaults.IDF_MIN),
    "keep": defaults.KEEP, "measure": defaults.MEASURE, "memory": None, "overwrite": False, "page": None, "store": None,
    "strict": False,
}  # fmt: skip
"""Values of options that are omitted, or that a verb does not have."""

LISTED = 20
"""Skipped records that are printed if no folder lists them."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence each."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; `{self.prog} --help` has an example")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    lines = [f"  {verb:<12}{what[0]:<50}{what[2]}" for verb, what in VERBS.items()]
    top = _Parser(
        prog="spotsigs",
        description="Find near-duplicate pages: exactly those whose similarity reaches tau.",
        epilog="\n".join(["verbs:", *lines, "", "`spotsigs VERB --help` lists the options."]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="spotsigs VERB ...",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"spotsigs {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", help=argparse.SUPPRESS, required=True)
    for verb, (_, about, example) in VERBS.items():
        options = verbs.add_parser(
            verb,
            prog=f"spotsigs {verb}",
            description=about,
            epilog=f"example: {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        for taken_by, name, value, text in OPTIONS:
            if verb not in taken_by:
                continue
            if not name.startswith("--"):
                options.add_argument(name, help=text)
            elif not value:
                options.add_argument(name, action="store_true", help=text)
            else:
                options.add_argument(name, metavar=value, help=text, required=(verb, name) in REQUIRED)
        options.set_defaults(**DEFAULTS, workers=str(os.cpu_count() or 1))
    return top


def settings_of(args: argparse.Namespace) -> Any:
    """Return the `Settings` of a verb's arguments.

    Raises
    ------
    InputError
        If a value is out of range or the input cannot be read.
    """
    from spotsigs.api import matcher_of
    from spotsigs.clustering.clusters import ClusterMethod
    from spotsigs.clustering.decisions import Keep
    from spotsigs.engines import Processes
    from spotsigs.evaluation.threshold import FLOOR
    from spotsigs.outofcore.pipeline import stored_boilerplate, stored_language
    from spotsigs.runs.settings import AUTO, Settings
    from spotsigs.signatures.boilerplate import Boilerplate, with_boilerplate
    from spotsigs.signatures.idf import IdfFilter
    from spotsigs.signatures.spots import SpotSignatures
    from spotsigs.text.visible import VisibleText

    auto = args.tau == AUTO
    memory = _memory(args)
    require(memory is None or not auto, "--tau auto compares all similarities in memory; leave out --memory, --store")
    name, collection = _collection(args)
    boilerplate, language = args.boilerplate, args.language
    if args.store is not None:
        boilerplate = boilerplate or stored_boilerplate(args.store)
        language = language or stored_language(args.store)
    boilerplate = as_choice("--boilerplate", boilerplate or defaults.BOILERPLATE, Boilerplate)
    tau = FLOOR if auto else _tau(args, collection, boilerplate in (Boilerplate.auto, Boilerplate.remove))
    workers = _whole("--workers", args.workers)
    return Settings(
        collection=collection,
        text=VisibleText(),
        signature=with_boilerplate(SpotSignatures(language=language or defaults.LANGUAGE), boilerplate),
        idf_filter=IdfFilter(idf_min=_number("--idf-min", args.idf_min), idf_max=_number("--idf-max", args.idf_max)),
        matcher=matcher_of("--measure", args.measure)(tau=tau),
        engine=Processes(workers=workers),
        auto=auto,
        tau=tau,
        clusters=as_choice("--clusters", args.clusters, ClusterMethod),
        keep=as_choice("--keep", args.keep, Keep),
        copy=args.out if args.verb == "dedup" else None,
        overwrite=args.overwrite,
        page=args.verb == "inspect",
        memory=None if args.page else memory,
        store=args.store,
        add=args.add,
        query=args.page,
        workers=workers,
        strict=args.strict,
        boilerplate=boilerplate,
        names={
            "data": name, "text": "visible", "signature": "spotsigs", "engine": "processes",
            "matcher": "containment" if args.measure == "containment" else "spotsigs_tight", "experiment": "None",
        },
    )  # fmt: skip


def _collection(args: argparse.Namespace) -> tuple[str, Any]:
    """Return the name of the input's format, and its reader."""
    from spotsigs.formats.detect_format import collection_of
    from spotsigs.formats.stored import StoredCollection

    if args.verb == "query":
        return "stored", StoredCollection()
    require(not args.add or args.store is not None, "--add needs a store: name it with --store FOLDER")
    return collection_of(args.input, args.format, **{f"{name}_column": getattr(args, name) for name in COLUMNS})


def _contents(collection: Any) -> Iterator[object]:
    """Yield the contents of the documents of an input, in order."""
    for shard in collection.shards():
        yield from (getattr(document, "content", None) for document in shard())


def _memory(args: argparse.Namespace) -> int | None:
    """Return the budget in bytes; with a store, the default one unless another is set."""
    from spotsigs.outofcore.pipeline import default_memory
    from spotsigs.outofcore.vectorize import parse_memory

    if args.memory is not None:
        return parse_memory(args.memory)
    return None if args.store is None else default_memory()


def _tau(args: argparse.Namespace, collection: Any, removes: bool) -> float:
    """Return the threshold that is set, else that of the store, else the default one of the input."""
    from spotsigs.outofcore.pipeline import stored_tau

    if args.tau is not None:
        return as_tau(_number("--tau", args.tau, " in (0, 1], or auto"))
    known = None if args.store is None else stored_tau(args.store)
    if known is None and args.verb == "query":
        return defaults.TAU_PAGES if removes else defaults.TAU
    return defaults.tau(_contents(collection), removes) if known is None else known


def _number(name: str, text: Any, allowed: str = "") -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{name} must be a number{allowed}, got {shown(text)}") from None


def _whole(name: str, text: Any) -> int:
    require(str(text).isascii() and str(text).isdigit() and int(text) >= 1, f"{name} must be at least 1, got {text}")
    return int(text)


def _run(args: argparse.Namespace, folder: Path, say: Callable[..., object] = print) -> str:
    """Run a verb; return its summary."""
    from spotsigs.runs.runner import run

    return run(settings_of(args), folder, say=say)


def _folder(name: str | None, default: str) -> Path:
    from spotsigs.storage.locations import local_folder

    return local_folder(default if name is None else name)


def _dedup(args: argparse.Namespace) -> None:
    copy = _folder(args.out, "").absolute()
    results = copy.with_name(f"{copy.name}-results") if args.results is None else _folder(args.results, "")
    print(_run(args, results))


def _table(args: argparse.Namespace, name: str, columns: Sequence[str]) -> None:
    """Print a table of a run, or write all into a folder."""
    if args.out is not None:
        print(_run(args, _folder(args.out, "")))
        return
    from pyarrow.parquet import ParquetFile

    def say(text: object) -> None:
        print(printable(str(text)), file=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="spotsigs-") as folder:
        _run(args, Path(folder), say)
        print(*columns, sep="\t")
        for batch in ParquetFile(Path(folder) / name).iter_batches(columns=list(columns)):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                print(*(_cell(value) for value in row), sep="\t")
        sys.stdout.flush()
        for line in _brief(Path(folder)):
            say(line)


def _brief(folder: Path) -> Iterable[str]:
    """Return the results and the skipped records of a run whose folder is deleted."""
    import csv

    from spotsigs.output_files import read_json

    metrics = read_json(folder / "metrics.json")
    found = (counted(metrics[key], key.removesuffix("s")) for key in ("documents", "pairs", "clusters"))
    yield ", ".join(found)
    if metrics["giant_chains"]:
        yield f"{counted(metrics['giant_chains'], 'giant chain')}, most of whose pairs do not reach tau; try --clusters"
    if not (folder / "skipped.csv").exists():
        return
    with (folder / "skipped.csv").open(newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file)):
            if number < LISTED:
                yield f"skipped {row['doc']}: {row['reason']}"
    if metrics["skipped"] > LISTED:
        yield f"skipped {metrics['skipped'] - LISTED:,} more; --out FOLDER lists them all"


def _cell(value: Any) -> str:
    """Return a value as a cell of a table; on a terminal, without characters that it interprets."""
    text = str(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return printable(text) if sys.stdout.isatty() else text


def _inspect(args: argparse.Namespace) -> None:
    folder = _folder(args.out, "spotsigs-inspect")
    print(_run(args, folder))
    page = (folder / "clusters.html").absolute()
    if page.exists():
        print(f"page: {page}")
        if not args.no_open:
            with suppress(webbrowser.Error):
                webbrowser.open(page.as_uri())


def _threshold(args: argparse.Namespace) -> None:
    from spotsigs.runs.thresholds import threshold_report

    settings = settings_of(args)
    require(settings.memory is None, "a threshold is proposed in memory; leave out --memory")
    settings = replace(settings, tau=defaults.TAU if settings.auto else settings.tau)
    print(threshold_report(settings, _folder(args.out, "spotsigs-threshold")))


DO: dict[str, Callable[[argparse.Namespace], None]] = {
    "dedup": _dedup,
    "pairs": lambda args: _table(args, "pairs.parquet", ("doc_a", "doc_b", "similarity", "shared", "union")),
    "cluster": lambda args: _table(args, "clusters.parquet", ("doc", "cluster", "representative")),
    "query": lambda args: print(_run(args, Path())),
    "threshold": _threshold,
    "inspect": _inspect,
}


def main(words: Sequence[str] | None = None, *, interrupt: Any = None) -> None:
    """Run what the command line requests; end with a sentence and exit code 1 if it cannot be done.

    Parameters
    ----------
    words : sequence of str, optional
        The arguments; those of the process by default.
    interrupt : optional
        Handler of SIGINT to install, see `spotsigs.__main__`.
    """
    previous = signal.getsignal(signal.SIGINT)
    with command_spelling():
        try:
            if interrupt is not None:
                signal.signal(signal.SIGINT, interrupt)
            open_streams()
            args = _parsed(expand_home(sys.argv[1:] if words is None else words))
            say_when_compiling(sys.stderr)
            terminal.set_up_logging()
            terminal.end_on_interrupt()
            DO[args.verb](args)
            sys.stdout.flush()
        except KeyboardInterrupt:
            terminal.end()
        except Exception as error:
            terminal.end_if_unheard(error)
            if os.environ.get("SPOTSIGS_DEBUG"):
                raise
            sys.exit(f"error: {printable(_sentence(error))}")
        finally:
            if words is not None and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, previous)  # the caller's program resumes


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; suggest the verb or option that a misspelt one resembles."""
    first = words[0] if words else ""
    if first and first not in VERBS and not first.startswith("-"):
        close = did_you_mean(first, VERBS)
        raise InputError(f"there is no verb {first!r}{close or ';'} `spotsigs --help` lists them")
    args, unknown = parser().parse_known_args(words)
    if unknown:
        close = did_you_mean(unknown[0].partition("=")[0], [option[1] for option in OPTIONS if args.verb in option[0]])
        where = f"`spotsigs {args.verb} --help` lists all"
        raise InputError(f"{args.verb} does not take {unknown[0]!r}{close or ';'} {where}")
    return args


def _sentence(error: Exception) -> str:
    """Return an error as one sentence."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        from spotsigs.storage.atomic import place_of

        return f"{place_of(error) or 'the system'}: {reason(error)}"
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return f"unexpected {type(error).__name__}: {first} (SPOTSIGS_DEBUG=1 shows where)"
