"""What a worker may do, for the layers of its lock."""

import fnmatch
import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Policy:
    """What every worker of one server may do."""

    readable: tuple[str, ...]
    """Folders and files that a worker may read; see python_environment()."""
    hidden: tuple[str, ...]
    """Patterns (* and ?) of what it may not read in site-packages: the kit's own package."""
    scratch_root: str
    """The folder with each worker's scratch folder; a worker may open nothing else in it."""
    memory_bytes: int | None
    """How far the address space may grow beyond the server's when it prepares; None: no limit."""
    cpu_seconds: int
    """Processor time: SIGXCPU at the limit, SIGKILL a second later."""
    file_bytes: int
    """The size of one file."""
    open_files: int
    """Descriptor numbers stay below this."""
    gpu: bool = False
    """Open NVIDIA's devices too. CUDA reserves address space freely: no memory_bytes with it."""


def python_environment() -> tuple[str, ...]:
    """The folders and files that this interpreter may still need: its library and the loader's.

    Of sys.path it takes only the standard library and the site-packages folders, which excludes the
    folder of a project installed in place (pip install -e).
    """
    wanted = {os.path.dirname(os.__file__)}
    for entry in sys.path:
        name = os.path.basename(os.path.normpath(entry)) if entry else ""
        if name in (*PACKAGES, "lib-dynload") or fnmatch.fnmatch(name, "python3*.zip"):
            wanted.add(entry)
    wanted.update(os.path.join(sys.base_prefix, name) for name in ("lib", "lib64"))
    wanted.update(_SYSTEM)
    found = sorted({os.path.realpath(path) for path in wanted if os.path.exists(path)})
    return tuple(path for path in found if not any(is_below(path, root) for root in found))


PACKAGES = ("site-packages", "dist-packages")
_SYSTEM = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store", "/etc/ld.so.cache"),
    *("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"),
    *("/etc/localtime", "/usr/share/zoneinfo", "/usr/share/locale"),
    *("/proc/cpuinfo", "/sys/devices/system/cpu"),  # torch chooses its kernels by them
)


def is_below(path: str, root: str) -> bool:
    """Whether a path lies below a folder."""
    return path.startswith(root.rstrip("/") + "/")
