"""The folders that are known to cost most to grade, made for any course.

tests/kit/attacks/test_cost.py holds each against the budget of a small course, and
`python tests/benchmark_class.py --worst` prints what they take from the real one.
"""

from grader.types.course import Course
from grader.types.submission import Submission

# What each file begins with; `attack` is called wherever an entry point is.
_BEGINS = """
import itertools, json, os, struct, sys, threading, time


def replies(header, data=b""):
    "Have every reply from now on be this one."
    wire = sys.modules["grader.run.worker.wire"]

    def send(self, frame, deadline=None):
        self._socket.settimeout(None)
        self._socket.sendall(struct.pack("<III", len(header), len(data), 0) + header + data)

    wire.Channel.send = send


def filled(item, first='{"call":0,"value":{"list":[', last="]}}"):
    "A header with as many of this item as the checker reads."
    count = ((1 << 20) - len(first) - len(last)) // (len(item) + 1)
    pieces = 1 + sum(map(item.count, "[{,"))
    return (first + ",".join([item] * min(count, ((1 << 17) - 20) // pieces)) + last).encode()


def keys(numbers):
    "A header of a dictionary with these keys, as many as there is room for."
    pairs, room = [], (1 << 20) - 100
    for number in numbers:
        pair = f"[{number},0]"
        room -= len(pair) + 1
        if room < 0:
            break
        pairs.append(pair)
    return ('{"call":0,"value":{"dict":[' + ",".join(pairs) + "]}}").encode()


def busy(seconds):
    "Use processor time in several threads, where there are several cores."
    def work():
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            b"x" in bytes(1 << 24)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

"""
_EVERY_CALL = {
    "keys of one hash": "replies(keys(k * (2**61 - 1) for k in itertools.count(1)))",
    "few keys of one hash, often": (
        "one = ','.join(f'[{k * (2**61 - 1)},0]' for k in range(1, 257))\n"
        "    replies(filled('{\"dict\":[' + one + ']}'))"
    ),
    "a list of nothing": "replies(filled('null'))",
    "objects without end": "replies(filled('{\"\":0}'))",
    "arrays without end": (
        'replies(filled(\'{"shape":[],"dtype":"int8"}\', \'{"arrays":[\', \']}\'), bytes(40_000))'
    ),
    "lists in lists": "replies(b'[' * 900 + b']' * 900)",
    "numbers of many digits": "replies(filled('9' * 4_000))",
    "frames at their cap": (
        'replies(b\'{"call":0,"value":{"tensor":0},"arrays":[{"dtype":"int8","shape":\'\n'
        "            b'[134217728]}]}', bytes(128 << 20))"
    ),
    "a text without end": "replies(b'{\"error\":{\"message\":\"' + b'x' * 1_000_000 + b'\"}}')",
    "names without end": "raise type('E' * 9000, (ValueError,), {})('x' * 100_000)",
    "sleeps almost as long as it may": "time.sleep({most})",
    "is busy almost as long as it may": "busy({most})",
    "is asked again and again": "[time.sleep(0.001) for _ in range(int({most} / 0.0015))]",
    "never answers": "time.sleep(1e6)",
}
_ON_IMPORT = {
    "is imported almost as long as it may": "time.sleep({load})",
    "never gets imported": "time.sleep(1e6)",
    "is busy on import": "busy({load})",
}
# It takes the reader long to look through.
_LONG_TO_READ = "".join(
    f"def f{n}(x):\n    return f{n + 1}(x) or [x.a.b.c]\n" for n in range(20_000)
)


def costly(course: Course) -> dict[str, Submission]:
    """By what they do, a folder for each in which every stage does it."""
    limits = course.limits
    most, load = 0.95 * limits.call_seconds, 0.95 * limits.load_seconds
    made = {}
    for name, code in _EVERY_CALL.items():
        attack = code.replace("{most}", str(most))
        made[name] = _folder(course, f"def attack():\n    {attack}\n\n")
    for name, code in _ON_IMPORT.items():
        attack = code.replace("{load}", str(load))
        made[name] = _folder(course, f"def attack():\n    time.sleep({most})\n\n{attack}\n\n")
    made["takes long to read"] = _folder(course, f"{_LONG_TO_READ}def attack():\n    1 / 0\n\n")
    return {name: Submission(name, files) for name, files in made.items()}


def _folder(course: Course, code: str) -> dict[str, bytes]:
    files = {}
    for stage in course.stages:
        text = _BEGINS + code
        for entry in stage.entry_points:
            if entry.is_fixture:
                text += f"def test_it({entry.name}):\n    attack()\n\n"
            elif entry.is_class:
                text += f"class {entry.name}:\n    def __init__(self, *args, **kwargs):\n"
                text += "        attack()\n\n"
            else:
                text += f"def {entry.name}(*args, **kwargs):\n    attack()\n\n"
        files[stage.file_name] = text.encode()
    return files
