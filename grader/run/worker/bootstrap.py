"""The first lines of the isolated interpreter, passed to it with -c; its stdin is its only socket.

The worker's own modules arrive as text, so that no path of the kit is on the command line, in a
module or in a traceback of that process.
"""

import json
import os
import socket
import struct
import sys
import types

if os.name == "nt":
    length = struct.unpack("<I", sys.stdin.buffer.read(4))[0]
    control = socket.fromshare(sys.stdin.buffer.read(length))  # type: ignore[attr-defined]
else:
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)


def read(count: int) -> bytes:
    """Read exactly `count` bytes from the control socket."""
    data = b""
    while len(data) < count:
        part = control.recv(count - len(data))
        if not part:
            os._exit(0)
        data += part
    return data


setup = json.loads(read(struct.unpack("<I", read(4))[0]))
for name in ("grader", "grader.run", "grader.run.worker"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
for name, source in setup.pop("sources").items():
    module = types.ModuleType(f"grader.run.worker.{name}")
    sys.modules[module.__name__] = module
    exec(compile(source, f"<grader {name}>", "exec"), module.__dict__)
sys.modules["grader.run.worker.server"].serve(control, setup)
