"""Run the reproduction: ``python run.py matcher=spotsigs tau=0.44``; ``python run.py --help`` lists every choice."""

import signal
import sys

if __name__ == "__main__":  # worker processes import this file again
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # while modules are imported, Ctrl-C ends it without a traceback
    try:
        from spotsigs.reports.terminal import announce_compilation, open_streams

        open_streams()
        announce_compilation(sys.stderr)
        from experiments.main import enter
    except ModuleNotFoundError as missing:
        sys.exit(
            f"error: {missing.name} is not installed for {sys.executable}; `make install` makes an environment with "
            "all that is needed, in which it is .venv/bin/python run.py"
        )
    signal.signal(signal.SIGINT, interrupt)
    enter()
