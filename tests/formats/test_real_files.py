"""Every input format on files that other tools have written, from the command line: all find the same pairs."""

from __future__ import annotations

import functools
import http.server
import io
import json
import shutil
import subprocess
import threading

import pandas as pd
import pytest
from in_process import ROOT, front_door
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from spotsigs.records import Document
from spotsigs.text.charset import to_utf8
from spotsigs.text.visible import VisibleText

TINY = ROOT / "data" / "tiny"
PAGES = {path.relative_to(TINY).as_posix(): path for path in sorted(TINY.rglob("*.html"))}
COLUMNS = ["data.id_column=url", "data.html_column=page", "data.cluster_column=story"]

pytestmark = pytest.mark.long


def pairs_of(tmp_path, *choices):
    """Run the command; return its pairs, named by the pages' paths, and its metrics."""
    folder = tmp_path / "run"
    done = front_door("tau=0.25", "workers=2", f"hydra.run.dir={folder}", *choices)
    assert done.returncode == 0, done.stderr
    pairs = {
        (*sorted(name.removeprefix("http://tiny.example/") for name in (a, b)), similarity)
        for a, b, similarity, *_ in pd.read_parquet(folder / "pairs.parquet").itertuples(index=False)
    }
    return pairs, json.loads((folder / "metrics.json").read_text())


def copy_pages(folder):
    for name, path in PAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folder")
    copy_pages(folder / "pages")
    pairs, metrics = pairs_of(folder, "data=folder", f"data.path={folder / 'pages'}")
    assert metrics["documents"] == len(PAGES)
    assert len(pairs) > 50
    return pairs


def write_frame(path, **more):
    """Write the pages by pandas; they contain line breaks, commas and quotes."""
    rows = [
        {"url": name, "page": to_utf8(path.read_bytes()).decode(), "story": name.split("/")[0], "n": number}
        for number, (name, path) in enumerate(PAGES.items())
    ]
    frame = pd.DataFrame(rows)
    if ".csv" in path.name:
        frame.to_csv(path, index=False)
    elif ".jsonl" in path.name:
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path, row_group_size=7, **more)


@pytest.mark.parametrize(
    ("kind", "name", "more"),
    [
        *(("csv", f"pages.csv{pack}", {}) for pack in ("", ".gz", ".zst")),
        *(("jsonl", f"pages.jsonl{pack}", {}) for pack in ("", ".gz")),
        *(("parquet", "pages.parquet", {"compression": codec}) for codec in ("snappy", "zstd", "gzip")),
    ],
)
def test_tables_by_pandas(tmp_path, expected, kind, name, more):
    write_frame(tmp_path / name, **more)
    pairs, metrics = pairs_of(tmp_path, f"data={kind}", f"data.path={tmp_path / name}", *COLUMNS)
    assert pairs == expected
    assert metrics["recall"] is not None


def warcio_file(path, kind, packed):
    """Write pages by warcio, the library that web archives use."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=packed)
        writer.write_record(writer.create_warcinfo_record(path.name, {"software": "warcio"}))

        def add(uri, kind, content, status="200 OK", **more):
            headers = StatusAndHeaders(status, [("Content-Type", "text/html")], protocol="HTTP/1.1")
            headers = {"http_headers": headers} if kind == "response" else {}
            writer.write_record(writer.create_warc_record(uri, kind, payload=io.BytesIO(content), **headers, **more))

        for name, page in PAGES.items():
            uri, content = f"http://tiny.example/{name}", page.read_bytes()
            if kind == "conversion":
                text = VisibleText()(Document(id=name, content=content)).encode()
                add(uri, kind, text, warc_content_type="text/plain", length=len(text))
            else:
                add(uri, kind, content)
            add(f"{uri}?gone", "response", content, "404 Not Found")


@pytest.mark.parametrize("kind", ["response", "conversion"])
@pytest.mark.parametrize("packed", [False, True])
def test_web_archives_by_warcio(tmp_path, expected, kind, packed):
    warcio_file(tmp_path / ("crawl.warc.gz" if packed else "crawl.warc"), kind, packed)
    pairs, metrics = pairs_of(tmp_path, "data=warc", f"data.path={tmp_path}/*.warc*")
    assert pairs == expected
    assert metrics["documents"] == len(PAGES)


@pytest.mark.skipif(shutil.which("wget") is None, reason="needs wget")
def test_a_crawl_by_wget(tmp_path, expected):
    """Serve the pages on this machine, crawl them, and read the archive of the crawl."""
    site = tmp_path / "site"
    copy_pages(site)
    links = "".join(f'<a href="{name}">{name}</a> ' for name in PAGES)
    (site / "index.html").write_text(f"<title>All</title>{links}")
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}/"
    command = ["wget", "--quiet", "--no-proxy", "--recursive", "--level=2", "--warc-file=crawl", base]
    try:
        subprocess.run(command, cwd=tmp_path, check=False, timeout=120)  # it ends with 8 where a link leads nowhere
    finally:
        server.shutdown()
    pairs, metrics = pairs_of(tmp_path, "data=warc", f"data.path={tmp_path / 'crawl.warc.gz'}")
    named = {tuple(sorted(name.removeprefix(base) for name in pair[:2])) for pair in pairs}
    assert metrics["documents"] == len(PAGES) + 1
    assert {pair[:2] for pair in expected} <= named
