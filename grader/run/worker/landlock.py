"""Which files a worker may open.

Source: https://docs.kernel.org/userspace-api/landlock.html.
"""

import ctypes
import glob
import os
import struct
from collections.abc import Collection, Iterable, Iterator

from grader.run.worker.policy import PACKAGES, Policy, is_below

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_LOG_SAME_EXEC_OFF = 1  # refusals are normal here: keep them out of the host's audit log

_WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(1, 6))
_MAKE_DIR, _MAKE_REG, _REFER, _TRUNCATE, _IOCTL_DEV = (1 << bit for bit in (7, 8, 13, 14, 15))
_READ = _READ_FILE | _READ_DIR  # not EXECUTE: execve would need it, mapping a library does not
_DEVICE = _READ | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
_SCRATCH = (  # no links, pipes or sockets: the checker reads it later
    _READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE
)
_OF_FILES = _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV  # a file's rule may hold only these

_NVIDIA_DEVICES = ("/dev/nvidia*", "/dev/dri", "/dev/dxg")
_NVIDIA_FILES = (
    *("/sys", "/usr/local/cuda*", "/usr/local/nvidia", "/usr/share/nvidia", "/usr/lib64-nvidia"),
    *("/proc/driver/nvidia", "/proc/devices", "/proc/modules", "/proc/meminfo", "/proc/sys/vm"),
    "/proc/sys/kernel/osrelease",
)


class Rulesets:
    """The rulesets of a policy.

    A worker is under two rulesets and may do only what both allow. The server makes the first one
    once, for all workers: it opens the environment entry by entry without the hidden ones, which
    may take hundreds of rules, and all workers' scratch folders. The child makes the second one,
    because a rule added to a shared ruleset would also hold for the next worker: it opens a few
    whole folders, and only its own scratch folder. If nothing is hidden, the second one is enough.
    """

    def __init__(self, libc: ctypes.CDLL, version: int) -> None:
        self._call = libc.syscall
        self._version = version
        # All rights on files that this kernel knows: it refuses those that no rule grants.
        self._handled = (1 << 13 + (version >= 2) + (version >= 3) + (version >= 5)) - 1
        self._rules: list[bytes] = []
        self._own: dict[str, int] = {}
        self._shared: int | None = None

    @classmethod
    def prepared(cls, libc: ctypes.CDLL, policy: Policy) -> "Rulesets | None":
        """The layers, or None if the kernel has no Landlock."""
        version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)
        if version < 1:
            return None
        self = cls(libc, version)
        rights = dict.fromkeys(policy.readable, _READ)
        rights["/dev/null"] = _DEVICE
        if policy.gpu:
            rights.update((path, _READ) for name in _NVIDIA_FILES for path in glob.glob(name))
            rights.update((path, _DEVICE) for name in _NVIDIA_DEVICES for path in glob.glob(name))
            self._own["/proc/self"] = _READ  # CUDA looks up its memory map
            self._own["/proc/self/task"] = _READ | _WRITE_FILE | _TRUNCATE  # and names its threads
        self._rules = list(self._rules_for(rights, self._handled))
        hidden = _hidden(rights, policy.hidden)
        if hidden:
            shown = {path: _READ_FILE for root in rights for path in _visible(root, hidden)}
            if policy.gpu:
                shown["/proc"] = _READ_FILE  # the child's own part of /proc has no path yet
            shown[policy.scratch_root] = _READ_FILE | _REFER
            # Without REFER in the ruleset, files could not move within scratch.
            handled = self._handled & (_READ_FILE | _REFER)
            self._shared = self._ruleset(handled, self._used_up(self._rules_for(shown, handled)))
        return self

    def restrict(self, scratch: str) -> bool:
        """Put this thread under the layers."""
        own = self._rules_for({scratch: _SCRATCH, **self._own}, self._handled)
        layers = [self._ruleset(self._handled, (*self._rules, *own))]
        if self._shared is not None:
            layers.append(self._shared)
        flags = _LOG_SAME_EXEC_OFF if self._version >= 7 else 0
        results = [self._call(_RESTRICT_SELF, layer, flags) for layer in layers]
        return not any(results)

    def _rules_for(self, rights: dict[str, int], handled: int) -> Iterator[bytes]:
        """The rules (struct landlock_path_beneath_attr, packed), each with an open descriptor."""
        for path, right in rights.items():
            try:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue  # gone, or not readable for us: no rule, so the worker cannot open it
            right &= handled if os.path.isdir(path) else handled & _OF_FILES
            yield struct.pack("=Qi", right, descriptor)

    def _used_up(self, rules: Iterable[bytes]) -> Iterator[bytes]:
        """The rules; each one's descriptor is closed after use, because there may be many."""
        for rule in rules:
            yield rule
            os.close(struct.unpack("=Qi", rule)[1])

    def _ruleset(self, handled: int, rules: Iterable[bytes]) -> int:
        """The descriptor of a new ruleset, -1 if there is none."""
        # struct landlock_ruleset_attr: files, TCP (bind, connect), scopes (sockets, signals).
        # Older kernels accept the longer struct if the fields that they do not know are zero.
        network, scopes = 3 * (self._version >= 4), 3 * (self._version >= 6)
        attributes = struct.pack("=QQQ", handled, network, scopes)
        ruleset: int = self._call(_CREATE_RULESET, attributes, ctypes.c_size_t(24), 0)
        for rule in rules:
            self._call(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
        return ruleset


def _hidden(roots: Iterable[str], names: Collection[str]) -> set[str]:
    """The paths with one of these names in any site-packages folder at or below the roots."""
    found: set[str] = set()
    for root in map(glob.escape, roots):
        folders = [root] if os.path.basename(root) in PACKAGES else []
        for name in PACKAGES:
            folders += [os.path.join(root, name), os.path.join(root, "python*", name)]
        for folder in folders:
            matches = [p for name in names for p in glob.glob(os.path.join(folder, name))]
            if matches:  # then also hide the files that name other projects' folders
                matches += [p for name in _POINTERS for p in glob.glob(os.path.join(folder, name))]
            found.update(matches)
    return found


_POINTERS = ("*.pth", "*.egg-link", "__editable__*", "__pycache__")


def _visible(path: str, hidden: Collection[str]) -> Iterator[str]:
    """The path itself or, if a hidden one is below it, its entries one by one."""
    if path in hidden:
        return
    if not any(is_below(one, path) for one in hidden):
        yield path
        return
    try:
        entries = list(os.scandir(path))
    except PermissionError:
        return
    for entry in entries:
        if not entry.is_symlink():  # its target is opened at its own place, or not at all
            yield from _visible(entry.path, hidden)
