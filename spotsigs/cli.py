"""The command ``spotsigs``: near-duplicates of any input, in one line.

Every verb builds `Settings`, as ``python run.py`` does, and runs them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, NoReturn

from spotsigs import __version__, interrupts, progress
from spotsigs.errors import InputError, as_tau, printable, reason, require
from spotsigs.startup import at_home, import_numba, open_streams, say_when_compiling

EXTRA = "pip install 'spotsigs[experiments]'"

VERBS: dict[str, tuple[str, str, str]] = {
    "dedup": (
        "copy an input without its near-duplicates",
        "One document of each group of near-duplicates stays; FOLDER-results/removed.csv says why the others went.",
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
        "find the documents of a store that a page is like",
        "Most similar documents first; the store was made by --store of an earlier command.",
        "spotsigs query page.html --store my.store",
    ),
    "threshold": (
        "propose a threshold, with pairs to judge by eye",
        f"Writes threshold.html and tables; needs {EXTRA}.",
        "spotsigs threshold pages/ --out threshold/",
    ),
    "inspect": (
        "look at the groups, side by side, in a browser",
        f"Writes clusters.html and opens it; needs {EXTRA}.",
        "spotsigs inspect crawl.warc.gz",
    ),
    "compare": (
        "put finished runs side by side",
        "What was configured differently, the figures, and which pairs they share.",
        "spotsigs compare results/one results/other",
    ),
    "completion": (
        "print a completion script for the shell",
        "For bash, zsh or fish.",
        'eval "$(spotsigs completion bash)"',
    ),
}


class _Parser(argparse.ArgumentParser):
    """Mistakes are one sentence, as everywhere else."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; `{self.prog} --help` has an example")


