"""The report as HTML: nothing of a stranger's is markup, and every word is there without colour."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from grader.learning.hints.types import Hints, Rung
from grader.learning.notebook.aids import aids_html
from grader.learning.pictures.types import TracedHeatmap
from grader.show.html import details_html, markdown_html, scoreboard_html, verdict_html
from grader.types.report import CheckResult, Diagnosis, Outcome, Report, StageResult, Status

EVIL = '<script>alert(1)</script><img src=x onerror="f()">\x1b[31m\u202e&amp;'
HINTS = Hints(
    "Folding",
    tuple(Rung(f"Step {n}", f"Do `step` {n}.\n\n    code {n}") for n in range(1, 6)),
    {
        "Learnt": "Sheets have **two** sides.",
        "Why it is written this way": "It is short.",
        "Read next": "A book.",
    },
)
DIAGNOSIS = Diagnosis("upside_down", "You fold it upside down.", 3)


def check(
    outcome: Outcome = Outcome.FAILED,
    message: str = "wrong at 3",
    title: str = "It folds",
    diagnosis: Diagnosis | None = None,
) -> CheckResult:
    score = 2.0 if outcome is Outcome.PASSED else 0.0
    return CheckResult("fold.x", title, outcome, score, 2.0, message, diagnosis)


def stage(status: Status, *checks: CheckResult, slug: str = "fold") -> StageResult:
    score = sum(check.score for check in checks)
    return StageResult(slug, "Fold a sheet", status, score, 4.0, False, checks)


def report(*stages: StageResult) -> Report:
    score = sum(stage.score for stage in stages)
    return Report("Birds", "this notebook", "cpu", score, 10.0, 0.0, stages, ("seed 7",))


class Reader(HTMLParser):
    """The text of a page, its tags, and whether every tag is closed in its turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[str] = []
        self.opened: list[str] = []
        self.deepest = 0
        self.feed(html)
        self.close()
        assert self.opened == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert {name for name, _ in attrs} <= {"style", "scope", "class", "href"}
        if tag != "br":
            self.opened.append(tag)
        self.deepest = max(self.deepest, self.opened.count("details"))

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(
    *stages: StageResult, hints: Hints | None = None, heatmap: TracedHeatmap | None = None
) -> Reader:
    beside = {stage.slug: aids_html(stage, hints, heatmap) for stage in stages}
    return Reader(verdict_html(report(*stages), beside))


def test_a_stage_says_its_name_standing_and_points_in_words() -> None:
    text = read(stage(Status.PASSED, check(Outcome.PASSED), check(Outcome.PASSED))).text
    assert "Fold a sheet fold: passed, 4 / 4 points" in text
    assert "seed 7" in text


def test_a_failing_check_shows_title_points_message_and_what_is_likely() -> None:
    page = read(stage(Status.FAILED, check(Outcome.PASSED), check(diagnosis=DIAGNOSIS)))
    assert "1 of 2 checks does not pass yet." in page.text
    assert "It folds (-2 points)" in page.text
    assert "wrong at 3" in page.text and "pre" in page.tags
    assert "Likely: You fold it upside down." in page.text


def test_checks_with_one_reason_share_it_and_one_diagnosis_is_told_once() -> None:
    same = [check(diagnosis=DIAGNOSIS, title=f"Title {n}") for n in range(3)]
    other = check(message="wrong at 4", diagnosis=DIAGNOSIS)
    text = read(stage(Status.FAILED, *same, other)).text
    assert text.count("wrong at 3") == 1 and text.count("You fold it upside down.") == 1
    assert "Title 2" in text and "wrong at 4" not in text
    others = text.index("3 more checks fail for the same reason (-6)")
    assert text.index("Title 0") < text.index("wrong at 3") < others < text.index("Title 1")


def test_code_that_cannot_be_imported_says_so_and_not_what_checks_are_called() -> None:
    checks = (check(message="fold.py cannot be imported. SyntaxError"), check(title="It bends"))
    checks = (checks[0], replace(checks[1], message=checks[0].message))
    said = read(stage(Status.FAILED, *checks)).text
    assert "2 checks could not run (-4 points)" in said and "SyntaxError" in said
    assert "It folds" not in said and "It bends" not in said


def test_many_reasons_are_shown_in_part_and_the_others_can_be_opened() -> None:
    page = read(stage(Status.FAILED, *(check(message=f"wrong at {n}") for n in range(6))))
    assert "3 more failing checks" in page.text and "wrong at 5" in page.text
    assert page.tags.count("details") == 1


