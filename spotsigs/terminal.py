"""The terminal of a command: its streams, arguments, messages while kernels are compiled, Ctrl-C and closed pipes.

Ctrl-C ends a run and its workers within two seconds.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import NoReturn, TextIO

import psutil

from spotsigs.spelling import is_command

GRACE_SECONDS = 1.0
"""Time for an orderly end: an exception cannot reach a thread that is inside a kernel or waits for other threads."""

INTERRUPTED = 130
"""Exit code of a program that SIGINT ended, as shells count it."""

UNHEARD = 141
"""Exit code of a program that SIGPIPE ended, as shells count it."""

COMPILING = "compiling kernels, once on this machine for each kind of run: a first run takes about half a minute longer"


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


def expand_home(words: Sequence[str]) -> list[str]:
    """Replace ``~`` after ``=``, where a shell does not, by the home folder.

    Examples
    --------
    >>> expand_home(["data.path=~/crawl", "tau=0.5"])[0] == "data.path=" + os.path.expanduser("~/crawl")
    True
    """
    found = []
    for word in words:
        key, sign, value = word.partition("=")
        found.append(f"{key}{sign}{os.path.expanduser(value)}" if value.startswith("~") else word)
    return found


def say_when_compiling(out: TextIO) -> None:
    """Print a message when the first kernel is compiled that is in no cache."""
    from numba.core import event

    class Compiling(event.Listener):
        printed = False

        def on_start(self, event: object) -> None:
            if not self.printed and not out.closed:  # the stream of a caller can be closed long before
                print(COMPILING, file=out, flush=True)
                self.printed = True

        def on_end(self, event: object) -> None:
            pass

    event.register("numba:compile", Compiling())


def end_if_unheard(error: BaseException) -> None:
    """End without a message if the error is that no program reads the output, as after ``python run.py | head``."""
    if not isinstance(error, BrokenPipeError) or not hasattr(select, "poll"):
        return
    poll = select.poll()
    poll.register(1, 0)
    if any(event & select.POLLERR for _, event in poll.poll(0)):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is still to be flushed
        sys.exit(UNHEARD)


def end_on_interrupt() -> None:
    """Let SIGINT end the process after `GRACE_SECONDS` if `KeyboardInterrupt` has not done so before.

    The interpreter writes the number of a signal to a socket the moment it arrives; a thread waits there. So this works
    while the main thread runs a kernel, which must have released the interpreter's lock, as all of them do.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(receiver, sender), daemon=True).start()


def _wait(receiver: socket.socket, sender: socket.socket) -> None:
    with receiver, sender:
        while receiver.recv(1) != bytes([signal.SIGINT]):
            pass
        time.sleep(GRACE_SECONDS)
        end()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore SIGINT in the block, which publishes results; an earlier one is raised here.

    The command ignores it until it ends: a run whose results are published is finished.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        if not is_command():
            signal.signal(signal.SIGINT, previous)


def end() -> NoReturn:
    """End this process and all that it started, now."""
    for worker in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            worker.kill()
    sys.stderr.write("stopped\n")
    sys.stderr.flush()
    os._exit(INTERRUPTED)