def parser(verb: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Parameters
    ----------
    verb : str, optional
        The one whose options are needed: their choices are those of modules that take a second to import. All by
        default.
    """
    lines = [f"  {verb:<12}{what[0]:<50}{what[2]}" for verb, what in VERBS.items()]
    top = _Parser(
        prog="spotsigs",
        description="Find near-duplicate pages: exactly those whose similarity reaches tau.",
        epilog="\n".join(["verbs:", *lines, "", "`spotsigs VERB --help` says more."]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="spotsigs VERB ...",
    )
    top.add_argument("--version", action="version", version=f"spotsigs {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", help=argparse.SUPPRESS, required=True)
    added = {
        verb: verbs.add_parser(
            verb,
            prog=f"spotsigs {verb}",
            description=about,
            epilog=f"example: {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for verb, (_, about, example) in VERBS.items()
    }
    for name, options in added.items():
        if verb in (None, name):
            _take_options(name, options)
    return top


def _take_options(verb: str, options: argparse.ArgumentParser) -> None:
    """Add the options of a verb."""
    if verb in ("dedup", "pairs", "cluster", "threshold", "inspect"):
        _take_input(options)
    if verb == "dedup":
        options.add_argument("--out", required=True, metavar="FOLDER", help="the copy, in the input's own format")
        options.add_argument("--results", metavar="FOLDER", help="tables of the run; FOLDER-results by default")
    if verb in ("pairs", "cluster", "threshold", "inspect"):
        options.add_argument("--out", metavar="FOLDER", help="tables of the run")
    if verb == "inspect":
        options.add_argument("--no-open", action="store_true", help="write the page only")
    if verb in ("pairs", "cluster", "inspect"):
        options.add_argument(
            "--measure",
            choices=("jaccard", "containment"),
            default="jaccard",
            help="containment: intersection over the shorter page, which finds a teaser in its article",
        )
    if verb in ("dedup", "pairs", "cluster", "inspect"):
        options.add_argument("--store", metavar="FOLDER", help="keep signatures, to add to and to query")
        options.add_argument(
            "--add", action="store_true", help="add to the store; report only pairs with new documents"
        )
    if verb == "query":
        options.add_argument("page", help="file, or - for standard input")
        options.add_argument("--store", required=True, metavar="FOLDER", help="made by an earlier command")
        _take_tau(options)
        _take_language(options)
    if verb == "compare":
        options.add_argument("runs", nargs="+", metavar="RUN", help="folder of a finished run")
    if verb == "completion":
        options.add_argument("shell", choices=("bash", "zsh", "fish"))


def _take_language(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--language",
        metavar="CODE",
        help="of the pages: en, de, fr, …; detected for each page where omitted (or that of the store)",
    )


def _take_input(verb: argparse.ArgumentParser) -> None:
    from spotsigs.clustering.decisions import Keep
    from spotsigs.formats.detect_format import FORMATS

    verb.add_argument("input", help="file, folder, 'pattern*', URL, or - for standard input")
    _take_tau(verb)
    _take_language(verb)
    verb.add_argument("--keep", choices=[keep.value for keep in Keep], default="first", help="which document stays")
    verb.add_argument("--format", choices=sorted(FORMATS), help="detected from the content where omitted")
    for column in ("id", "text", "html", "cluster", "date"):
        verb.add_argument(f"--{column}", metavar="COLUMN", help=f"column with the {column} of each document")
    verb.add_argument("--memory", metavar="SIZE", help="hard budget of all processes, such as 2GB")
    verb.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes that read")
    verb.add_argument("--strict", action="store_true", help="stop at the first unreadable record")


def _take_tau(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--tau", default="0.44", help="least similarity of near-duplicates (0.44), or auto")


def settings_of(asked: argparse.Namespace) -> Any:
    """Return the settings that a verb's arguments mean; all else stays as ``conf/config.yaml`` has it.

    Parameters
    ----------
    asked : Namespace
        From `parser`.

    Returns
    -------
    Settings

    Raises
    ------
    InputError
        If a value is out of range or the input cannot be read.
    """
    from spotsigs.clustering.clusters import ClusterMethod
    from spotsigs.clustering.decisions import Keep
    from spotsigs.engines import Processes
    from spotsigs.evaluation.threshold import FLOOR
    from spotsigs.exact_duplicates import Sameness
    from spotsigs.formats.detect_format import collection_of
    from spotsigs.formats.stored import StoredCollection
    from spotsigs.matching.containment import Containment
    from spotsigs.matching.prefix_join import SpotSigsTight
    from spotsigs.outofcore.pipeline import default_memory
    from spotsigs.outofcore.vectorize import parse_memory
    from spotsigs.runs.settings import AUTO, Settings
    from spotsigs.signatures.idf import IdfFilter
    from spotsigs.signatures.spots import SpotSignatures
    from spotsigs.text.visible import VisibleText

    asking = asked.verb == "query"
    contained = getattr(asked, "measure", "jaccard") == "containment"
    auto = asked.tau == AUTO
    tau = FLOOR if auto else _number(asked.tau)
    tau = as_tau(tau)
    if asking:
        name, collection = "stored", StoredCollection()
    else:
        columns = {f"{column}_column": getattr(asked, column) for column in ("id", "text", "html", "cluster", "date")}
        name, collection = collection_of(asked.input, asked.format, **columns)
        require(asked.workers >= 1, f"--workers must be at least 1, got {asked.workers}")
        require(
            not getattr(asked, "add", False) or asked.store is not None,
            "--add needs a store: name it with --store FOLDER",
        )
    memory = None if asking or asked.memory is None else parse_memory(asked.memory)
    if memory is None and getattr(asked, "store", None) is not None:
        memory = default_memory()
    require(
        memory is None or not auto, "--tau auto looks at all similarities in memory; leave out --memory and --store"
    )
    workers = getattr(asked, "workers", 1)
    return Settings(
        collection=collection,
        text=VisibleText(),
        signature=SpotSignatures(language=_language(asked)),
        idf_filter=IdfFilter(idf_min=0.2, idf_max=1.0),
        matcher=Containment(tau=tau) if contained else SpotSigsTight(tau=tau),
        engine=Processes(workers=workers),
        experiment=None,
        auto=auto,
        tau=tau,
        sets=False,
        clusters=ClusterMethod.leaders,
        keep=Keep(getattr(asked, "keep", "first")),
        copy=asked.out if asked.verb == "dedup" else None,
        page=asked.verb == "inspect",
        copies=Sameness.text,
        memory=memory,
        store=getattr(asked, "store", None),
        add=getattr(asked, "add", False),
        query=asked.page if asking else None,
        workers=workers,
        threads=None,
        seed=2008,
        strict=getattr(asked, "strict", False),
        door="command",
        names={
            "data": name, "text": "visible", "signature": "spotsigs", "engine": "processes",
            "matcher": "containment" if contained else "spotsigs_tight", "experiment": "None",
        },
    )  # fmt: skip


def _language(asked: argparse.Namespace) -> str:
    """Return the language asked for, else that of the store, else that each page is to tell."""
    from spotsigs.outofcore.pipeline import stored_language
    from spotsigs.signatures.languages import AUTO

    if asked.language is not None:
        return str(asked.language)
    store = getattr(asked, "store", None)
    return (stored_language(store) if store is not None else None) or AUTO


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--tau must be a number in (0, 1], or auto, got {text!r}") from None


def _about(settings: Any) -> dict[str, str]:
    """Return the settings as the file that a run keeps of its configuration; JSON is YAML."""
    import json

    parts = {group: getattr(settings, group) for group in ("text", "signature", "matcher")}
    parts["data"] = settings.collection
    plain = {key: asdict(value) for key, value in parts.items() if is_dataclass(value)}  # type: ignore[arg-type]
    root = {
        key: getattr(settings, key) for key in ("tau", "sets", "clusters", "keep", "memory", "store", "add", "seed")
    }
    idf = asdict(settings.idf_filter)
    return {"config.yaml": json.dumps(root | idf | plain, default=str, indent=1) + "\n"}


def _ran(asked: argparse.Namespace, folder: Path, say: Callable[..., object] = print) -> str:
    from spotsigs.runs.runner import run

    settings = settings_of(asked)
    summary = run(settings, folder, about=_about(settings), say=say)
    return "\n".join(line for line in summary.splitlines() if not line.startswith(("next:", "no precision")))


def _dedup(asked: argparse.Namespace) -> None:
    beside = Path(asked.out).absolute()
    print(_ran(asked, Path(asked.results) if asked.results else beside.with_name(f"{beside.name}-results")))


def _table(asked: argparse.Namespace, name: str, columns: Sequence[str]) -> None:
    """Print a table of a run, or leave it in the folder asked for."""
    if asked.out:
        print(_ran(asked, Path(asked.out)))
        return
    from pyarrow.parquet import ParquetFile

    def say(text: object) -> None:
        print(text, file=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="spotsigs-") as folder:
        summary = _ran(asked, Path(folder), say)
        print(*columns, sep="\t")
        for batch in ParquetFile(Path(folder) / name).iter_batches(columns=list(columns)):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                print(*(_cell(value) for value in row), sep="\t")
    say("\n".join(line for line in summary.splitlines() if not line.startswith("results:")))


def _cell(value: Any) -> str:
    """Return a value as a cell, whatever signs an id holds."""
    return str(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def _inspect(asked: argparse.Namespace) -> None:
    _require_experiments("jinja2")
    folder = Path(asked.out or "spotsigs-inspect")
    print(_ran(asked, folder))
    page = (folder / "clusters.html").absolute()
    if page.exists() and not asked.no_open:
        webbrowser.open(page.as_uri())
    print(f"to look at: {page}")


def _threshold(asked: argparse.Namespace) -> None:
    _require_experiments("jinja2", "matplotlib")
    from experiments.studies.threshold_page import Threshold

    settings = settings_of(asked)
    settings.names["experiment"] = "threshold"
    print(Threshold(results=Path(asked.out or "spotsigs-threshold"))(settings))


def _query(asked: argparse.Namespace) -> None:
    print(_ran(asked, Path()))


def _compare(asked: argparse.Namespace) -> None:
    from experiments.finished_runs import compared

    print(compared(asked.runs))


def _require_experiments(*modules: str) -> None:
    from importlib.util import find_spec

    missing = [name for name in modules if find_spec(name) is None]
    require(not missing, f"this needs {' and '.join(missing)}: {EXTRA}")


def _completion(asked: argparse.Namespace) -> None:
    [verbs] = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    options = {
        verb: [word for action in of._actions for word in action.option_strings if word.startswith("--")]
        for verb, of in verbs.choices.items()
    }
    names = " ".join(options)
    cases = [f"{verb}) words='{' '.join(words)}' ;;" for verb, words in options.items()]
    bash = [
        "_spotsigs() {",
        "  local words",
        '  case "${COMP_WORDS[1]}" in',
        *(f"    {case}" for case in cases),
        f"    *) words='{names} --version --help' ;;",
        "  esac",
        f"  [ $COMP_CWORD -eq 1 ] && words='{names} --version --help'",
        '  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
        "}",
        "complete -o default -F _spotsigs spotsigs",
    ]
    fish = [f"complete -c spotsigs -n __fish_use_subcommand -a '{names}'"]
    fish += [
        f"complete -c spotsigs -n '__fish_seen_subcommand_from {verb}' -l {word[2:]}"
        for verb, words in options.items()
        for word in words
    ]
    zsh = ["autoload -U +X bashcompinit && bashcompinit", *bash]
    print("\n".join({"bash": bash, "zsh": zsh, "fish": fish}[asked.shell]))


DO: dict[str, Callable[[argparse.Namespace], None]] = {
    "dedup": _dedup,
    "pairs": lambda asked: _table(asked, "pairs.parquet", ("doc_a", "doc_b", "similarity", "shared", "union")),
    "cluster": lambda asked: _table(asked, "clusters.parquet", ("doc", "cluster", "representative")),
    "query": _query,
    "threshold": _threshold,
    "inspect": _inspect,
    "compare": _compare,
    "completion": _completion,
}


def main(words: Sequence[str] | None = None) -> None:
    """Do what the command line asks for; end with a sentence and exit code 1 where it cannot be done."""
    words = at_home(sys.argv[1:] if words is None else words)
    try:
        open_streams()
        progress.begin()
        asked = parser(next((word for word in words if word in VERBS), "")).parse_args(words)
        import_numba()
        say_when_compiling(sys.stderr)
        interrupts.end_on_interrupt()
        DO[asked.verb](asked)
        sys.stdout.flush()
    except KeyboardInterrupt:
        interrupts.end()
    except Exception as error:
        interrupts.end_if_unheard(error)
        if os.environ.get("SPOTSIGS_DEBUG"):
            raise
        sys.exit(f"error: {printable(_sentence(error))}")


def _sentence(error: Exception) -> str:
    """Return an error as one sentence."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        from spotsigs.storage.atomic import place_of

        return f"{place_of(error) or 'the system'}: {reason(error)}"
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return f"unexpected {type(error).__name__}: {first} (SPOTSIGS_DEBUG=1 shows where)"
