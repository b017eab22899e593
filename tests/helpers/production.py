"""A program like ``run.py`` whose words are also attributes of `Run`, such as ``memory=1GB copy=kept``."""

import signal
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

if __name__ == "__main__":
    from runs import ran

    from experiments.config import sentence
    from spotsigs.reports import terminal
    from spotsigs.reports.terminal import expand_home, open_streams

    signal.signal(signal.SIGINT, signal.default_int_handler)
    open_streams()
    terminal.end_on_interrupt()
    words = expand_home(sys.argv[1:])
    [folder] = [word.removeprefix("hydra.run.dir=").strip("'\"") for word in words if word.startswith("hydra.run.dir=")]
    try:
        print(ran(folder, *(word for word in words if not word.startswith("hydra.run.dir="))))
        sys.stdout.flush()
    except KeyboardInterrupt:
        terminal.end()
    except Exception as error:  # noqa: BLE001 - as run.py
        terminal.end_if_pipe_is_closed(error)
        sys.exit(sentence(error))
