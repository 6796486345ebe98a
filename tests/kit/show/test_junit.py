"""The report as JUnit XML, compared with the schema that Jenkins' xunit plugin publishes."""

import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from grader.show.junit import junit
from grader.types.report import CheckResult, Diagnosis, Outcome, Report, StageResult, Status

# What junit-10.xsd of https://github.com/jenkinsci/xunit-plugin says of an element: the attributes
# that it needs and those that it may have, the elements that it holds, and whether it holds text.
SUITE = "group time skipped timestamp hostname id package file log url version"
WHY = ("", "type message", "", True)
SCHEMA = {
    "testsuites": ("", "name time tests failures errors", "testsuite", False),
    "testsuite": (
        *("name tests failures errors", SUITE),
        *("testsuite properties testcase system-out system-err", False),
    ),
    "properties": ("", "", "property", False),
    "property": ("name value", "", "", False),
    "testcase": ("name", "time classname group", "skipped error failure system-out", False),
    "failure": WHY,
    "error": WHY,
    "skipped": WHY,
    "system-out": ("", "", "", True),
}
TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]{0,3})?")  # that a suite takes


def violations(element: Element) -> Iterator[str]:
    """What the schema does not allow."""
    tag, given = element.tag, element.attrib
    if tag not in SCHEMA:
        yield f"<{tag}> is not an element of the schema"
        return
    needed, more, children, holds_text = SCHEMA[tag]
    known = {*needed.split(), *more.split()}
    yield from (f"<{tag}> has no attribute {name}" for name in given if name not in known)
    yield from (f"<{tag}> needs {name}" for name in needed.split() if name not in given)
    if tag.startswith("testsuite") and not TIME.fullmatch(given.get("time", "")):
        yield f"time={given['time']!r} is not like {TIME.pattern}"
    yield from (f"<{tag}> holds <{c.tag}>" for c in element if c.tag not in children.split())
    if not holds_text and (element.text or "").strip():
        yield f"<{tag}> holds text"
    for child in element:
        yield from violations(child)


def check(name: str, outcome: Outcome, score: float = 0, **more: object) -> CheckResult:
    return CheckResult(f"fold.{name}", f"It can {name}", outcome, score, 2, **more)


def stage(*checks: CheckResult, status: Status = Status.FAILED, **more: object) -> StageResult:
    return StageResult("fold", "Fold", status, 2, 10, False, checks, **more)


def report(*stages: StageResult) -> Report:
    return Report("paper-birds", "mine", "cpu", 2, 10, 0, stages)


EVERY = report(
    stage(
        check("sit", Outcome.PASSED, 2, seconds=1234.5678),
        check(
            "fly", Outcome.FAILED, message="fell\nfrom 3", diagnosis=Diagnosis("x", "No wings", 2)
        ),
        check("sing", Outcome.TIMEOUT, message="too slow"),
        check("see", Outcome.SKIPPED, message="it is dark"),
        check("eat", Outcome.ERROR, message="KeyError: 'corn'"),
        printed="tweet\n",
    )
)


def written(of: Report) -> Element:
    text = junit(of)
    root = ElementTree.fromstring(text.encode("utf-8"))
    assert list(violations(root)) == []
    return root


def test_every_outcome_has_its_element() -> None:
    suite = written(EVERY)[0]
    found = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert found == {
        "sit": [],
        "fly": ["failure"],
        "sing": ["failure"],
        "see": ["skipped"],
        "eat": ["error"],
    }
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped", "time")]
    assert counts == ["5", "2", "1", "1", "1234.568"]
    failure = suite.find("testcase/failure")
    assert failure is not None and failure.get("message") == "fell"
    assert failure.text == "It can fly\n\nfell\nfrom 3\n\nLikely: No wings"
    assert suite.findtext("system-out") == "tweet\n"


def test_points_are_properties_of_the_suite() -> None:
    properties = {p.get("name"): p.get("value") for p in written(EVERY).iter("property")}
    assert properties["points"] == "2/10" and properties["points.fold.sit"] == "2/2"
    assert properties["status"] == "failed" and "caused_by" not in properties


def test_the_whole_has_the_sums() -> None:
    root = written(report(*EVERY.stages, stage(check("sit", Outcome.PASSED))))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("6", "2", "1")
    assert root.get("name") == "paper-birds"


def test_what_is_not_begun_is_skipped_and_not_red() -> None:
    unwritten = check("fly", Outcome.FAILED, message="Not written yet")
    (case,) = written(report(stage(unwritten, status=Status.NOT_STARTED))).iter("testcase")
    assert [(child.tag, child.get("type")) for child in case] == [("skipped", "not_started")]


def test_a_stage_whose_checks_cannot_be_run_is_an_error() -> None:
    root = written(report(stage(status=Status.ERROR)))
    assert root.get("errors") == "1" and root.find(".//error") is not None


@pytest.mark.parametrize(
    "text", ["\x00\x1b[31m", "\ufffe\uffff", "\ud800", "]]><b>&amp;\"'", "\r\n\ttab", "\U0010ffff"]
)
def test_no_letter_breaks_the_file(text: str) -> None:
    broken = check("fly", Outcome.FAILED, message=f"a{text}b", diagnosis=Diagnosis("x", text))
    root = written(report(stage(broken, printed=text)))
    (failure,) = root.iter("failure")
    assert failure.text is not None and "Likely: " in failure.text


@pytest.mark.parametrize(
    "xml, fault",
    [
        ("<testsuites><testcase name='a'/></testsuites>", "<testsuites> holds <testcase>"),
        ("<testsuite name='a' tests='1' failures='0'/>", "<testsuite> needs errors"),
        ("<testcase name='a' points='1'/>", "<testcase> has no attribute points"),
        ("<testcase name='a'><properties/></testcase>", "<testcase> holds <properties>"),
        ("<testsuites time='1e-05'/>", "time='1e-05' is not like"),
        ("<testcase name='a'>b</testcase>", "<testcase> holds text"),
    ],
)
def test_the_search_for_violations_finds_them(xml: str, fault: str) -> None:
    assert next(violations(ElementTree.fromstring(xml))).startswith(fault)
