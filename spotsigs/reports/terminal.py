"""The terminal of a command: its streams, arguments, messages while kernels are compiled, Ctrl-C and closed pipes.

Ctrl-C ends a run and its workers within two seconds.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import select
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

import psutil

from spotsigs.storage.atomic import remove_temporary

GRACE_SECONDS = 1.0
"""Time for an orderly end: an exception cannot reach a thread that is inside a kernel or waits for other threads."""

FINISH_SECONDS = 10.0
"""Time to finish after SIGTERM for a command whose results are published."""

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes of programs that SIGINT and SIGTERM ended, as shells count them."""

PIPE_CLOSED = 141
"""Exit code of a program that SIGPIPE ended, as shells count it."""

COMPILING = "compiling kernels, once on this machine for each kind of run: a first run takes some seconds longer"


def stop_message() -> str:
    """Return the message of an interrupted program, with the command that continues."""
    command = f"`{shlex.join(['python', *sys.argv])}`" if Path(sys.argv[0]).name == "run.py" else "the command"
    return f"stopped: finished results are complete, others are not written; repeat {command} to continue"


def open_streams() -> None:
    """Open standard streams that the caller closed, as ``>&-`` does, on the null device.

    Otherwise the first file that is opened would get the number of one, and receive what is printed. A character that
    the terminal cannot encode is escaped.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the time, level, module and message of a record, and the figures of a stage as numbers."""
        values = {"level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        return json.dumps({"time": round(record.created, 3), **values, **getattr(record, "facts", {})})


def log_line(level: str, sentence: str) -> str:
    """Return a line for standard error: a JSON object if the log consists of them."""
    if any(isinstance(handler.formatter, _JsonLines) for handler in logging.getLogger("spotsigs").handlers):
        return json.dumps({"time": round(time.time(), 3), "level": level, "logger": "spotsigs", "message": sentence})
    return f"error: {sentence}" if level == "error" else sentence


class Log(Enum):
    """Form of the log."""

    text = "text"
    json = "json"


def set_up_logging(verbosity: int = 0, form: str = "text") -> None:
    """Print the log of the library: with ``-v`` information, with ``-vv`` details; progress always, as text or JSON.

    JSON, which programs read, always has a record for each stage that ends, too.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonLines() if form == "json" else logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("spotsigs")
    logger.handlers[:] = [handler]
    logger.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)])
    logging.getLogger("spotsigs.workers.progress").setLevel(logging.INFO)
    stages = logging.INFO if form == "json" or verbosity else logging.WARNING
    logging.getLogger("spotsigs.storage.tasks").setLevel(stages)


def expand_home(words: Sequence[str]) -> list[str]:
    """Replace ``~`` after ``=``, where a shell does not, by the home folder.

    Examples
    --------
    >>> expand_home(["data.path=~/crawl", "tau=0.5"])[0] == "data.path=" + os.path.expanduser("~/crawl")
    True
    """
    expanded = []
    for word in words:
        key, sign, value = word.partition("=")
        expanded.append(f"{key}{sign}{os.path.expanduser(value)}" if value.startswith("~") else word)
    return expanded


def announce_compilation(out: TextIO) -> None:
    """Print a message when the first kernel is compiled that is in no cache."""
    from numba.core import event

    class Compiling(event.Listener):
        printed = False

        def on_start(self, event: object) -> None:
            if not self.printed and not out.closed:  # the stream of a caller can be closed long before
                print(log_line("info", COMPILING), file=out, flush=True)
                self.printed = True

        def on_end(self, event: object) -> None:
            pass

    event.register("numba:compile", Compiling())


def end_if_pipe_is_closed(error: BaseException) -> None:
    """End without a message if the error is that no program reads the output, as after ``python run.py | head``.

    An error after a signal is none: temporary files are deleted then, and the thread that does so ends the process.
    """
    with _PUBLISHING:
        pass
    if not isinstance(error, BrokenPipeError) or not hasattr(select, "poll"):
        return
    poll = select.poll()
    poll.register(1, 0)
    if any(event & select.POLLERR for _, event in poll.poll(0)):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is still to be flushed
        sys.exit(PIPE_CLOSED)


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether an error is Ctrl-C, or was raised for it: Python 3.11 makes a `RuntimeError` of it in a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def end_on_interrupt() -> None:
    """Let SIGTERM end the process now, and SIGINT after `GRACE_SECONDS` if `KeyboardInterrupt` has not done so before.

    The interpreter writes the number of a signal to a socket the moment it arrives; a thread waits there. So this works
    while the main thread runs a kernel, which must have released the interpreter's lock, as all of them do.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    _PUBLISHED.clear()
    signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda number, frame: None)  # the thread ends the process
    sys.unraisablehook = _quiet_hook
    threading.Thread(target=_wait, args=(receiver, sender), daemon=True).start()


def _quiet_hook(error: sys.UnraisableHookArgs) -> None:
    """Print no traceback of an interrupt in a callback of a library that cannot raise it: the thread ends the run."""
    if error.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(error)


def _wait(receiver: socket.socket, sender: socket.socket) -> None:
    with receiver, sender:
        while (number := receiver.recv(1)) not in (bytes([signal.SIGINT]), bytes([signal.SIGTERM])):
            pass
        is_interrupt = number == bytes([signal.SIGINT])
        time.sleep(GRACE_SECONDS if is_interrupt else 0)
        end(INTERRUPTED if is_interrupt else TERMINATED)
        time.sleep(FINISH_SECONDS)
        remove_temporary()
        os._exit(0)


def leave() -> None:
    """Let the interpreter, which alone has to end, do so soon: any signal ends it, and it collects no objects.

    The compiler's million objects took it .4 core seconds, many seconds on a busy machine.
    """
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    gc.freeze()


_PUBLISHING = threading.RLock()
"""Held while results are published, which ends only afterwards."""

_PUBLISHED = threading.Event()
"""Set when the command has published its results: it is finished."""


@contextmanager
def uninterrupted(ends_program: bool = False) -> Iterator[None]:
    """Let SIGINT and SIGTERM wait for the block, which publishes results; an earlier SIGINT is raised here.

    A program that ends with it ignores SIGINT afterwards, and has `FINISH_SECONDS` after SIGTERM.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with _PUBLISHING:
            yield
            if ends_program:
                _PUBLISHED.set()
    finally:
        if not ends_program:
            signal.signal(signal.SIGINT, previous)


def end(code: int = INTERRUPTED) -> None:
    """End this process and all that it started, now, without temporary files; not if the command is finished."""
    with _PUBLISHING:
        if _PUBLISHED.is_set():
            return
        for worker in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                worker.kill()
        remove_temporary()
        sys.stderr.write(f"{log_line('warning', stop_message())}\n")
        sys.stderr.flush()
        os._exit(code)
