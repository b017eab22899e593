"""The command ``spotsigs``, as a user types it."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import tempfile
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from in_process import ROOT, command, process, started

from spotsigs import dedup
from spotsigs.compile import STEPS
from spotsigs.doors.cli import VERBS, main, parser, planned
from spotsigs.errors import InputError
from spotsigs.formats.detect_format import format_of
from spotsigs.outofcore.pipeline import Store
from spotsigs.reports import terminal
from spotsigs.reports.terminal import expand_home
from spotsigs.storage.manifest import MANIFEST
from spotsigs.workers import progress

TINY = ROOT / "data" / "tiny"


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A table of twelve pages, whose text is the column body."""
    path = tmp_path_factory.mktemp("rows") / "pages.parquet"
    texts = [page.read_text("utf-8", "replace") for page in sorted(TINY.rglob("*.html"))[:12]]
    pq.write_table(pa.table({"id": [f"row-{k}" for k in range(len(texts))], "body": texts}), path)
    return path


class TestFormats:
    @pytest.mark.parametrize(
        ("content", "name"),
        [
            (b"WARC/1.0\r\nWARC-Type: response\r\n", "warc"),
            (gzip.compress(b"WARC/1.1\r\nWARC-Type: response\r\n", mtime=0), "warc"),
            (b"filedesc://x.arc 0.0.0.0 2000 text/plain 7\n", "arc"),
            (b"<DOC>\n<DOCNO>1</DOCNO>\n", "trec"),
            (b'\xef\xbb\xbf{"id": 1, "text": "x"}\n', "jsonl"),
            (b"id,text\n1,x\n", "csv"),
            (b"id\ttext\n1\tx\n", "csv"),
            (b"<!doctype html><p>one", "folder"),
            (b"A text, of words\n", "folder"),
        ],
    )
    def test_the_format_of_a_file_is_detected_from_its_content(self, tmp_path, content, name):
        (tmp_path / "input.txt").write_bytes(content)
        assert format_of(str(tmp_path / "input.txt")) == name

    def test_what_is_none_is_refused(self, tmp_path):
        (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
        with pytest.raises(InputError, match="is of no known format"):
            format_of(str(tmp_path / "x.png"))


def test_pairs_and_clusters_are_tables_on_standard_output(rows, tmp_path):
    done = command("pairs", rows, "--text", "body", "--tau", 0.3, "--workers", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    header, *lines = done.stdout.splitlines()
    assert header == "doc_a\tdoc_b\tsimilarity\tshared\tunion\tlower_bound"
    assert lines
    assert all(float(line.split("\t")[2]) >= 0.3 for line in lines)
    assert "12 documents" in done.stderr or "12 pages" in done.stderr
    assert not list(tmp_path.iterdir())
    clusters = command("cluster", rows, "--text", "body", "--tau", 0.3, "--workers", 1, cwd=tmp_path).stdout
    assert len(clusters.splitlines()) == 13


def test_a_store_that_no_run_has_decided_has_no_threshold(tmp_path):
    """A stopped first run would have resumed at another threshold than it began with."""
    path = tmp_path / "x.jsonl"
    path.write_text(
        "".join(json.dumps({"id": str(k), "html": f"<a href=x>a</a><p>the page {k}"}) + "\n" for k in range(3))
    )
    words = parser().parse_args(["pairs", str(path), "--store", str(tmp_path / "store"), "--memory", "1GB"])
    method, run = planned(words, tmp_path)
    assert method.tau == 0.25
    Store(folder=tmp_path / "store", method=method, memory=10**9).match(run.collection)  # without decisions
    assert planned(words, tmp_path)[0].tau == 0.25


def test_a_threshold_is_proposed(rows, tmp_path, capsys):
    main(["threshold", str(rows), "--text", "body", "--workers", "1", "--out", str(tmp_path / "out")])
    [page] = (tmp_path / "out").rglob("threshold.html")
    assert str(page.relative_to(tmp_path)) in capsys.readouterr().out
    assert "pairs to judge" in page.read_text()


def test_a_tilde_after_an_equals_sign_is_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    expanded = expand_home(["data.path=~/x", "--out=~", "tau=0.5", "a~b=c~d"])
    assert expanded == [f"data.path={tmp_path}/x", f"--out={tmp_path}", "tau=0.5", "a~b=c~d"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["paris"], "there is no verb 'paris'; did you mean 'pairs'? `spotsigs --help`"),
        (["pairs", "/nowhere"], "/nowhere does not exist"),
        (["pairs", str(TINY), "--tau", "2"], "--tau must be in (0, 1], got 2"),
        (["pairs", str(TINY), "--tau", "x"], "--tau must be a number in (0, 1], got 'x'"),
        (["dedup", str(TINY)], "required: --out;"),
        (["dedup", str(TINY), "--outt", "k"], "dedup does not take '--outt'; did you mean '--out'?"),
        (["pairs", str(TINY), "--keep", "best"], "('largest' and 'smallest' are set by --keep-by), got 'best'"),
        (["pairs", str(TINY), "--add"], "--add needs a store"),
        (["pairs", str(TINY), "--tua", "0.5"], "pairs does not take '--tua'; did you mean '--tau'?"),
        (
            ["pairs", str(TINY), "--duplicates", "off"],
            "the functions have it, as in spotsigs.dedup(pages, method=spotsigs.Method.of(duplicates=...))",
        ),
        (["pairs", str(TINY), "--keep", "frist"], "got 'frist'; did you mean 'first'?"),
        (["pairs", str(TINY), "--workers", "two"], "--workers must be at least 1, got two"),
        (["pairs", str(TINY), "--out", "gs://bucket/x"], "gs://bucket/x needs libraries that are not installed: "),
        (["dedup", str(TINY), "--out", "gs://bucket/x", "--results", "y"], "gs://bucket/x needs libraries that"),
        (["inspect", str(TINY), "--out", "memory://x"], "memory://x is not on this machine"),
        (["threshold", str(TINY), "--out", "http://h/x"], "http://h/x is not on this machine"),
        (["pairs", str(TINY), "--format", "jsonnl"], "did you mean 'jsonl'?"),
    ],
)
def test_a_mistake_is_one_sentence(words, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert message in str(stopped.value)
    assert str(stopped.value).startswith("error: ")
    assert len(str(stopped.value).splitlines()) == 1


@pytest.mark.parametrize("words", [["run.py", "data=tiny"], ["-m", "spotsigs", "pairs", "x"]], ids=" ".join)
def test_outside_of_the_environment_it_prints_what_is_missing(words):
    done = process(program=("-S", *words), environment={"PYTHONPATH": ""})
    assert done.returncode == 1
    assert re.fullmatch(r"error: \w+ is not installed for .*; `.*` .*\n", done.stderr), done.stderr


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_help_has_an_example_that_parses(verb, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([verb, "--help"])
    assert stopped.value.code == 0
    assert f"example: {VERBS[verb][2]}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_and_version_import_nothing_heavy(words):
    code = (
        "import sys; from spotsigs.doors.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'scipy', 'pyarrow', 'pandas', 'hydra', 'omegaconf', 'yaml', 'email', 'ssl'}\n"
        "print(heavy & set(sys.modules))"
    )
    done = process(*words, program=("-c", code))
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_package_imports_nothing_before_it_is_used():
    code = "import sys, spotsigs; print({'numpy', 'numba', 'scipy', 'pyarrow', 'psutil'} & set(sys.modules))"
    assert process(program=("-c", code)).stdout.strip() == "set()"


IN_TURN = """
import json, sys
from spotsigs.doors.cli import main
for words in json.loads(sys.argv[1]): main(words)
"""


def in_turn(*commands, before="", **more):
    """Run commands one after the other in one process, after other code."""
    words = json.dumps([list(map(str, words)) for words in commands])
    done = process(words, program=("-c", before + IN_TURN), **more)
    assert done.returncode == 0, done.stderr
    return done


BARE = """
import sys
import tempfile
from itertools import chain
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""
EXTRAS = {"hydra", "omegaconf", "jinja2", "matplotlib", "pandas", "pooch", "datasketch", "yaml", "experiments", "data"}
"""What only the extras install, and a checkout's other packages."""


def test_every_verb_works_on_the_plain_install(tmp_path):
    """threshold imported the experiments; inspect needed jinja2."""
    (tmp_path / "x.jsonl").write_text('{"text": "the cat is on a mat"}\n{"text": "the cat is on a mat, too"}\n')
    commands = (
        ("inspect", TINY, "--no-open"),
        ("threshold", TINY),
        ("dedup", "x.jsonl", "--out", "kept"),
        ("pairs", TINY, "--store", "my.store", "--boilerplate", "keep"),
        ("pairs", TINY / "ferry" / "wire.html", "--against", "my.store"),
    )
    in_turn(*((*words, "--workers", 1) for words in commands), before=BARE.format(names=EXTRAS), cwd=tmp_path)
    assert (tmp_path / "spotsigs-inspect" / "clusters.html").is_file()
    assert (tmp_path / "spotsigs-threshold" / "threshold.html").is_file()


def test_messages_have_the_syntax_of_the_command(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"body": "the cat"}\n')
    (tmp_path / "y.jsonl").write_text('{"text": "the cat is here"}\n{"text": 7}\n')
    done = command("pairs", "x.jsonl", cwd=tmp_path)
    assert "strict" not in done.stderr
    done = command("pairs", "y.jsonl", "--strict", "--workers", 1, cwd=tmp_path)
    assert "(--strict stops at the first)" in done.stderr
    done = command("pairs", "y.jsonl", "--keep", "newest", "--workers", 1, cwd=tmp_path)
    assert "--keep newest needs dates" in done.stderr
    (tmp_path / "x.csv").write_text("body,text2\n1,2\n")
    done = command("pairs", "x.csv", "--format", "csv", cwd=tmp_path)
    assert "name one by --html or --text; its columns are body, text2" in done.stderr
    assert "=" not in done.stderr.partition("error:")[2]


SCORED = "The council has approved the plan for a new bridge that will be built by the spring."
SCORES = {  # of near-duplicates, but for the fourth
    "url": [f"http://x{k % 2}.org/{k}" for k in range(5)],
    "text": [
        SCORED,
        f"{SCORED} It is late.",
        SCORED,
        "A win in the rain is a rare one.",
        f"{SCORED} A dog is a friend.",
    ],
    "score": ["1", None, "2.5", "x", "2.5"],
}


@pytest.mark.parametrize("memory", [(), ("--memory", "1GB")], ids=["memory", "disk"])
@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_the_largest_or_smallest_score_is_kept_and_a_url_is_the_id(tmp_path, form, memory):
    table = pa.table(SCORES)
    if form == "parquet":
        pq.write_table(table, tmp_path / "x.parquet")
    else:
        frame = table.to_pandas()
        (tmp_path / f"x.{form}").write_text(
            frame.to_csv(index=False) if form == "csv" else frame.to_json(orient="records", lines=True)
        )
    for column, first in (("score", 2), ("-score", 0)):
        out, words = f"out{column}", ("--workers", 1, "--keep-by", column, *memory)
        done = command("dedup", f"x.{form}", "--out", out, *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (
            done.stderr.count("the column url names documents and their sites; --id COLUMN names another column") == 1
        )
        kept = (tmp_path / f"{out}-results" / "kept.csv").read_text().splitlines()[1:]
        assert kept == [f"{SCORES['url'][row]},yes,en" for row in sorted([first, 3])]
        assert "pages without a score that is a number come last: see unscored.csv" in done.stdout
        unscored = (tmp_path / f"{out}-results" / "unscored.csv").read_text().splitlines()[1:]
        assert unscored == ["http://x1.org/1,", "http://x1.org/3,x"]
    named = pa.table(SCORES).to_pylist()
    with pytest.warns(UserWarning, match=r"2 pages are taken last; .* the score None .* the score 'x' cannot be read"):
        assert dedup(named, keep_by="-score") == [named[0], named[3]]


def test_mistakes_about_scores_are_one_sentence(tmp_path):
    pq.write_table(pa.table(SCORES), tmp_path / "x.parquet")
    for words, sentence in (
        (("x.parquet", "--keep-by", "url"), "--keep largest needs scores, and no document has one that is a number"),
        (("x.parquet", "--keep-by", "-s"), "x.parquet has no column 's'; its columns are url, text, score"),
        (("x.parquet", "--keep-by", "score", "--keep", "newest"), "--keep-by takes the place of --keep and --date"),
        ((TINY, "--keep-by", "score"), "is of the format folder, which has no columns; leave out --keep-by"),
    ):
        assert sentence in command("pairs", *words, "--workers", 1, cwd=tmp_path).stderr
    with pytest.raises(InputError, match="keep_by= decides which page is kept; leave out keep="):
        dedup([SCORED], keep_by="score", keep="newest")


def test_reasons_for_skipped_records_are_printed_where_no_folder_lists_them(tmp_path):
    """The summary named files of a temporary folder."""
    lines = ['{"text": "the cat is here on a mat"}'] * 2 + ['{"id": "bad\\u001b[31m", "text": 7}'] * 23
    (tmp_path / "x.jsonl").write_text("\n".join(lines) + "\n")
    done = command("pairs", "x.jsonl", "--workers", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 documents, 1 pair, 1 cluster" in done.stderr
    assert "skipped bad\\x1b[31m (x.jsonl@74): 'text' is of type int, not text" in done.stderr
    assert "skipped 3 more; --out FOLDER lists them all" in done.stderr
    assert "csv" not in done.stderr
    assert tempfile.gettempdir() not in done.stderr


def test_a_finished_copy_is_replaced_on_request(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"text": "the cat is on a mat"}\n' * 2)
    words = ("dedup", "x.jsonl", "--out", "kept", "--workers", 1)
    assert command(*words, cwd=tmp_path).returncode == 0
    refused = command(*words, cwd=tmp_path)
    assert "kept is not empty; name another folder for the copy, or replace it with --overwrite" in refused.stderr
    (tmp_path / "y.jsonl").write_text('{"text": "the dog is on a mat"}\n')
    assert command("dedup", "y.jsonl", *words[2:], "--overwrite", cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [MANIFEST, "y.jsonl"]
    assert not list(tmp_path.glob(".*"))


TABLES = tuple((verb, "x.jsonl", "--workers", 1) for verb in ("pairs", "cluster"))
HOSTILE = "evil\x1b]0;owned\x07\u202egnp.exe\u2066\r\u00e9\u4e2d\ud83d\ude00"


def of_one_text(path, name):
    """Write two documents of one text, whose ids begin with a name."""
    path.write_text("".join(json.dumps({"id": f"{name}{k}", "text": "the cat is on a mat"}) + "\n" for k in range(2)))


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_a_terminal_gets_no_character_that_it_interprets(tmp_path):
    """Ids were printed as they are: escape sequences and bidirectional controls reached the terminal."""
    import pty

    of_one_text(tmp_path / "x.jsonl", HOSTILE)
    master, slave = pty.openpty()
    words = json.dumps([list(map(str, words)) for words in TABLES])
    run = started(words, program=("-c", IN_TURN), cwd=tmp_path, stdout=slave, stderr=subprocess.PIPE)
    os.close(slave)
    printed = b""
    try:
        while block := os.read(master, 65536):
            printed += block
    except OSError:  # the other end is closed
        pass
    _, err = run.communicate()
    assert run.returncode == 0, err
    text = printed.decode().replace("\r\n", "\n")
    assert (
        text.count(r"evil\x1b]0;owned\x07\u202egnp.exe\u2066\ré中😀0") == 4
    )  # in a pair, as a member, and twice as the representative
    assert not [c for c in text if not c.isprintable() and c not in "\n\t"]
    assert b"\x1b" not in err


def test_a_terminal_of_ascii_gets_escapes(tmp_path):
    """UnicodeEncodeError ended the table."""
    of_one_text(tmp_path / "x.jsonl", "caf\u00e9 \ud83d\ude00 \u4e2d")
    done = in_turn(*TABLES, cwd=tmp_path, environment={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.stdout.count("caf\\xe9 \\U0001f600 \\u4e2d0") == 4


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "dedup"])
def test_only_dedup_writes_to_standard_output(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"--out of {verb} is a folder of tables, got -"):
        planned(parser().parse_args([verb, str(TINY), "--out", "-"]), tmp_path / "t")
    assert not list(tmp_path.iterdir())


def test_a_job_logs_rate_and_time_left(capsys, monkeypatch):
    """A job of hours logged no line."""
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    terminal.set_up_logging(form="json")
    for _ in progress.progress(range(5), "reading", 5, "shards"):
        now += 20
    lines = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]
    states = ("2 of 5 shards (40%), 0.05 a second, 60 s", "4 of 5 shards (80%), 0.05 a second, 20 s")
    assert lines == [f"reading: {state} left" for state in states]


def test_a_job_logs_how_long_nothing_has_ended(capsys, monkeypatch):
    """A stage whose first task takes minutes logged no line."""
    monkeypatch.setattr(progress, "SECONDS", 0.1)
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.1)
    terminal.set_up_logging(form="json")
    with progress.Progress("reading", 0, "pages") as shown:
        shown.advance(7, note="one.warc")
        time.sleep(1.5)
    [line, *_] = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "reading: 7 pages, 1 s since the last, one.warc"


def test_each_line_of_a_log_of_json_is_an_object(tmp_path):
    """Errors, remarks and skipped records were lines of text among the objects."""
    (tmp_path / "x.jsonl").write_text('{"url": "http://x/1", "text": "the plan"}\n[]\n')
    for words, levels in ((["x.jsonl"], ["info"] * 3), (["none"], ["error"])):
        done = command("pairs", *words, "--engine", "serial", "--log", "json", cwd=tmp_path)
        assert [json.loads(line)["level"] for line in done.stderr.splitlines()][-3:] == levels
    assert done.returncode == 1


def stages_of(log):
    """Return the objects of the stages that have ended."""
    return [line for line in map(json.loads, log.splitlines()) if "seconds" in line]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ((), ["reading", "templates", "exact duplicates", "filtering", "decisions", "text lost", "copy", "tables"]),
        (("--memory", "1GB"), ["reading", "templates", "numbering", "decisions", "text lost", "copy", "tables"]),
        (("--engine", "dask", "--workers", "2"), ["reading", "templates", "decisions", "copy", "tables"]),
        (("--engine", "processes", "--workers", "2", "--memory", "2GB"), ["reading", "numbering", "decisions"]),
    ],
)
def test_a_log_of_json_has_each_stage_with_its_documents_and_seconds(words, names, tmp_path):
    shards = [tmp_path / "pages" / f"{k}.jsonl" for k in range(3)]
    shards[0].parent.mkdir()
    for k, shard in enumerate(shards):
        pages = (f"<p>Page {j} of the shard {k} is a story about the town. <a href='/{j}'>menu</a>" for j in range(100))
        rows = ({"url": f"http://s{j % 5}.example/{k}/{j}", "html": page} for j, page in enumerate(pages))
        shard.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    began = time.monotonic()
    done = command("dedup", "pages", "--html", "html", "--out", "kept", "--log", "json", *words, cwd=tmp_path)
    wall = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    stages = stages_of(done.stderr)
    found = {stage["stage"]: stage for stage in stages}
    assert [name for name in found if name in names] == names
    assert {name: found[name]["rows"] for name in names} == dict.fromkeys(names, 300)
    assert found["reading"]["tasks"] == 3
    assert 0.5 * wall - 2 < sum(stage["seconds"] for stage in stages) < wall
    assert all(stage["core_seconds"] >= 0 for stage in stages)
    assert all(stage["message"].startswith(f"{stage['stage']}: ") for stage in stages)


@pytest.mark.parametrize("verb", ["pairs", "cluster", "threshold"])
def test_the_log_of_every_verb_has_its_stages(verb, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"url": "http://x/1", "text": "the plan"}\n' * 3)
    done = command(verb, "x.jsonl", "--engine", "serial", "--log", "json", cwd=tmp_path)
    stages = {stage["stage"]: stage for stage in stages_of(done.stderr)}
    assert stages["reading"]["rows"] == 3


def test_a_text_log_has_no_line_for_a_stage_unless_it_is_requested(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"url": "http://x/1", "text": "the plan"}\n' * 3)
    words = "pairs", "x.jsonl", "--engine", "serial"
    assert "reading: 3 documents, 1 task, " not in command(*words, cwd=tmp_path).stderr
    assert "reading: 3 documents, 1 task, " in command(*words, "-v", cwd=tmp_path).stderr


COUNTED = """
import gc, sys
from numba.core.dispatcher import Dispatcher
from spotsigs.doors import cli
from spotsigs.compile import STEPS

def signatures():
    return {(k.py_func.__module__, k.py_func.__name__): set(k.signatures) for k in gc.get_objects()
            if isinstance(k, Dispatcher) and k.py_func.__module__.startswith("spotsigs")}

for name in %s:
    STEPS[name][1]()
before = signatures()
for words in %s:
    cli.main(words)
print({name: kinds for name, kinds in signatures().items() if kinds - before.get(name, set())})
"""


def test_a_run_calls_no_kernel_that_no_step_has_compiled(tmp_path):
    tiny = str(ROOT / "data" / "tiny")
    words = [[verb, tiny, "--out", str(tmp_path / verb), "--workers", "1"] for verb in ("dedup", "cluster")]
    code = COUNTED % (list(STEPS), words)
    assert process(program=("-c", code)).stdout.splitlines()[-1] == "{}"
