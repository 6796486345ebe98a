"""The class's report: every fact in words, nothing of a stranger's is markup, no need of network.

What a browser makes of it is looked at in tests/kit/classes/report/test_in_browser.py.
"""

import re
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from html.parser import HTMLParser
from pathlib import Path

import pytest

from grader.classes.folder.types import LedgerEntry, SubmissionRecord, Version
from grader.classes.report.look import histogram
from grader.classes.report.moved import moved
from grader.classes.report.page import class_report
from grader.classes.report.types import Unexplained
from grader.types.course import Assignment, Stage
from grader.types.report import (
    EARLIER,
    REFUSED,
    UNLOCKED,
    CheckResult,
    Diagnosis,
    Outcome,
    Report,
    StageResult,
    Status,
    from_json,
    to_json,
)

EVIL = '<script>alert(1)</script><img src=x onerror="f()">\'\x1b[31m\x00\u202eevil&amp;'
FOLD = Stage("fold", "Fold a sheet", 10, False, (), (), Path())
FLY = Stage("fly", "Let it fly", 5, False, ("fold",), (), Path())
FLIGHT = Assignment("flight", (FOLD, FLY))
WHEN = datetime(2026, 1, 5, 10, tzinfo=timezone.utc)
UPSIDE_DOWN = Diagnosis("upside_down", "You fold it `upside` down.", 3)


def check(
    name: str, outcome: Outcome, message: str = "", diagnosis: Diagnosis | None = None
) -> CheckResult:
    score = 5.0 if outcome is Outcome.PASSED else 0.0
    return CheckResult(name, f"It can {name}", outcome, score, 5.0, message, diagnosis)


def stage(of: Stage, status: Status, *checks: CheckResult, cause: str | None = None) -> StageResult:
    score = sum(check.score for check in checks)
    return StageResult(of.slug, of.title, status, score, of.points, False, checks, cause)


def entry(student: str, *stages: StageResult, notes: tuple[str, ...] = ()) -> LedgerEntry:
    score = sum(stage.score for stage in stages)
    report = Report("Birds", student, "cpu", score, 15.0, 0.0, stages, ("seed 7",))
    record = SubmissionRecord(student, "c0ffee", notes)
    return LedgerEntry(record, Version("e17", {}), 7, "cpu", report, WHEN, seconds=1.5)


GOOD, BAD = check("hold", Outcome.PASSED), check("hold", Outcome.FAILED, "it tears", UPSIDE_DOWN)
FOLDED = stage(FOLD, Status.PASSED, GOOD, check("bend", Outcome.PASSED))
TORN = stage(FOLD, Status.FAILED, BAD, check("bend", Outcome.PASSED))
FLOWN = stage(FLY, Status.PASSED, check("fly", Outcome.PASSED))
FALLEN = stage(FLY, Status.FAILED, check("fly", Outcome.FAILED, "it falls"), cause="fold")
UNTOUCHED = stage(FLY, Status.NOT_STARTED, check("fly", Outcome.FAILED, "not written"))
REFUSAL = check(f"fold.{REFUSED}", Outcome.FAILED, "Is not a notebook.")
UNREAD = entry("una", stage(FOLD, Status.FAILED, REFUSAL), notes=("Is not a notebook.",))
LOST = replace(entry("lou", notes=("The grader failed twice.",)), report=None)
CLASS = (
    entry("ann", FOLDED, FLOWN),
    entry("bob", TORN, FALLEN, notes=("bob.py was graded as fold.py.",)),
    entry("cas", TORN, UNTOUCHED),
    LOST,
    UNREAD,
)


class Reader(HTMLParser):
    """The page's tags, what the attributes say, and whether every tag is closed in its turn."""

    VOID = ("meta", "br", "rect", "line")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.opened: list[str] = []
        self.feed(html)
        self.close()
        assert self.opened == []
        assert len(self.ids) == len(set(self.ids))
        assert {link.removeprefix("#") for link in self.links} <= set(self.ids)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert name != "style" and not name.startswith("on"), name
            if name in ("id", "href"):
                (self.ids if name == "id" else self.links).append(value or "")
        if tag not in self.VOID:
            self.opened.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"}.intersection(self.opened):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.texts))


