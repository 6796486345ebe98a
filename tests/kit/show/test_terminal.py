"""Each situation a learner can be in, compared exactly with the screen in goldens/.

REWRITE_GOLDENS=1 python -m pytest tests/kit/show/test_terminal.py    redraws all of them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Group, RenderableType

from grader.learning.hints.screen import hint, ladder
from grader.learning.hints.turn import Turn
from grader.learning.hints.types import Hints, Part, Rung
from grader.learning.workspace.listing import listing
from grader.show import failure, scoreboard, terminal
from grader.show.screen import WIDEST, PlainConsole
from grader.show.screen import screen as screen_of
from grader.types.course import Course, EntryPoint, Limits, Stage
from grader.types.progress import Progress, StageProgress
from grader.types.report import (
    EARLIER,
    CheckResult,
    Diagnosis,
    Outcome,
    Report,
    StageResult,
    Status,
    Way,
)
from tests.kit.support.drawn import compare_with, draw

GOLDENS = Path(__file__).parent / "goldens"
compare = partial(compare_with, GOLDENS)
NEXT = "exercises/fold_paper.py"

# A course of its own: paper birds. Nothing that draws may know what is taught.
PLAN = (
    ("fold_paper", "Fold a sheet", 12.0),
    ("crease", "Crease along the line", 18.0),
    ("wings", "Two equal wings", 36.0),
    ("paper_bird_that_flies", "The whole bird", 34.0),
)
UNEVEN = Diagnosis(
    "uneven_fold", "You fold at `width / 3`. Both halves are **equal**: which width is that?"
)


def check(
    name: str = "values", outcome: Outcome = Outcome.PASSED, points: float = 3.0, **more: Any
) -> CheckResult:
    score = points if outcome in (Outcome.PASSED, Outcome.SKIPPED) else 0.0
    title = more.pop("title", f"The {name.replace('_', ' ')} are those of a folded sheet")
    return CheckResult(name, title, outcome, score, points, **more)


def stage(index: int, status: Status, *checks: CheckResult, **more: Any) -> StageResult:
    slug, title, points = PLAN[index]
    if status is Status.PASSED:
        score = points
    else:
        score = max(
            0.0, points - sum(each.max_score - each.score for each in checks) if checks else 0
        )
    return replace(StageResult(slug, title, status, score, points, False, checks), **more)


def report(*stages: StageResult, **more: Any) -> Report:
    core = [each for each in stages if not each.bonus]
    totals = Report(
        course="Paper birds",
        submission="exercises",
        device="cpu",
        score=sum(each.score for each in core),
        max_score=sum(each.max_score for each in core),
        bonus=sum(each.score for each in stages if each.bonus),
        stages=stages,
    )
    return replace(totals, **more)


def stages(*statuses: Status) -> tuple[StageResult, ...]:
    return tuple(stage(index, status) for index, status in enumerate(statuses))


P, F, N, E = Status.PASSED, Status.FAILED, Status.NOT_STARTED, Status.ERROR

WRONG_SHAPE = """\
fold_paper(sheet [B=2, T=3, D=8], 2)
  expected shape  [B=2, H=2, T=3, d_k=4]
  got             [B=2, T=3, H=2, d_k=4]"""
WRONG_VALUE = """\
fold_paper(sheet [B=2, T=3, D=8], 2)
  first difference at [b=0, h=1, t=0, i=0]
  expected   0.4967
  got       -0.1383"""
CRASH = """\
exercises/fold_paper.py, line 14, in fold_paper
    return sheet.view(batch, tokens, num_folds, width)
