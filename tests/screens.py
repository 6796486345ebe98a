"""Draws the screens of the walkthrough, docs/first-hour.md: real commands, real verdicts, as SVG.

    python tests/screens.py [FOLDER]

writes them to docs/screens/, or to FOLDER. tests/kit/test_screens.py does the same and compares.
"""

import io
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text

from grader.learning.watch.loop import Watch
from grader.learning.watch.screen import watch_screen
from grader.learning.watch.state import HintShown, Phase, Watching
from grader.read.workspace import locate_workspace
from grader.types.report import Status

ROOT = Path(__file__).parents[1]
SCREENS = ROOT / "docs" / "screens"
SEED = "20260114"
WIDTH, HEIGHT = 80, 24
LONGEST = 60.0  # seconds to wait for a verdict
STUB = '    raise NotImplementedError("split_heads is not written yet")\n'
MISTAKE = """\
    B, T, D = x.shape
    return x.view(B, num_heads, T, D // num_heads)
"""
MENDED = """\
    B, T, D = x.shape
    if D % num_heads != 0:
        raise ValueError(f"D={D} does not divide into num_heads={num_heads}")
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)
"""


def main(folder: Path) -> None:
    """Draw every screen into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)

    def save(name: str, title: str, shown: RenderableType) -> None:
        (folder / f"{name}.svg").write_text(svg(shown, title, name), encoding="utf-8")

    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        save("init", "grade init", typed("init"))
        os.chdir(next(Path(home).iterdir()))
        watched(save)
        save("grade", "grade", typed("--seed", SEED))
        for solution in (ROOT / "solutions").glob("*.py"):
            (Path("exercises") / solution.name).write_bytes(solution.read_bytes())
        trace = typed("trace", "softmax")
        save("trace", "grade trace softmax", trace)
        heatmap = typed("heatmap")
        save("heatmap", "grade heatmap", heatmap)
        os.chdir(ROOT)


def watched(save: Callable[[str, str, RenderableType], None]) -> None:
    """The screens of `grade watch`: the start, a mistake, a hint for it, and the way on."""
    states: queue.Queue[Watching] = queue.Queue()
    watch = Watch(locate_workspace(None), None, "cpu", int(SEED), states.put, lambda file, line: "")
    thread = threading.Thread(target=watch.run)
    thread.start()
    file = Path("exercises") / "split_heads.py"
    stub = file.read_text(encoding="utf-8")

    def when(holds: Callable[[Watching], bool]) -> Watching:
        while not holds(state := states.get(timeout=LONGEST)):
            pass
        return state

    def judged(status: Status) -> Callable[[Watching], bool]:
        return lambda state: (
            state.phase is Phase.WAITING
            and state.report is not None
            and state.report.stages[0].status is status
            and state.progress.stage(state.stage.slug).status is status
        )

    def draw(name: str, state: Watching) -> None:
        save(name, "grade watch", watch_screen(state, HEIGHT))

    try:
        draw("watch-begin", when(judged(Status.NOT_STARTED)))
        file.write_text(stub.replace(STUB, MISTAKE), encoding="utf-8")
        draw("watch-mistake", when(judged(Status.FAILED)))
        watch.press("h")
        draw("watch-hint", when(lambda state: isinstance(state.panel, HintShown)))
        file.write_text(stub.replace(STUB, MENDED), encoding="utf-8")
        when(lambda state: state.success is not None)
        draw("watch-pass", when(judged(Status.NOT_STARTED)))
    finally:
        watch.press("q")
        thread.join()


def typed(*words: str) -> Text:
    """What `grade` with these words prints on a terminal of 80 columns, in colour."""
    done = subprocess.run(
        [sys.executable, "-m", "grader", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith(("NO_COLOR", "GRADE_"))},
            "PYTHONPATH": str(ROOT),
            "PYTHONIOENCODING": "utf-8",
            "FORCE_COLOR": "1",
            "TERM": "xterm-256color",
            "COLUMNS": str(WIDTH),
        },
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"grade {' '.join(words)}: {done.stderr}")
    return Text.from_ansi(done.stdout.strip("\n"))


def svg(shown: RenderableType, title: str, name: str) -> str:
    """A picture of what rich would print; it asks for no font from anywhere."""
    console = Console(
        record=True,
        width=WIDTH,
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
    )
    console.print(shown, end="")
    picture = console.export_svg(title=title, unique_id=name)
    return re.sub(r"\s*@font-face \{.*?\}\n", "\n", picture, flags=re.DOTALL)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else SCREENS)