def read(
    *entries: LedgerEntry,
    unexplained: Sequence[Unexplained] = (),
    hints: Mapping[str, Sequence[str]] | None = None,
    skipped: Sequence[str] = (),
    anonymous: bool = False,
) -> Reader:
    pieces = class_report(
        "Birds",
        FLIGHT,
        lambda: entries,
        unexplained,
        hints=hints or {},
        skipped=skipped,
        anonymous=anonymous,
    )
    return Reader("".join(pieces))


def part(page: Reader, name: str) -> str:
    """The text of a section of the class, or of a student's page."""
    html = re.search(rf'<section[^>]*"{name}".*?</section>', page.html, re.DOTALL)
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", html.group()))


# --- the class ---------------------------------------------------------------------------------


def test_what_to_teach_next_is_a_stages_own_mistake_and_first_one_that_is_explained() -> None:
    waits = replace(check("hold", Outcome.FAILED, "It fails only because x"), way=EARLIER)
    tears, flat = (
        replace(check("bend", Outcome.FAILED, way), way=way) for way in ("tears", "flat")
    )
    students = [stage(FOLD, Status.FAILED, waits, tears), stage(FOLD, Status.FAILED, waits, flat)]
    entries = [entry(f"s{at}", each) for at, each in enumerate((*students, TORN))]
    stored = [replace(e, report=e.report and from_json(to_json(e.report))) for e in entries]
    said = part(read(*stored), "teach")
    assert "It fails only because" not in said
    assert said.index("upside") < said.index("It can bend")
    assert "2 students" not in said  # they fail the same check, but not alike


def test_what_to_teach_next_has_each_stages_causes_with_an_example_and_the_hint() -> None:
    slow = stage(FLY, Status.FAILED, check("glide", Outcome.TIMEOUT, "it took too long"))
    more = [entry("dan", TORN, slow), entry("eve", FOLDED, slow)]
    hints = {"fold": ["Which side?", "How often?", "Which way is up?"]}
    page = read(*CLASS, *more, hints=hints)
    said = part(page, "teach")
    fold, fly = said.index("Fold a sheet: 3 of 5 fail"), said.index("Let it fly: 2 of 3 fail")
    assert fold < fly
    assert "3 students : You fold it upside down. it tears Hint 3. Which way is up?" in said
    assert "2 students : It runs out of time: It can glide" in said
    assert "What everybody passes It can bend; It can fly." in said
    assert re.search(r"\b(ann|bob|cas|dan|eve)\b", said) is None
    assert "3. Which way is up?" in part(page, "misconceptions")
    assert "Nobody fails a stage" in part(read(CLASS[0]), "teach")


@pytest.mark.parametrize(
    "message",
    [
        "fold.py cannot be imported. SyntaxError: '(' was never closed",
        "fold is not defined: a cell of the notebook fails. NameError: name 'x' is not defined",
        "The notebook does not define fold; it defines fald: rename it",
        "There is no file fold.py",
    ],
)
def test_code_that_no_check_can_call_is_one_cause_that_says_so(message: str) -> None:
    broken = stage(FOLD, Status.FAILED, check("hold", Outcome.FAILED, message))
    wrong = stage(FOLD, Status.FAILED, check("hold", Outcome.FAILED, "it tears"))
    said = part(read(entry("ann", broken), entry("bob", broken), entry("cas", wrong)), "teach")
    assert "2 students : The code cannot be imported, or does not define what" in said
    assert "1 student : This check fails: It can hold" in said


def test_what_separates_strong_from_weak_takes_a_class() -> None:
    many = [entry(f"s{n}", TORN if n < 3 else FOLDED) for n in range(9)]
    assert "It can hold (Fold a sheet): 100% and 0%" in part(read(*many), "teach")
    assert "separates" not in part(read(*many[:8]), "teach")


def test_how_the_class_moved_names_nobody_but_in_a_table_of_its_own() -> None:
    before = [entry(name, TORN, FLOWN) for name in ("bob", "cas")]
    change = moved("week-1", [CLASS[0], *before], CLASS)
    pieces = class_report("Birds", FLIGHT, lambda: CLASS, moved=change)
    page = Reader("".join(pieces))
    said = part(page, "teach")
    assert "Since week-1 3 students in both: median 67% of the points then, 33% now." in said
    assert "Let it fly: 3 passed, now 1" in said
    assert "You fold it upside down. 2 had it, 2 still." in said
    assert "bob" not in said and "bob 67% 33%" in part(page, "fallen")