SyntaxError: invalid syntax"""

FAILING = stage(
    0,
    F,
    check("shapes", Outcome.FAILED, message=WRONG_SHAPE, diagnosis=UNEVEN),
    check(
        "values",
        Outcome.FAILED,
        message=WRONG_VALUE,
        diagnosis=UNEVEN,
        title="Every half lies in its own layer, whatever the number of sheets or folds",
    ),
    check("edges"),
    check("device", Outcome.SKIPPED, message="only with a GPU (--device cuda)"),
    printed="sheet (2, 3, 8)\nhalves (2, 3, 4)\n",
)
MANY = stage(
    2,
    F,
    *(
        check(
            f"wing_{number}", Outcome.FAILED, 3, message=f"wing {number} is too long by {number} cm"
        )
        for number in range(1, 6)
    ),
    printed="\n".join(f"step {number}" for number in range(1, 8)),
)
FEW = stage(2, F, *MANY.checks[:2], printed="step 1\nstep 2")
LATER = [StageResult(f"glider_{n}", "A glider", N, 0, 9, True, ()) for n in range(4)]
UNLOADED = stage(
    0,
    F,
    *(
        check(f"check_{n}", Outcome.FAILED, 2, message=f"bird.py does not define {name}")
        for n, name in enumerate(("fold", "fold", "wing"))
    ),
)
BROKEN = stage(0, F, *(check(f"check_{n}", Outcome.FAILED, 2, message=CRASH) for n in range(6)))
HALF_BROKEN = stage(
    0,
    F,
    check("shapes"),
    *(check(f"check_{n}", Outcome.FAILED, 1.5, message=CRASH) for n in range(6)),
)
WAITING = stage(
    3,
    F,
    check("outputs", Outcome.FAILED, 20, message="got NaN at [b=0, t=0]"),
    check("weights", Outcome.FAILED, 14, message="got NaN at [b=0, t=0]"),
    caused_by="fold_paper",
)
ONLY_BECAUSE = "It fails only because fold_paper is not right yet"
OF_TWO_MISTAKES = stage(
    3,
    F,
    check("outputs", Outcome.FAILED, 20, message=ONLY_BECAUSE, way=EARLIER),
    check("weights", Outcome.FAILED, 14, message=ONLY_BECAUSE, way=EARLIER),
    check("sizes", Outcome.FAILED, 2, message=WRONG_SHAPE),
)
SLOW = stage(
    0,
    F,
    check("shapes"),
    check(
        "values",
        Outcome.TIMEOUT,
        5,
        message="fold_paper(sheet [2, 3, 8], 2) gave no answer within 10 s.",
    ),
    check("edges", Outcome.FAILED, 4, message=WRONG_VALUE),
)
OUR_FAULT = stage(
    0,
    E,
    check("shapes"),
    check("values", Outcome.ERROR, 5, message="RuntimeError in the check itself: no such file"),
)
HOSTILE = stage(
    0,
    F,
    check(
        "values",
        Outcome.FAILED,
        title="[bold]Values[/] are kept",
        message="[red]ValueError[/red]: [/] \x1b[2J\x1b]0;gone\x07 \u202etxt.exe\u202c "
        ":smile: \ud800\nx = '[link=http://example.org]here[/link]'\r\n\ttabbed\rover",
        diagnosis=Diagnosis("x", "You wrote [blink] and `\x1b[31m`"),
    ),
    printed="✓ fold_paper passed 12 / 12\n\x1b[1A\x1b[2K100 of 100 points\n[bold red]PASSED[/]\n",
    title="Fold [red]a sheet\nof paper",
)
LONG = stage(
    0,
    F,
    check(
        "values",
        Outcome.FAILED,
        title="A title that is as long as titles may be, seventy-two characters, yes",
        message="fold_paper(sheet [B=2, T=3, D=8], 2) gave a list of 3 sheets of which the second "
        "one has a width that is not the half of the sheet it was folded from\n"
        "    indented: " + "word " * 40 + "\n" + "x" * 200,
    ),
    check(
        "tower",
        Outcome.FAILED,
        message="\n".join(f"line {number} of a very tall message" for number in range(1, 61)),
    ),
    printed="y" * 1000,
)
RICH = (
    *stages(P, P, P, P),
    StageResult("kite", "A kite", P, 6, 6, True, (), None, ""),
    StageResult("boat", "A boat that floats", N, 0, 6.5, True, (), None, ""),
)
FAILED_BONUS = (
    *RICH[:4],
    replace(
        RICH[4],
        status=F,
        score=2.5,
        checks=(check("tail", Outcome.FAILED, 3.5, message="the tail is too short"),),
    ),
)


@dataclass(frozen=True)
class Situation:
    """One report and how it is asked for."""

    report: Report
    every: bool = False
    next_file: str | None = None


SITUATIONS = {
    "untouched": Situation(report(*stages(N, N, N, N)), next_file=NEXT),
    "all_pass": Situation(report(*stages(P, P, P, P), notes=("seed 20260114",))),
    "one_stage_passes": Situation(report(*stages(P))),
    "next_stage": Situation(report(*stages(P, P, N, N)), next_file="exercises/wings.py"),
    "failing": Situation(report(FAILING, *stages(N, N, N, N)[1:])),
    "failing_every": Situation(
        report(FAILING, stage(1, P, printed="creased\n"), FEW, WAITING), True
    ),
    "many_failing": Situation(report(*stages(P, P), MANY, stage(3, N))),
    "same_message": Situation(report(BROKEN, *stages(N, N, N, N)[1:])),
    "unloaded": Situation(report(UNLOADED)),
    "unloaded_every": Situation(report(UNLOADED), every=True),
    "same_message_some": Situation(report(HALF_BROKEN)),
    "caused_by": Situation(report(*stages(N, P, P), WAITING)),
    "caused_by_alone": Situation(report(WAITING)),
    "caused_by_later": Situation(report(FAILING, *stages(P, P, P)[1:], WAITING)),
    "of_two_mistakes": Situation(report(OF_TWO_MISTAKES)),
    "timeout": Situation(report(SLOW, *stages(N, N, N, N)[1:])),
    "error": Situation(report(OUR_FAULT, *stages(P, P, P, P)[1:])),
    "error_without_checks": Situation(report(stage(0, E))),
    "hostile": Situation(report(HOSTILE, *stages(N, N)[1:], submission="[red]\x1b[31m/\u202etmp")),
    "long": Situation(report(LONG)),
    "bonus": Situation(report(*RICH)),
    "bonus_failing": Situation(report(*FAILED_BONUS)),
    "bonus_folded": Situation(report(*stages(P, N), *LATER)),
    "bonus_folded_done": Situation(report(*stages(P, P), *LATER)),
    "no_stages": Situation(report()),
}

LADDER = """\
Look at the **two** halves of `sheet` first.
What is the width of each?

