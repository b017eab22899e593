"""``run.py`` and ``spotsigs`` in the process of the tests, without the seconds of a new interpreter, or in another."""

from __future__ import annotations

import io
import logging
import os
import runpy
import subprocess
import sys
import traceback
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parents[2]


def front_door(*arguments, cwd=ROOT, **environment) -> subprocess.CompletedProcess[str]:
    """Run ``run.py`` and return its exit code, output and errors, as `subprocess.run` does."""
    from hydra.core.global_hydra import GlobalHydra

    import experiments.main  # noqa: F401 - sets variables of the environment, which stay for other tests

    GlobalHydra.instance().clear()
    return _captured(runpy.run_path, str(ROOT / "run.py"), arguments, cwd, environment)


def command(*arguments, cwd=ROOT, **environment) -> subprocess.CompletedProcess[str]:
    """Run ``spotsigs`` and return its exit code, output and errors."""
    return _captured(runpy.run_module, "spotsigs", arguments, cwd, environment)


def started(*words, program=("-m", "spotsigs"), cwd=ROOT, environment=(), **more) -> subprocess.Popen:
    """Start ``spotsigs``, or a program, in a process of its own; `more` are further arguments of `Popen`."""
    variables = os.environ | {"PYTHONPATH": str(ROOT)} | dict(environment)
    return subprocess.Popen([sys.executable, *program, *map(str, words)], cwd=cwd, env=variables, **more)


def process(*words, **more) -> subprocess.CompletedProcess[str]:
    """Run a process that `started` starts, and return its exit code, output and errors."""
    run = started(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    out, err = run.communicate()
    return subprocess.CompletedProcess(words, run.returncode, out, err)


def _captured(run, program, arguments, cwd, environment) -> subprocess.CompletedProcess[str]:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    code: int | str | None = 0
    with ExitStack() as changed:
        changed.enter_context(patch("spotsigs.reports.terminal.end_on_interrupt"))
        changed.enter_context(patch.dict(os.environ, environment))
        logger = logging.getLogger("spotsigs")  # the command's handler has the stream of this call
        changed.enter_context(patch.object(logger, "handlers", []))
        changed.callback(logger.setLevel, logger.level)
        changed.enter_context(patch.object(sys, "argv", [program, *map(str, arguments)]))
        for context in (chdir(cwd), redirect_stdout(out), redirect_stderr(err)):
            changed.enter_context(context)
        try:
            run(program, run_name="__main__")
        except SystemExit as end:
            code = end.code
        except Exception:  # noqa: BLE001 - as with debug=true
            traceback.print_exc(file=err)
            code = 1
    if isinstance(code, str):  # as the interpreter does
        err.write(code + "\n")
        code = 1
    printed = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(arguments, code or 0, *printed)