def test_what_was_skipped_is_on_the_page_but_names_nobody_on_an_anonymous_one() -> None:
    odd = ["dan.rar is not a notebook.", f"{EVIL} is not a notebook."]
    page = read(*CLASS, skipped=odd)
    assert "Skipped (2)" in part(page, "summary")
    assert "Skipped (2) dan.rar is not a notebook." in part(page, "notes")
    page = read(*CLASS, skipped=odd, anonymous=True)
    assert "Skipped (2) The screen of grade class names them." in part(page, "notes")
    assert "dan" not in page.text
    assert "Nothing unusual." not in part(read(CLASS[0], skipped=odd), "notes")


def test_the_summary_counts_what_was_graded_and_names_what_was_not() -> None:
    said = part(read(*CLASS), "summary")
    assert "5 submissions graded, seed 7. Of 15 points, without the 1 unreadable: median" in said
    assert "median 5, mean 8.33, from 5 to" in said
    assert "1 submission could not be read." in said
    assert "1 submission with points to set by hand." in said
    assert "Grading took 4.5 s in total." in said
    assert "4.5 to 6: 2; 13.5 to 15: 1." in said
    assert "Fold a sheet 6.67 of 10 1 2 0 0" in said
    assert "Let it fly 1.67 of 5 1 0 1 1" in said


def test_a_row_tells_points_and_standing_by_signs_too() -> None:
    said = part(read(*CLASS), "students")
    assert "ann 15 ✓ 10 ✓ 5 1.5" in said
    assert "bob 5 ✗ 5 ↑ 0 1.5" in said
    assert "cas 5 ✗ 5 · 0 1.5" in said
    assert "lou – by hand – – –" in said and "una – unreadable – – –" in said
    html = read(*CLASS).html
    assert 'data-v="0" aria-label="failed because of an earlier stage, 0"' in html
    assert '<th scope="col" aria-sort="ascending"><button type="button" disabled>Student<' in html


def test_a_check_that_fails_for_an_earlier_stage_or_is_not_begun_is_not_counted() -> None:
    said = part(read(*CLASS), "checks")
    assert "It can hold Fold a sheet 2 of 3" in said
    failing, _, others = said.partition("2 checks that nobody fails")
    assert "It can fly" not in failing and "It can bend" not in failing
    assert "It can bend" in others and "It can fly" in others
    assert "No check fails." in part(read(CLASS[0]), "checks")


def test_the_checks_that_fail_most_come_first_and_the_others_can_be_opened() -> None:
    names = [f"do {n}" for n in range(20)]
    many = [entry(f"s{n}", stage(FOLD, Status.FAILED, *(
        check(name, Outcome.FAILED if place <= n else Outcome.PASSED)
        for place, name in enumerate(names)
    ))) for n in range(20)]  # fmt: skip
    page = read(*many)
    found = re.findall(r"It can do (\d+) ", part(page, "checks"))
    assert found == [str(n) for n in range(20)]
    assert "5 more checks" in part(page, "checks")


def test_a_misconception_counts_the_students_that_hold_it_once_each() -> None:
    twice = entry("dan", stage(FOLD, Status.FAILED, BAD, replace(BAD, id="bend")))
    said = part(read(*CLASS[:2], twice), "misconceptions")
    assert "You fold it upside down. Fold a sheet 2 bob , dan" in said
    crowd = [replace(CLASS[1], record=SubmissionRecord(f"s{n}", "")) for n in range(9)]
    said = part(read(*crowd), "misconceptions")
    assert "9 s0 , s1 , s2 , s3 , s4 and 4 more" in said


def test_a_symptom_is_no_misconception() -> None:
    symptom = replace(BAD, diagnosis=Diagnosis("symptom:upside", "It is upside down."))
    page = read(entry("dan", stage(FOLD, Status.FAILED, symptom)))
    assert "No answer behaves like a known mistake" in part(page, "misconceptions")
    assert "<p>It is upside down.</p>" in page.html


def test_other_failures_are_listed_with_the_place_in_one_answer() -> None:
    assert "No other failure" in part(read(*CLASS), "unexplained")
    found = Unexplained("fold", "It can `bend`", ("cas", "bob"), f"cas/fold.py, line 3\n{EVIL}")
    said = part(read(*CLASS, unexplained=[found]), "unexplained")
    assert "It can bend Fold a sheet 2 cas , bob cas/fold.py, line 3" in said
    hidden = read(*CLASS, unexplained=[found], anonymous=True)
    assert "student/fold.py, line 3" in part(hidden, "unexplained")
    assert "cas" not in hidden.text
    assert EVIL not in hidden.html


