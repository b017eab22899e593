"""Ctrl-C ends a run within two seconds, whatever it is doing, and leaves no worker behind; so does a closed pipe."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import psutil

from spotsigs.spelling import is_command

GRACE_SECONDS = 1.0
"""Time for an orderly end: an exception cannot reach a thread that is inside a kernel or waits for other threads."""

INTERRUPTED = 130
"""Exit code of a program that SIGINT ended, as shells count it."""


UNHEARD = 141
"""Exit code of a program that SIGPIPE ended, as shells count it."""


def end_if_unheard(error: BaseException) -> None:
    """End quietly if the error is that nobody reads the output any more, as after ``python run.py | head``."""
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
    """Ignore SIGINT in the block, which puts results in place; one that came before is raised here.

    The command ignores it until it ends: a run whose results are in place is finished.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        if not is_command():
            signal.signal(signal.SIGINT, former)


def end() -> NoReturn:
    """End this process and all that it started, now."""
    for worker in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            worker.kill()
    sys.stderr.write("stopped\n")
    sys.stderr.flush()
    os._exit(INTERRUPTED)
