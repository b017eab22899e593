"""Progress of a job without a terminal, in its log."""

import json

from in_process import command

from spotsigs import progress, terminal


def test_a_job_logs_rate_and_time_left(capsys, monkeypatch):
    """A job of hours logged no line."""
    clock = iter(range(0, 1000, 20))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    terminal.set_up_logging(form="json")
    assert list(progress.progress(range(5), "reading", 5, "shards")) == list(range(5))
    lines = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "reading: 2 of 5 shards (40%), 0.05 a second, 60 s left",
        "reading: 4 of 5 shards (80%), 0.05 a second, 20 s left",
    ]


def test_each_line_of_a_log_of_json_is_an_object(tmp_path):
    """Errors, remarks and skipped records were lines of text among the objects."""
    (tmp_path / "x.jsonl").write_text('{"url": "http://x/1", "text": "the plan"}\n[]\n')
    for words, levels in ((["x.jsonl"], ["info"] * 3), (["none"], ["error"])):
        done = command("pairs", *words, "--engine", "serial", "--log", "json", cwd=tmp_path)
        assert [json.loads(line)["level"] for line in done.stderr.splitlines()][-3:] == levels
    assert done.returncode == 1