def test_what_was_odd_is_noted() -> None:
    report = CLASS[1].report
    assert report is not None
    open_machine = replace(
        CLASS[1], report=replace(report, notes=(UNLOCKED + "network", "A stub."))
    )
    broken = entry("eve", stage(FOLD, Status.ERROR, check("hold", Outcome.ERROR)))
    said = part(read(open_machine, LOST, UNREAD, broken), "notes")
    assert "missing on this machine: network." in said
    assert "by hand: the grader itself failed (2)" in said
    assert "lou : The grader failed twice." in said and "eve : Fold a sheet" in said
    assert "una : Is not a notebook." in said
    assert "bob : bob.py was graded as fold.py. A stub." in said
    assert "Nothing unusual." in part(read(CLASS[0]), "notes")


def test_an_empty_class_and_one_that_could_not_be_read_are_pages_too() -> None:
    assert "0 students" in read().text
    assert "unreadable" in part(read(UNREAD), "students")


def test_the_histogram_says_its_numbers() -> None:
    drawn = histogram([0, 1, 10, 10, 5], 10)
    assert "0 to 1: 1; 1 to 2: 1; 5 to 6: 1; 9 to 10: 2." in drawn
    assert "0 to 0: 1." in histogram([0], 0)


# --- a student ---------------------------------------------------------------------------------


def test_a_students_page_has_all_that_defends_the_points() -> None:
    said = part(read(*CLASS), "s2")
    assert "5 of 15" in said and "2026-01-05 10:00:00 UTC, on cpu, in 1.50 s" in said
    assert "Seed 7" in said and "e17" in said and "c0ffee" in said
    assert "grade class --out DIR --why=bob" in said
    assert "bob.py was graded as fold.py." in said
    assert "✗ Fold a sheet 5 of 10 failed" in said
    assert "It can hold (-5 points) Likely: You fold it upside down. it tears" in said
    assert "It fails because it uses Fold a sheet, which is not right yet." in said
    assert "it falls" in said and "not written" not in part(read(*CLASS), "s3")


def test_a_skipped_check_that_gives_no_points_is_among_the_notes() -> None:
    torn = stage(FOLD, Status.FAILED, BAD, check("glow", Outcome.SKIPPED, "only in the dark"))
    said = part(read(entry("ann", torn)), "s1")
    assert "0 of 10" in said and "no points while others fail: only in the dark" in said


def test_what_could_not_be_graded_says_why() -> None:
    page = read(*CLASS)
    assert "by hand: the grader itself failed" in part(page, "s4")
    assert "0: there was nothing to grade" in part(page, "s5")
    assert "Is not a notebook." in part(page, "s5")


def test_students_are_one_link_apart() -> None:
    page = read(*CLASS)
    assert "Previous" not in part(page, "s1") and "Next" not in part(page, "s5")
    assert page.links.count("#class") == len(CLASS)
    assert page.links.count("#s1") >= 2  # from the class and from the next one


# --- strangers ---------------------------------------------------------------------------------


def test_nothing_of_a_strangers_is_markup() -> None:
    bad = check("x", Outcome.FAILED, EVIL, Diagnosis("x", EVIL))
    evil = replace(stage(FOLD, Status.FAILED, replace(bad, title=EVIL)), title=EVIL, printed=EVIL)
    report = Report(EVIL, EVIL, EVIL, 0, 15, 0, (evil,), (EVIL, UNLOCKED + EVIL))
    record = SubmissionRecord(EVIL, EVIL, (EVIL,))
    version = Version(EVIL, {})
    entries = [LedgerEntry(record, version, 1, EVIL, one, WHEN) for one in (report, None)]
    page = read(*entries, *CLASS)
    assert "img" not in page.tags and page.tags.count("script") == 1
    assert "\x1b" not in page.html and "\x00" not in page.html and "\u202e" not in page.html
    assert "&amp;amp;" in page.html
    assert page.text.count("<script>alert(1)</script>") > 10


@pytest.mark.parametrize("name", ["x" * 10_000, "שלום", "a\u0301" * 500, "a b'c\"d", "\ud800", "-"])
def test_any_name_will_do(name: str) -> None:
    page = read(entry(name, TORN, FALLEN), *CLASS)
    page.html.encode()
    assert len(page.html) < len(read(entry("x", TORN, FALLEN), *CLASS).html) + 6_000
    assert page.html.count("<bdi>") >= 2 * (len(CLASS) + 1)