@pytest.mark.parametrize("status", list(Status))
def test_nothing_of_a_strangers_is_markup(status: Status) -> None:
    bad = check(title=EVIL, message=EVIL, diagnosis=Diagnosis("x", EVIL))
    evil = replace(stage(status, bad), title=EVIL, slug=EVIL, printed=EVIL, caused_by=None)
    reports = (report(evil), replace(report(evil, evil), notes=(EVIL,), course=EVIL))
    html = "".join(verdict_html(one, {}) for one in reports)
    page = Reader(html)
    assert {"script", "img"}.isdisjoint(page.tags)
    assert "\x1b" not in html and "\u202e" not in html
    assert "&amp;amp;" in html  # what was escaped once by a stranger is shown as they wrote it


def test_a_long_message_is_cut() -> None:
    html = verdict_html(report(stage(Status.FAILED, check(message="line\n" * 5000))), {})
    assert len(html) < 3000 and "... and more" in html
    assert len(verdict_html(report(stage(Status.FAILED, check(message="x" * 10**6))), {})) < 9000


def test_hints_are_a_ladder_of_which_each_rung_opens_the_next() -> None:
    page = read(stage(Status.FAILED, check()), hints=HINTS)
    assert page.deepest == 5
    order = [page.text.index(f"({n} of 5)") for n in range(1, 6)]
    assert order == sorted(order)
    assert "Sheets have" not in page.text


def test_what_opens_has_its_mark_in_the_classic_notebook_too() -> None:
    assert 'style="display:list-item;' in details_html("A hint", "Try it.")


def test_an_answer_opens_below_its_question_and_the_next_hint_below_that() -> None:
    asks = Rung("Step 2?", "Try *it*.", "So, `twice`.")
    hints = replace(HINTS, rungs=(HINTS.rungs[0], asks, *HINTS.rungs[2:]))
    page = read(stage(Status.FAILED, check()), hints=hints)
    assert page.deepest == 6
    parts = ("(2 of 5)", "Step 2?", "Try", "The answer", "So, twice", "(3 of 5)")
    order = [page.text.index(part) for part in parts]
    assert order == sorted(order) and page.text.count("The answer") == 1


def test_the_ladder_begins_with_the_hint_for_the_mistake() -> None:
    bad = check(diagnosis=DIAGNOSIS)
    page = read(stage(Status.FAILED, check(), bad), hints=HINTS)
    assert "A hint for this failure (3 of 5)" in page.text
    order = [page.text.index(f"({n} of 5)") for n in (3, 4, 5, 1, 2)]
    assert order == sorted(order)
    assert page.deepest == 3


@pytest.mark.parametrize("hint", [None, 0, 9])
def test_a_diagnosis_without_a_rung_of_its_own_begins_with_the_first(hint: int | None) -> None:
    bad = check(diagnosis=replace(DIAGNOSIS, hint=hint))
    assert "A hint (1 of 5)" in read(stage(Status.FAILED, bad), hints=HINTS).text


def test_success_tells_what_was_learnt_and_shows_no_hint() -> None:
    text = read(stage(Status.PASSED, check(Outcome.PASSED)), hints=HINTS).text
    assert "Sheets have two sides." in text and "It is short." in text and "A book." in text
    assert "of 5)" not in text


def test_an_untouched_stub_is_told_what_to_do_and_offered_hints() -> None:
    text = read(stage(Status.NOT_STARTED, check(message="Not written yet")), hints=HINTS).text
    assert "not started, 0 / 4 points" in text and "raise NotImplementedError" in text
    assert "Not written yet" not in text and "(1 of 5)" in text


def test_where_code_is_written_that_does_not_count_is_said_once() -> None:
    elsewhere = replace(stage(Status.NOT_STARTED), why_not_started="It is in another cell.")
    said = replace(report(elsewhere), notes=("seed 7", "fold: It is in another cell."))
    text = Reader(verdict_html(said, {})).text
    assert text.count("another cell") == 1 and "seed 7" in text
    board = replace(said, stages=(elsewhere, stage(Status.PASSED, slug="wings")))
    assert Reader(verdict_html(board, {})).text.count("another cell") == 1


def test_a_stage_that_waits_names_the_one_to_mend() -> None:
    waits = replace(stage(Status.FAILED, check(), slug="wings"), caused_by="fold")
    page = read(stage(Status.FAILED, check()), waits, hints=HINTS)
    assert "↑ Fold a sheet wings: waiting" in page.text
    assert "wings fails because fold does. Fix that one first." in page.text
    written = read(stage(Status.NOT_STARTED), waits)
    assert "which is not written yet. Write that one first." in written.text
    assert page.text.count("A hint") == 1


@pytest.mark.parametrize(
    "outcome, words", [(Outcome.ERROR, "not your mistake"), (Outcome.TIMEOUT, "ran out of time")]
)
def test_the_graders_own_failure_and_lack_of_time_say_so(outcome: Outcome, words: str) -> None:
    assert words in read(stage(Status.FAILED, check(outcome))).text