1. Fold once: `sheet.fold(2)`
   and look at the result.
2. Fold *again*, then compare 2 * 3 * 4 with [red]this[/red].
   - a nested point that is long enough to be wrapped on a terminal of eighty columns

## And then

```python
half = sheet.width // 2  # (B, T, d_k)
    ### not a heading, **not bold**
```

    indented code
"""


def _stage(
    slug: str,
    title: str,
    points: float,
    functions: tuple[str, ...],
    requires: tuple[str, ...] = (),
    *,
    bonus: bool = False,
) -> Stage:
    entries = tuple(EntryPoint(name, ("any",)) for name in functions)
    return Stage(slug, title, points, bonus, requires, entries, Path())


NEEDED = ("fold_paper", "crease", "wings", "tail", "beak", "a_very_long_name_of_a_stage")
COURSE = Course(
    name="paper-birds",
    title="Paper birds",
    root=Path(),
    preload=(),
    limits=Limits(),
    stages=(
        _stage("fold_paper", "Fold a sheet", 12, ("fold_paper",)),
        _stage("crease", "Crease along the line", 1, ("crease", "uncrease"), ("fold_paper",)),
        _stage("paper_bird_that_flies", "The whole bird", 87, ("PaperBird",), NEEDED),
        _stage("kite", "A kite", 6.5, ("kite",), bonus=True),
    ),
)
HINTS = Hints(
    "Fold a sheet",
    (
        Rung("Rung 1", "Text 1."),
        Rung("The two halves", LADDER),
        Rung("Compare", "Is `a` as wide as `b`?", "It is twice as wide."),
        Rung("Nearly", "The line is `a = b`."),
    ),
    {
        "Learnt": "A fold halves what it folds.",
        "Why it is written this way": "Folding once is enough, so `fold` is called once.",
        "Read next": 'Lang 1988, "The Complete Book of Origami", section 1.',
    },
)


def screen(situation: Situation) -> RenderableType:
    shown = situation.report
    return Group(
        scoreboard.scoreboard(shown),
        terminal.explanation(shown, failure.NextSteps(situation.next_file), every=situation.every),
        scoreboard.footnotes(shown),
    )


@pytest.mark.parametrize("name", SITUATIONS)
def test_screen(name: str) -> None:
    compare(name, draw(screen(SITUATIONS[name])))


WIDTHS = {"failing_60", "bonus_60"}
COLOURED = ("untouched", "failing")


def test_without_the_name_of_a_file_the_slug_says_which_one() -> None:
    shown = draw(screen(replace(SITUATIONS["untouched"], next_file=None)))
    assert "1  Open the file of fold_paper and read what it asks for." in shown


@pytest.mark.parametrize("name", sorted(WIDTHS))
def test_other_widths(name: str) -> None:
    situation, _, width = name.partition("_")
    compare(name, draw(screen(SITUATIONS[situation]), int(width)))


@pytest.mark.parametrize("name", COLOURED)
def test_in_colour(name: str) -> None:
    drawn = draw(screen(SITUATIONS[name]), force_terminal=True, color_system="standard")
    compare(f"{name}_colour", drawn)


def test_no_color_is_respected() -> None:
    drawn = draw(
        screen(SITUATIONS["failing"]),
        force_terminal=True,
        _environ={"NO_COLOR": "1", "TERM": "xterm"},
    )
    assert "\x1b[31" not in drawn and "\x1b[36" not in drawn
    assert "`width / 3`" in drawn  # without colour the ticks say what is code


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437"])
@pytest.mark.parametrize("name", ["failing_every", "hostile", "long"])
def test_other_alphabets(name: str, encoding: str) -> None:
    drawn = draw(screen(SITUATIONS[name]), encoding=encoding)
    signs = str.maketrans({**dict(zip("✗✓↑━·│", "x+^#.|", strict=True)), "…": "..."})
    assert drawn == draw(screen(SITUATIONS[name])).translate(signs)


def test_letters_that_a_console_lacks() -> None:
    broken = check("values", Outcome.FAILED, message="q kᵀ / √d_k → größer ≥ 1 × 2, 注")
    drawn = draw(screen(Situation(report(stage(0, F, broken)))), encoding="cp1252")
    assert "q k^T / sqrt d_k -> größer >= 1 x 2, \\u6ce8" in drawn


@pytest.mark.parametrize("name", SITUATIONS)
def test_nothing_is_wider_than_the_console(name: str) -> None:
    for width in (*range(20, 130, 7), 80):
        lines = draw(screen(SITUATIONS[name]), width).split("\n")
        assert all(len(line) <= min(width, WIDEST) for line in lines), width
        assert all(line == line.rstrip() for line in lines), width


@pytest.mark.parametrize("name", [name for name, one in SITUATIONS.items() if not one.every])
def test_a_failing_stage_fits_on_one_screen(name: str) -> None:
    shown = SITUATIONS[name].report
    assert len(draw(terminal.explanation(shown)).splitlines()) <= 20
    if len(shown.stages) == 1:
        assert len(draw(screen(SITUATIONS[name])).splitlines()) <= 24


CALLED = stage(0, F, check(outcome=Outcome.FAILED, message=f"wrong\n  call      {WRONG_VALUE}"))


def test_the_trace_is_offered_where_the_stage_has_one() -> None:
    def offers(width: int, *traced: str, repro: str | None = "grade repro") -> list[str]:
        shown = terminal.explanation(report(CALLED), failure.NextSteps(traced=traced, repro=repro))
        return re.findall(r"grade (hint|trace|repro)", draw(shown, width))

    assert offers(80, "fold_paper") == ["hint", "trace", "repro"]
    assert offers(80, "fold_paper", repro=None) == ["hint", "trace"]  # another's files
    assert offers(80, "wings") == ["hint", "repro"]
    assert offers(40, "fold_paper") == ["hint"]


def test_a_stub_below_the_answer_is_the_reason_and_not_how_to_begin() -> None:
    why = "A cell below yours holds the stub."
    empty = report(replace(stage(0, N), why_not_started=why))
    assert draw(terminal.explanation(empty)).split("\n")[0] == f"  {why}"
    assert "Put your code" not in draw(terminal.explanation(empty))
    several = replace(empty, stages=empty.stages * 2, notes=("seed 1", f"fold: {why}"))
    assert "Put your code" not in draw(terminal.explanation(several))
    for told in (several, replace(several, stages=empty.stages)):
        assert why not in draw(scoreboard.footnotes(told))  # it stands above
    begun = replace(several, stages=(*empty.stages, stage(0, F)))
    assert why in draw(scoreboard.footnotes(begun))


def test_a_note_on_one_stage_has_its_own_line() -> None:
    notes = ("seed 1", "fold: looked for one small fix for 3 s and found none")
    shown = draw(scoreboard.footnotes(replace(report(stage(0, F)), notes=notes)))
    assert f", seed 1\n  {notes[1]}\n" in shown


def test_what_a_narrow_screen_cuts_can_be_asked_for() -> None:
    long = check(outcome=Outcome.FAILED, diagnosis=Diagnosis("long", "A word. " * 60))
    drawn = draw(terminal.explanation(report(stage(0, F, long))), 40)
    assert "  More:  grade fold_paper --all\n\n  For a hint:" in drawn
    assert len(drawn.splitlines()) <= 20
    tall = check(outcome=Outcome.FAILED, message="A line\n" * 60)
    drawn = draw(terminal.explanation(report(stage(0, F, tall))))
    assert "    A line\n    … more:  grade fold_paper --all\n" in drawn


@pytest.mark.parametrize(
    "code, shown",
    [
        ("line 4, in fold\n       4  self.wing = 3", "line 4: self.wing = 3"),
        (
            "lines 2 to 3, in fold\n       2  if a: return 1\n       3  return 2",
            "lines 2 and 3, which return",
        ),
        ("lines 2 to 3, in fold\n       2  a = 1\n       3  return a, b", "lines 2 to 3, in fold"),
        ("lines 2 to 9, in fold\n       9  return (a)  # new", "lines 2 to 9, in fold"),
        ("lines 2 to 9, in fold\n       9  return None", "line 9: return None"),
        ("line 2, in fold\n       2  return a", "line 2: return a"),
        ("lines 2 to 3, in fold\n       2  return max(\n       3  )", "line 2: return max("),
        (
            "lines 2 to 9, in fold\n       3      return 1\n       9  return 2",
            "lines 3 and 9, which return",
        ),
        (
            "lines 2 to 3, in __init__\n       2  a = 1\n       3  b = 2",
            "lines 2 to 3, in __init__",
        ),
    ],
)
def test_the_line_to_look_at_is_one_that_returns(code: str, shown: str) -> None:
    message = f"Wrong.\n  look at   fold.py, {code}"
    told = failure.essence(check(outcome=Outcome.FAILED, message=message))
    assert told == f"Wrong.\n  look at   fold.py, {shown}"


def test_no_return_is_shown_where_an_error_was_expected() -> None:
    message = "3 does not fit\n  look at   fold.py, lines 2 to 9, in fold\n       9  return a + 1"
    found = check(outcome=Outcome.FAILED, message=message, way=Way.NO_ERROR.value)
    assert failure.essence(found).endswith("look at   fold.py, lines 2 to 9, in fold")


def test_a_named_mistake_replaces_what_its_exception_means() -> None:
    message = "RuntimeError: no\n  in words  it does not fit\n  f.py, line 3, in f\n    return f(a)"
    for name, stays in [("a", False), ("symptom:a", True)]:
        found = Diagnosis(name, "Too small.")
        told = failure.essence(check(outcome=Outcome.FAILED, message=message, diagnosis=found))
        assert ("in words" in told) is stays
        assert "return f(a)" in told


@pytest.mark.parametrize("text", ["Right up to here (fold.py, line 2).", "__init__ sets no wing."])
def test_no_line_to_look_at_stays_where_the_reason_says_where(text: str) -> None:
    message = "Wrong.\n  look at   fold.py, line 3, in fold\n       3  return f(a)"
    for said, stays in [(text, False), ("Too small.", True)]:
        found = check(
            outcome=Outcome.FAILED, message=message, diagnosis=Diagnosis("symptom:a", said)
        )
        assert ("look at" in failure.essence(found)) is stays


@pytest.mark.parametrize("width", range(60, 90))
def test_a_title_is_whole_where_there_is_room_and_how_many_more_is_on_one_line(width: int) -> None:
    first = check("a", Outcome.FAILED, diagnosis=Diagnosis("one", "One."))
    second = check("b", Outcome.FAILED, diagnosis=Diagnosis("two", "Two."))
    same = [replace(second, id=name, title="A title that is long " * 4) for name in "bcd"]
    failing = stage(0, F, first, *same)
    tall = screen_of(failure.first_failure)(report(failing), failing, room=30)
    assert "(and 2 more)" in draw(tall, width) and draw(tall, width).count("long") == 4
    usual = draw(terminal.explanation(report(failing)), width)
    assert "(and 2 more)" in usual and usual.count("long") < 4  # as short as a screen of 24 lines


@pytest.mark.parametrize("width, shown", [(80, True), (53, False), (40, False)])
def test_carets_stand_below_a_line_of_code_only_if_it_is_whole(width: int, shown: bool) -> None:
    line = "    return sheet.view(batch, folds, tokens, width)"
    failing = check(outcome=Outcome.FAILED, message=f"{line}\n           ^^^^^^^^^^")
    drawn = draw(terminal.explanation(report(stage(0, F, failing))), width)
    assert ("^" in drawn) is shown


def test_in_colour_too_no_text_of_a_learner_reaches_the_terminal_raw() -> None:
    drawn = draw(screen(SITUATIONS["hostile"]), force_terminal=True, color_system="standard")
    assert "\x1b" in drawn and "\\x1b[2J" in drawn
    for raw in ("\x1b[2J", "\x1b]", "\x1b[1A", "\x07", "\r", "\u202e", "\ud800"):
        assert raw not in drawn


@pytest.mark.parametrize("line", ["z", "~"])
def test_a_megabyte_of_message_is_drawn_at_once(line: str) -> None:
    message = f"A line\n{line * 1_000_000}!"
    shown = report(
        stage(0, F, check("values", Outcome.FAILED, message=message), printed="w \n" * 300_000)
    )
    drawn = draw(screen(Situation(shown)))
    assert len(drawn.split("\n")) < 60


def test_of_frames_that_were_shown_only_the_last_stays() -> None:
    frames = "".join(f"\n  wings.py, line {n}, in fold\n    line_{n}()" for n in range(12))
    checks = (
        check(name, Outcome.FAILED, message=f"TypeError: {name}{frames}\n  call  fold({n})")
        for n, name in enumerate(("one", "two", "three"))
    )
    drawn = draw(screen(Situation(report(stage(0, F, *checks)), every=True)))
    assert drawn.count("line_0()") == 1 and drawn.count("line_11()") == 3
    assert all(drawn.count(f"fold({n})") == 1 for n in range(3))


def test_a_bar_is_full_only_for_full_points() -> None:
    almost = replace(stage(0, F, check("values", Outcome.FAILED, 0.1)), score=11.9)
    barely = replace(stage(1, F, check("values", Outcome.FAILED, 17.9)), score=0.1)
    almost_line, barely_line = draw(scoreboard.scoreboard(report(almost, barely))).split("\n")[3:5]
    assert "━·" in almost_line and "11.9 / 12" in almost_line
    assert "━·" in barely_line and "0.1 / 18" in barely_line


def test_list() -> None:
    compare("list", draw(listing(COURSE, KNOWN)))
    assert max(map(len, draw(listing(COURSE, KNOWN), 60).splitlines())) <= 60


KNOWN = Progress(
    {
        "fold_paper": StageProgress(
            rungs=2, status=P, best=12, attempts=3, passed="2026-01-14T10:00:00+00:00", gave_up=True
        ),
        "crease": StageProgress(status=F, best=0.5, attempts=1),
    }
)
HINT_SCREENS: dict[str, Callable[[], RenderableType]] = {
    "hint": lambda: hint(COURSE.stages[0], HINTS, Turn(2)),
    "hint_advised": lambda: hint(
        COURSE.stages[0], HINTS, Turn(3, Part.QUESTION, speaks_to=UNEVEN.text)
    ),
    "hint_answer": lambda: hint(COURSE.stages[0], HINTS, Turn(3, Part.ANSWER), is_open=True),
    "hint_question": lambda: hint(COURSE.stages[0], HINTS, Turn(3, Part.QUESTION), is_open=True),
    "hint_last": lambda: hint(COURSE.stages[0], HINTS, Turn(4), is_open=True),
    "hint_ladder": lambda: ladder(HINTS),
}


COLOURED_HINTS = ("hint_advised", "hint")


@pytest.mark.parametrize("name", HINT_SCREENS)
def test_hint(name: str) -> None:
    plain = draw(HINT_SCREENS[name]())
    compare(name, plain)
    coloured = draw(HINT_SCREENS[name](), force_terminal=True, color_system="standard")
    words = re.sub(r"\x1b\[[0-9;]*m", "", coloured).split()
    assert words == plain.replace("`", "").split()  # which say what is code where nothing is cyan
    if name in COLOURED_HINTS:
        compare(f"{name}_colour", coloured)


PLAIN = ("failing", "bonus", "untouched", "error")


@pytest.mark.parametrize("name", [name for name in SITUATIONS if name != "hostile"])
def test_plain_is_for_screen_readers_one_fact_a_line(name: str) -> None:
    drawn = draw(screen(SITUATIONS[name]), kind=PlainConsole)  # the hostile code prints such signs
    assert not set("━│·✓✗↑•") & set(drawn)
    if name in PLAIN:
        compare(f"{name}_plain", drawn)


def test_plain_ends_a_question_with_its_own_mark() -> None:
    ending = {"Did you save it?": "it? Lost: 3 points.", "It is sharp": "sharp. Lost: 3 points."}
    for title, end in ending.items():
        failed = stage(0, F, check(outcome=Outcome.FAILED, title=title))
        assert end in draw(terminal.explanation(report(failed)), kind=PlainConsole)


def test_plain_list() -> None:
    compare("list_plain", draw(listing(COURSE, KNOWN), kind=PlainConsole))


def test_no_golden_is_left_over() -> None:
    """Every file in goldens/ is still drawn by a test above."""
    names = {
        *SITUATIONS,
        *WIDTHS,
        *(f"{name}_colour" for name in (*COLOURED, *COLOURED_HINTS)),
        *HINT_SCREENS,
        *(f"{name}_plain" for name in (*PLAIN, "list")),
        "list",
    }
    assert {path.stem for path in GOLDENS.iterdir()} == names


def test_a_skipped_check_that_gives_no_points_is_not_at_no_cost() -> None:
    free, lost = (check(name, Outcome.SKIPPED, message="it is dark") for name in ("free", "lost"))
    lost = replace(lost, score=0.0)
    failing = stage(0, F, check("shapes", Outcome.FAILED), free, lost)
    assert scoreboard.skipped_lines(report(failing, stage(1, N, lost))) == [
        "2 checks skipped, at no cost: it is dark",
        "1 check skipped, no points while others fail: it is dark",
    ]


def test_a_place_that_several_failures_share_is_shown_once() -> None:
    place = "\n  look at   fold.py, line 3, in fold\n           3  return paper"
    found = [check(name, Outcome.FAILED, message=f"{name} tears{place}") for name in ("A", "B")]
    said = draw(terminal.explanation(report(stage(0, F, *found)), every=True))
    assert said.count("tears") == 2 and said.count("return paper") == 1