def test_a_long_message_is_cut() -> None:
    long = entry("x", stage(FOLD, Status.FAILED, check("x", Outcome.FAILED, "line\n" * 9_000)))
    assert len(read(long).html) < len(read(CLASS[1]).html) + 1_000
    assert "and more" in read(long).text


def test_nothing_is_asked_of_a_network_and_the_policy_allows_only_what_is_there() -> None:
    html = read(*CLASS).html
    assert re.search(r"https?:|//|url\(|@import", html) is None
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy and "*" not in policy


# --- without names, and many -------------------------------------------------------------------


def test_without_names_there_are_numbers_in_the_order_given_and_no_name_anywhere() -> None:
    quoted = check("hold", Outcome.FAILED, "look at bob.py, line 3: bobbin")
    bob = entry("bob", stage(FOLD, Status.FAILED, quoted), notes=("bob.py is odd.",))
    page = read(CLASS[0], bob, *CLASS[2:], anonymous=True)
    for name in ("ann", "bob", "cas", "lou", "una"):
        assert re.search(rf"\b{name}\b", page.html) is None
    said = part(page, "s2")
    assert "look at Student 2.py, line 3: bobbin" in said and "--why" not in said
    assert "Student 1 15 ✓ 10" in part(page, "students")


@pytest.mark.parametrize(
    ("student", "words", "shown"),
    [
        ("ada lovelace", "Ada Lovelace, ADA LOVELACE", "Student 1, Student 1"),
        (
            "Ada Lovelace_1234567",
            "by Ada Lovelace, ada lovelace_1234567.py",
            "by Student 1, Student 1.py",
        ),
        ("lovelaceada_123", "lovelaceada wrote", "Student 1 wrote"),
        ("will", "Will: it will pass, goodwill", "Student 1: it Student 1 pass, goodwill"),
        ("Will", "Will: it will pass", "Student 1: it will pass"),
        ("t", "T x t", "T x Student 1"),
        ("ann", "in hw1_Ann2.ipynb: x_ann, annex.py", "in hw1_Student 12.ipynb: x_ann, annex.py"),
        ("Ann Smith_1234567", "see hw/smith_ann-1.py", "see hw/Student 1_Student 1-1.py"),
        ("smith_ann-hw1", "see smith_ann.zip", "see Student 1_Student 1.zip"),
        ("12", "[12, 4]", "[12, 4]"),  # and the command says so
    ],
)
def test_a_name_is_hidden_however_it_is_written(student: str, words: str, shown: str) -> None:
    failed = check("hold", Outcome.FAILED, words)
    page = read(entry(student, stage(FOLD, Status.FAILED, failed)), anonymous=True)
    assert shown in part(page, "s1")


def test_a_large_class_never_stands_in_memory() -> None:
    long = check("hold", Outcome.FAILED, "x" * 3_000, UPSIDE_DOWN)

    def entries() -> Iterator[LedgerEntry]:
        for n in range(1_000):
            yield entry(f"student {n}", stage(FOLD, Status.FAILED, long))

    tracemalloc.start()
    size = sum(map(len, class_report("Birds", FLIGHT, entries)))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 3_000_000 > 4 * most


def test_a_misconception_has_an_example_without_a_name_and_its_hint() -> None:
    named = replace(UPSIDE_DOWN, hint=2)
    torn = stage(FOLD, Status.FAILED, check("hold", Outcome.FAILED, "bob.py tears <it>", named))
    hints = {"fold": ["Look at the paper", "Which side is `up`?"]}
    said = part(read(entry("bob", torn), hints=hints), "misconceptions")
    assert "student.py tears &lt;it&gt;" in said and "bob.py" not in said
    assert re.search(r"2\. Which side is\s+up", said)


def test_a_check_tells_how_many_of_the_weakest_and_the_strongest_third_fail_it() -> None:
    weak = [entry(f"weak{n}", TORN, UNTOUCHED) for n in range(3)]
    rest = [entry(f"rest{n}", FOLDED, FLOWN) for n in range(6)]
    assert "3 of 9 100% 0%" in part(read(*weak, *rest), "checks")
    assert "2 of 8 – –" in part(read(*weak[:2], *rest), "checks")  # too few for thirds
    assert "3 of 9 – –" in part(read(*weak, *(weak * 2)), "checks").replace("9 of 9", "3 of 9")
