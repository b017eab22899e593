"""The command ``spotsigs``: near-duplicates of any input, in one line.

Every verb builds a `Method` and a `Run`, as ``python run.py`` does.
"""

from __future__ import annotations

import argparse
import csv
import os
import signal
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from spotsigs import __version__
from spotsigs.errors import InputError, as_choice, counted, did_you_mean, printable, reason, require
from spotsigs.options import Door, as_option, default_tau, elsewhere, method_options, options_of
from spotsigs.reports import terminal
from spotsigs.reports.terminal import announce_compilation, expand_home, open_streams
from spotsigs.storage.atomic import staging_folder
from spotsigs.storage.locations import NOT_WRITTEN, PRINTED, absolute, as_path, local_folder
from spotsigs.text.size_limits import BUDGET_PAGE, page_size_limit

if TYPE_CHECKING:
    from spotsigs.method import Method
    from spotsigs.outofcore.pipeline import Store
    from spotsigs.runs.result import Result
    from spotsigs.runs.stages import Run

VERBS: dict[str, tuple[str, str, str]] = {
    "dedup": (
        "copy an input without its near-duplicates",
        "One document of each group of near-duplicates is kept; FOLDER-results/removed.csv has the reason for others.",
        "spotsigs dedup crawl.warc.gz --out kept/",
    ),
    "pairs": (
        "list the pairs of near-duplicates",
        "Tab-separated doc_a, doc_b, similarity, shared, union, lower_bound; with --out, a folder of tables instead.",
        "spotsigs pairs pages/ --tau 0.6 > pairs.tsv",
    ),
    "cluster": (
        "group near-duplicates",
        "Tab-separated doc, cluster, representative; with --out, a folder of tables instead.",
        "spotsigs cluster articles.parquet --text body > clusters.tsv",
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

PRINTED_COLUMNS = {
    "pairs": ("doc_a", "doc_b", "similarity", "shared", "union", "lower_bound"),
    "cluster": ("doc", "cluster", "representative"),
}
"""Columns of the table that a verb prints."""

COLUMNS = ("id_column", "text_column", "html_column", "cluster_column", "date_column")
"""Options that name a column of the input."""

MOST_LISTED = 20
"""Skipped records that are printed if no folder lists them."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence each."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; `{self.prog} --help` has an example")


class _Read(argparse.Action):
    """Reads the value of an option, so that a wrong one is a sentence of our own."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, text: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, options_of(Door.command)[self.dest].read(text))


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
        options.add_argument(
            "input", help="The input is a file, a folder, a 'pattern*' or a URL; - reads standard input."
        )
        for option in options_of(Door.command, verb).values():
            text = option.described(Door.command)
            if not option.form:
                options.add_argument(option.typed, dest=option.name, action="store_true", help=text)
                continue
            options.add_argument(
                option.typed,
                dest=option.name,
                metavar=option.form,
                help=text,
                required=option.required,
                action=_Read,
            )
        options.add_argument(
            "-v", "--verbose", action="count", default=0, help="Print more of the log; -vv prints all of it."
        )
        options.set_defaults(
            **{name: option.defaults[Door.command] for name, option in options_of(Door.command).items()}
        )
    return top


def method_of(args: argparse.Namespace, collection: Any, store: Store | None) -> Method:
    """Return the method of a verb's arguments; what they omit is the choice of a store, or the default.

    Raises
    ------
    InputError
        If a value is out of range or the input cannot be read.
    """
    from spotsigs.clustering.decisions import keep_by
    from spotsigs.method import Method

    known = None if store is None else store.method
    decided = known if store is not None and store.is_decided else None
    chosen = {name: getattr(args, name) for name in method_options(Door.command)}
    for name, of_store in (("boilerplate", known), ("language", known), ("min_contained", decided)):
        if of_store is not None and chosen[name] is None:
            chosen[name] = getattr(of_store, name)
    if args.keep_by is not None:
        chosen["keep"] = keep_by(args.keep_by)[0]
    method = Method.of(**chosen)
    if not method.chooses_tau:
        return method
    if decided is not None:
        return method.at(decided.threshold)
    contents = ("" if page.media_type == "text/plain" else page.content for page in _documents(collection))
    return method.at(default_tau(contents, method.removes_templates))


def planned(args: argparse.Namespace, folder: Path) -> tuple[Method, Run]:
    """Return the method of a verb's arguments, and the run whose tables are written to a folder."""
    from spotsigs.outofcore.pipeline import Store, data_budget
    from spotsigs.runs.stages import Output, Run
    from spotsigs.workers.engines import engine_of

    named = args.verb == "dedup" or args.out != PRINTED
    require(named, f"--out of {args.verb} is a folder of tables, got -; name a folder, or leave out --out")
    against = _reference(args)
    known = against if isinstance(against, Store) else None if args.store is None else Store.open(args.store)
    require(not args.add or args.store is not None, "--add needs a store: name it with --store FOLDER")
    missing = f"{args.store} is no store, so that nothing can be added; leave out --add for the first run"
    require(not args.add or known is not None, missing)
    memory = _memory(args, args.store is not None or known is not None)
    if memory is not None:
        data_budget(memory)  # an error if it is too little, before the input is read
    name, collection = _collection(args)
    engine = engine_of(args.engine, workers=args.workers or os.cpu_count() or 1, address=args.address)
    output = Output(
        folder=folder,
        copy=args.out if args.verb == "dedup" else None,
        overwrite=args.overwrite,
        page=args.verb == "inspect",
        tables=args.verb != "dedup" or args.out != PRINTED or args.results is not None,
        listed=args.verb != "dedup",
        ends_program=True,
    )
    run = Run(
        collection=collection,
        data=name,
        against=against,
        strict=args.strict,
        output=output,
        engine=engine,
        memory=memory,
        store=args.store,
        add=args.add,
    )
    with nullcontext() if memory is None else page_size_limit(BUDGET_PAGE):
        if args.id_column is None and _names_by_url(collection):
            named = "the column url names documents and their sites; --id COLUMN names another column"
            print(terminal.log_line("info", named), file=sys.stderr)
        return method_of(args, collection, known), run


def _collection(args: argparse.Namespace) -> tuple[str, Any]:
    from spotsigs.clustering.decisions import keep_by
    from spotsigs.formats.detect_format import collection_of

    columns = {name: getattr(args, name) for name in COLUMNS}
    if args.keep_by is not None:
        usual = options_of(Door.command)["keep"].defaults[Door.command]
        require(args.keep == usual and args.date_column is None, "--keep-by takes the place of --keep and --date")
        columns["keep_by"] = keep_by(args.keep_by)[1]
    return collection_of(_path(args, args.input), args.data, **columns)


def _path(args: argparse.Namespace, path: str) -> str:
    """Return the path of an input for the workers, which may have other working directories."""
    return os.path.abspath(path) if args.engine == "dask" and path != "-" and "://" not in path else path


def _reference(args: argparse.Namespace) -> Any:
    """Return the store or the collection that the input is compared with; None without one."""
    from spotsigs.formats.detect_format import collection_of
    from spotsigs.outofcore.pipeline import Store

    if args.against is None:
        require(args.against_text is None, "--against-text needs a reference: name it with --against REFERENCE")
        return None
    require(args.store is None, "a store of the input is not kept with --against; leave out --store")
    require(args.against != "-" or args.input != "-", "standard input is either the input or the reference")
    path = _path(args, args.against)
    return Store.open(path) or collection_of(path, text_column=args.against_text)[1]


def _names_by_url(collection: Any) -> bool:
    """Return whether the first document of a table is named by its URL."""
    from spotsigs.formats.row_documents import URL, RowCollection

    if not isinstance(collection, RowCollection):
        return False
    one = replace(collection, path=str(collection.sources()[0].path))
    try:
        first, by_url = [next(_documents(replace(one, id_column=name)), None) for name in ("id", URL)]
    except InputError:  # no column of URLs
        return False
    return first is not None and first == by_url


def _documents(collection: Any) -> Iterator[Any]:
    for shard in collection.shards():
        yield from (record for record in shard() if hasattr(record, "content"))


def _memory(args: argparse.Namespace, stored: bool) -> int | None:
    from spotsigs.outofcore.pipeline import default_memory
    from spotsigs.outofcore.vectorize import parse_memory

    if args.memory is not None:
        return parse_memory(args.memory)
    return default_memory() if stored else None


def _run(args: argparse.Namespace, folder: Path) -> None:
    """Run a verb, and print its summary, next to printed documents on standard error."""
    from spotsigs.runs.runner import execute
    from spotsigs.runs.summary import summary

    method, run = planned(args, folder)
    result = execute(method, run)
    out = sys.stdout if run.output.copy != PRINTED else sys.stderr
    print(summary(result, run, Door.command), file=out)
    if not run.output.tables:  # no table of them remains
        for sentence in _skipped_sentences(result, _skipped_rows(folder / "skipped.csv"), "--results"):
            print(printable(sentence), file=out)


def _folder(name: str | None, default: str) -> Path:
    return local_folder(default if name is None else name)


def _dedup(args: argparse.Namespace) -> None:
    require(args.out != NOT_WRITTEN or args.results is not None, "--out none writes tables alone; add --results FOLDER")
    if args.results is not None:
        _run(args, as_path(args.results))
    elif args.out == PRINTED:
        with staging_folder(Path(tempfile.gettempdir(), "spotsigs")) as folder:
            _run(args, folder / "results")
    else:
        copy = as_path(absolute(args.out))
        require(copy.name != "", f"{args.out} has no name; name a folder in it, or another one for tables by --results")
        _run(args, copy.with_name(f"{copy.name}-results"))


def _print_or_write_tables(args: argparse.Namespace) -> None:
    """Print the table of a verb in blocks of rows, or write all tables into a folder."""
    if args.out is not None:
        _run(args, as_path(args.out))
        return
    from spotsigs.arrays.arrow import tab_separated
    from spotsigs.clustering.tables import cluster_columns, pair_columns
    from spotsigs.runs.runner import within_budget
    from spotsigs.runs.stages import compute
    from spotsigs.storage.tasks import task_log

    with staging_folder(Path(tempfile.gettempdir(), "spotsigs")) as folder:  # of a store that is not kept
        method, run = planned(args, folder)
        with within_budget(run) as memory, task_log():
            result = compute(method, run)
            matched = result.matched
            print(*PRINTED_COLUMNS[args.verb], sep="\t")
            blocks = cluster_columns(matched.doc_ids, result.decisions.clusters)
            if args.verb == "pairs":
                blocks = pair_columns(matched.doc_ids, matched.pairs, lower_bounds=matched.lower_bounds)
            for block in blocks:
                sys.stdout.write(tab_separated(block, _cell))
        sys.stdout.flush()
        if memory is not None:
            result = replace(result, peak_bytes=memory.peak_bytes)
        for sentence in _figures_without_folder(result):
            print(terminal.log_line("info", printable(sentence)), file=sys.stderr)


def _figures_without_folder(result: Result) -> Iterable[str]:
    """Return the figures and the skipped records of a run without a folder."""
    from spotsigs.runs.summary import peak_memory

    metrics = result.metrics
    counts = (counted(metrics[key], key.removesuffix("s")) for key in ("documents", "pairs", "clusters"))
    yield ", ".join(counts) + ("" if metrics["memory_budget_mb"] is None else f"; {peak_memory(metrics)}")
    if metrics["giant_chains"]:
        yield f"{counted(metrics['giant_chains'], 'giant chain')}, most of whose pairs do not reach tau; try --clusters"
    yield from _skipped_sentences(result, ((record.id, record.reason) for record in result.matched.skipped), "--out")


def _skipped_sentences(result: Result, skipped: Iterable[Sequence[str]], option: str) -> Iterable[str]:
    """Return the skipped records of a run without tables, and the option that would list all."""
    metrics = result.metrics
    for name, why in islice(skipped, MOST_LISTED):
        yield f"skipped {name}: {why}"
    if metrics["skipped"] > MOST_LISTED:
        yield f"skipped {metrics['skipped'] - MOST_LISTED:,} more; {option} FOLDER lists them all"


def _skipped_rows(path: Path) -> Iterator[list[str]]:
    """Yield the rows of a table of a run whose store is deleted; none if there is no table."""
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            yield from islice(csv.reader(file), 1, None)


def _cell(value: Any) -> str:
    """Return a value as a cell of a table, no formula; on a terminal, without characters that it interprets."""
    from spotsigs.clustering.tables import harmless

    text = harmless(value) if isinstance(value, str) else str(value)
    text = text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return printable(text) if sys.stdout.isatty() else text


def _inspect(args: argparse.Namespace) -> None:
    folder = _folder(args.out, "spotsigs-inspect")
    _run(args, folder)
    page = (folder / "clusters.html").absolute()
    if page.exists():
        print(f"page: {page}")
        if not args.no_open:
            with suppress(webbrowser.Error):
                webbrowser.open(page.as_uri())


def _threshold(args: argparse.Namespace) -> None:
    from spotsigs.runs.thresholds import threshold_report
    from spotsigs.storage.tasks import task_log

    require(args.memory is None, "a threshold is proposed in memory; leave out --memory")
    with task_log():
        report = threshold_report(*planned(args, _folder(args.out, "spotsigs-threshold")))
    print(report)


DO: dict[str, Callable[[argparse.Namespace], None]] = {
    "dedup": _dedup,
    "pairs": _print_or_write_tables,
    "cluster": _print_or_write_tables,
    "threshold": _threshold,
    "inspect": _inspect,
}


def main(words: Sequence[str] | None = None, *, interrupt: Any = None) -> None:
    """Run what the command line requests; end with a sentence and exit code 1 if it cannot be done.

    Parameters
    ----------
    words : sequence of str, optional
        The arguments. The default are the arguments of the process.
    interrupt : optional
        Handler of SIGINT to install, see `spotsigs.__main__`.
    """
    previous = signal.getsignal(signal.SIGINT)
    try:
        if interrupt is not None:
            signal.signal(signal.SIGINT, interrupt)
        open_streams()
        args = _parsed(expand_home(sys.argv[1:] if words is None else words))
        announce_compilation(sys.stderr)
        terminal.set_up_logging(args.verbose, as_choice("--log", args.log, terminal.Log).value)
        terminal.end_on_interrupt()
        DO[args.verb](args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        terminal.end()
    except Exception as error:
        if terminal.is_interrupt(error):
            terminal.end()
            return
        terminal.end_if_pipe_is_closed(error)
        if os.environ.get("SPOTSIGS_DEBUG"):
            raise
        sys.exit(terminal.log_line("error", printable(_sentence(error))))
    finally:
        if words is None:
            terminal.leave()
        elif threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, previous)  # the caller's program resumes


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; suggest the verb or option that a misspelt one resembles."""
    first = words[0] if words else ""
    if first and first not in VERBS and not first.startswith("-"):
        close = did_you_mean(first, VERBS)
        raise InputError(f"there is no verb {first!r}{close or ';'} `spotsigs --help` lists them")
    words = _join_keep_by(words)
    verb = next(filter(VERBS.__contains__, words), "")
    taken = ["--help", "--verbose", *(option.typed for option in options_of(Door.command, verb).values())]
    options = (word for word in takewhile("--".__ne__, words) if word.startswith("--"))
    unknown = [word for word in options if verb and word.partition("=")[0] not in taken]
    if not unknown:  # argparse names missing options before unknown ones
        args, unknown = parser().parse_known_args(words)
    if unknown:
        name = unknown[0].partition("=")[0]
        close, where = did_you_mean(name, taken), f"`spotsigs {verb} --help` lists all"
        if there := elsewhere(name.removeprefix("--").replace("-", "_"), Door.command):
            close, where = "", there
        raise InputError(f"{verb} does not take {unknown[0]!r}{close or ';'} {where}")
    return args


def _join_keep_by(words: Sequence[str]) -> list[str]:
    """Join ``--keep-by`` with a column after a hyphen, which would be an option."""
    joined: list[str] = []
    for word in words:
        if joined[-1:] == ["--keep-by"] and word.startswith("-"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _sentence(error: Exception) -> str:
    if isinstance(error, InputError):
        return error.spelled(as_option)
    if isinstance(error, OSError) and error.strerror:
        from spotsigs.storage.atomic import failed_path

        return f"{failed_path(error) or 'the system'}: {reason(error)}"
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return f"unexpected {type(error).__name__}: {first} (SPOTSIGS_DEBUG=1 shows where)"
