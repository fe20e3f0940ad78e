"""What scanned code tried to do beside computing, as Python's audit events tell it, refused or not.

The kernel refuses (``contain.py``); this only puts it into words. Code that avoids the events goes unmentioned.
"""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["Attempts"]

_MOST = 20
_EVENTS = {
    "os.fork": "to start a process",
    "os.forkpty": "to start a process",
    "os.posix_spawn": "to start a program",
    "os.exec": "to start a program",
    "os.system": "to start a program",
    "subprocess.Popen": "to start a program",
    "_thread.start_new_thread": "to start a thread",
    "socket.__new__": "to open a socket",
    "socket.connect": "to connect a socket",
    "socket.bind": "to bind a socket",
    "os.kill": "to send a signal",
    "os.killpg": "to send a signal",
    "signal.pthread_kill": "to send a signal",
    "os.remove": "to remove a file",
    "os.rename": "to rename a file",
    "os.mkdir": "to make a directory",
    "os.rmdir": "to remove a directory",
    "os.truncate": "to cut a file",
    "os.chmod": "to change a file",
    "os.chown": "to change a file",
    "os.link": "to make a link",
    "os.symlink": "to make a link",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Attempts:
    """The attempts of one process, in order, each once."""

    def __init__(self) -> None:
        self.made: dict[str, None] = {}
        self.on = True
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on or len(self.made) >= _MOST:
            return
        if event == "open":
            path, _, flags = args
            if isinstance(flags, int) and flags & _WRITING:
                self.made[f"to write {str(path)[:100]}"] = None
            return
        what = _EVENTS.get(event)
        if what:
            self.made[what] = None
