"""Links, folders of results, and records that are parts of pages: none replaces a page, and each is listed."""

from __future__ import annotations

import json
import re

import pytest
from archives import ids, packed, read, warc_record

from spotsigs.formats.folder import Folder
from spotsigs.formats.warc import Warc
from spotsigs.records import Skipped

PAGE = b"<html><body><p>the plan is a new bridge and the river is long</p></body></html>"


def listed(collection):
    """Return the ids of the documents, and the reasons by the ids of the others."""
    records = read(collection)
    return ids(records), {record.id: record.reason for record in records if isinstance(record, Skipped)}


@pytest.mark.parametrize("pattern", ["", "**/*.html", "**"])
def test_links_to_folders_above_and_to_files_outside_are_listed(tmp_path, pattern):
    folder = tmp_path / "in"
    (folder / "a").mkdir(parents=True)
    for path in (folder / "x.html", folder / "a" / "y.html", tmp_path / "other.html"):
        path.write_bytes(PAGE)
    (folder / "up").symlink_to(".")
    (folder / "a" / "up").symlink_to("..")
    (folder / "inside.html").symlink_to("x.html")
    (folder / "outside.html").symlink_to("../other.html")
    collection = Folder(path=str(folder / pattern))
    pages, skipped = listed(collection)
    assert pages == ["a/y.html", "inside.html", "x.html"]
    assert sorted(skipped) == ["a/up/", "outside.html", "up/"]
    assert "outside the folder is not followed" in skipped["outside.html"]
    collection.copy(tmp_path, lambda document: False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "other.html"]
    assert listed(Folder(path=str(folder / "out*.html"))) == (["outside.html"], {})  # a pattern follows links
    (tmp_path / "else").mkdir()
    (tmp_path / "other.html").rename(tmp_path / "else" / "z.html")
    (folder / "link").symlink_to("../else")
    assert listed(Folder(path=str(folder / "l*" / "*.html"))) == (["link/z.html"], {})


def test_only_results_of_spotsigs_are_left_out_and_they_are_listed(tmp_path):
    ours = {"command": ["spotsigs"], "commit": None, "versions": {}}
    for name, run in (("ours", ours), ("theirs", {"run": 1}), ("text", "not an object")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.html").write_bytes(PAGE)
        (tmp_path / name / "metrics.json").write_text("{}")
        (tmp_path / name / "run.json").write_text(json.dumps(run))
    pages, skipped = listed(Folder(path=str(tmp_path)))
    assert pages == ["text/page.html", "theirs/page.html"]
    assert skipped["ours/"] == "the results of a run are not read"


def test_fragments_and_segments_are_no_pages(tmp_path):
    whole = warc_record("http://x/whole", PAGE)
    number = b"WARC-Segment-Number: %d\r\nContent-Type:"
    records = [
        warc_record("http://x/part", PAGE[:40], status="206 Partial Content"),
        warc_record("http://x/first", PAGE).replace(b"Content-Type:", number % 1, 1),
        warc_record("http://x/rest", PAGE, kind="continuation").replace(b"Content-Type:", number % 2, 1),
        warc_record("http://x/photo", b"\x89PNG", "image/png", status="206 Partial Content"),
        whole,
    ]
    path = tmp_path / "x.warc.gz"
    path.write_bytes(packed(records, ".gz"))
    pages, skipped = listed(Warc(path=str(path)))
    assert pages == ["http://x/whole"]
    assert {key.split(" ")[0]: reason for key, reason in skipped.items()} == {
        "http://x/part": "the response is a fragment of a page (HTTP status 206)",
        "http://x/first": "it is a segment of a record, 1",
        "http://x/rest": "it is a segment of a record, 2",
    }


def test_records_without_a_type_are_read_as_what_they_are(tmp_path):
    def bare(record, value=b""):
        return re.sub(rb"Content-Type: [^\r]+\r\n", value, record, count=1)

    records = [
        bare(warc_record("http://x/1", PAGE)),
        bare(warc_record("http://x/2", PAGE), b"Content-Type: text/html\r\n"),
        bare(warc_record("http://x/3", PAGE, kind="resource")),
        bare(warc_record("http://x/4", b"the text", kind="conversion")),
        bare(warc_record("http://x/5", b"\x89PNG", kind="resource")),
    ]
    path = tmp_path / "x.warc"
    path.write_bytes(b"".join(records))
    collection = Warc(path=str(path))
    assert [(r.id[-1], r.content) for r in read(collection)] == [*((k, PAGE) for k in "123"), ("4", b"the text")]
