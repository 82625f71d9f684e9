"""Python in the tests' jobs connects to nothing: a connection is noted and refused, as on a node without a network."""

import os
import socket
from pathlib import Path

_connect = socket.socket.connect


def _refuse(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6):
        with Path(os.environ["NETWORK_ATTEMPTS"]).open("a") as file:
            file.write(f"{os.getpid()} {address}\n")
        raise OSError(101, "Network is unreachable")
    return _connect(self, address)


socket.socket.connect = _refuse
socket.getaddrinfo = lambda *arguments, **options: _refuse(socket.socket(), arguments[:2])