def test_several_stages_have_a_scoreboard_and_a_sum() -> None:
    page = read(stage(Status.PASSED, check(Outcome.PASSED)), stage(Status.FAILED, check()))
    assert "table" in page.tags and "Total: 2 of 10 points" in page.text
    assert "table" not in read(stage(Status.PASSED, check(Outcome.PASSED))).tags


def test_of_several_stages_only_those_that_fail_are_explained() -> None:
    passed = stage(Status.PASSED, check(Outcome.PASSED), slug="first")
    page = read(passed, stage(Status.FAILED, check()), hints=HINTS)
    assert page.text.count("Fold a sheet") == 3 and "wrong at 3" in page.text
    assert "Sheets have" not in page.text and "(1 of 5)" in page.text


def test_a_pages_scoreboard_leads_to_its_stages_and_a_notebooks_has_no_links() -> None:
    evil = replace(stage(Status.PASSED, check(Outcome.PASSED), slug="wi&gs"), title=EVIL)
    both = report(stage(Status.FAILED, check()), evil)
    html = scoreboard_html(both, {"fold": "halve", "wi&gs": "wi&gs"})
    assert re.findall(r'<a href="(.*?)">', html) == ["#halve", "#wi&amp;gs"]
    assert {"script", "img"}.isdisjoint(Reader(html).tags)
    assert "href" not in verdict_html(both, {})


def test_what_the_code_printed_and_the_heatmap_can_be_opened() -> None:
    picture = TracedHeatmap("Folds", (("left", ((0.25, 0.75),)),), ("a",), ("b", "c"), "r", "c")
    passed = replace(stage(Status.PASSED, check(Outcome.PASSED)), printed="hello <b>")
    page = read(passed, heatmap=picture)
    assert "Your code printed" in page.text and "hello <b>" in page.text
    assert "Your code on an example" in page.text and "75" in page.text


def test_no_text_has_a_colour_or_background_of_its_own() -> None:
    failed = stage(Status.FAILED, check(diagnosis=DIAGNOSIS))
    html = verdict_html(report(failed), {"fold": aids_html(failed, HINTS)})
    assert re.search(r"[^-]color:|background", html) is None


@pytest.mark.parametrize(
    "text, html",
    [
        ("one\ntwo\n\nthree", "<p>one two</p><p>three</p>"),
        ("a `b < c` **d**", "<p>a <code>b &lt; c</code> <strong>d</strong></p>"),
        ("- one\n- two\n  more\n\nthree", "<ul><li>one</li><li>two more</li></ul><p>three</p>"),
        ("text:\n\n    x = 1\n\n      y\n\nend", "<p>text:</p><PRE>x = 1\n\n  y</pre><p>end</p>"),
        ("```\na\n\n  <b>\n```\nend", "<PRE>a\n\n  &lt;b&gt;</pre><p>end</p>"),
        ("# Title\ntext", "<p><strong>Title</strong></p><p>text</p>"),
        ("a_b * c * <i>", "<p>a_b * c * &lt;i&gt;</p>"),
        ("| a | b |\n| 1 | 2 |", "<PRE>| a | b |\n| 1 | 2 |</pre>"),
        ("", ""),
    ],
)
def test_simple_markdown(text: str, html: str) -> None:
    assert re.sub(r"<pre style=.*?>", "<PRE>", markdown_html(text)) == html


def test_a_verdict_on_visible_checks_says_that_more_run() -> None:
    seen = replace(stage(Status.PASSED, check(Outcome.PASSED)), is_partial=True)
    unseen = replace(seen, slug="kite", checks=())
    report = Report("Birds", "this notebook", "cpu", 2.0, 2.0, 0.0, (seen, unseen))
    both = verdict_html(report, {})
    assert "visible ok" in both and "unchecked" in both and "passed" not in both
    assert "These are your visible checks; more checks run on submission." in both
    alone = verdict_html(replace(report, stages=(seen,)), {})
    assert "Your visible checks pass; more checks run on submission." in alone
    assert "passed" not in alone
    alone = verdict_html(replace(report, stages=(unseen,)), {})
    assert "Its checks run on submission; none is visible." in alone


def test_an_earlier_stage_may_be_the_cause() -> None:
    failed = replace(stage(Status.FAILED, check()), is_partial=True, perhaps="kite")
    shown = verdict_html(Report("Birds", "nb", "cpu", 0.0, 2.0, 0.0, (failed,)), {})
    assert "It uses <strong>kite</strong>, which does not pass yet: that may be why" in shown
    assert "wrong at 3" in shown
