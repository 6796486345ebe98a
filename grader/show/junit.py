"""The report as JUnit XML for Jenkins and other build servers. Pure.

It follows junit-10.xsd of https://github.com/jenkinsci/xunit-plugin, as pytest does: a suite for
each stage, a case for each check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree

from grader.show.screen import amount
from grader.types.report import CheckResult, Outcome, Report, StageResult, Status
from grader.types.text import safe

# Characters that `safe` keeps but XML 1.0 forbids: https://www.w3.org/TR/xml/#charsets
_NOT_XML = re.compile("[\ufffe\uffff]")


def junit(report: Report) -> str:
    """The report as the text of an XML file.

    A check that failed or timed out is a failure; one that the grader could not run is an error.
    Checks of a stage that is not started are skipped. Points are properties of the suite.
    """
    suites = ElementTree.Element("testsuites", name=_text(report.course))
    totals = {"tests": 0, "failures": 0, "errors": 0}
    for stage in report.stages:
        suite = _suite(stage, report)
        for name in totals:
            totals[name] += int(suite.get(name, "0"))
        suites.append(suite)
    for name, total in totals.items():
        suites.set(name, str(total))
    suites.set("time", _seconds(check for stage in report.stages for check in stage.checks))
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _suite(stage: StageResult, report: Report) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=_text(stage.slug))
    properties = ElementTree.SubElement(suite, "properties")
    facts = {
        "title": stage.title,
        "status": stage.status.value,
        "bonus": str(stage.bonus).lower(),
        "points": f"{amount(stage.score)}/{amount(stage.max_score)}",
        "caused_by": stage.caused_by or "",
        "seed": report.seed,
        "version": report.version,
        "unlocked": " ".join(report.unlocked),
    }
    facts |= {
        f"points.{check.id}": f"{amount(check.score)}/{amount(check.max_score)}"
        for check in stage.checks
    }
    for name, value in facts.items():
        if value:
            ElementTree.SubElement(properties, "property", name=_text(name), value=_text(value))
    cases = [_case(stage, check) for check in stage.checks]
    if stage.status is Status.ERROR and not cases:  # the checks themselves could not be read
        case = ElementTree.Element("testcase", classname=_text(stage.slug), name="checks")
        ElementTree.SubElement(case, "error", type="error", message="The checks could not be run")
        cases.append(case)
    suite.extend(cases)
    suite.set("tests", str(len(cases)))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("time", _seconds(stage.checks))
    if stage.printed.strip():
        ElementTree.SubElement(suite, "system-out").text = _text(stage.printed)
    return suite


def _case(stage: StageResult, check: CheckResult) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        classname=_text(stage.slug),
        name=_text(check.id.removeprefix(f"{stage.slug}.")),
        time=_seconds([check]),
    )
    if check.outcome is Outcome.PASSED:
        return case
    tag = {Outcome.SKIPPED: "skipped", Outcome.ERROR: "error"}.get(check.outcome, "failure")
    kind = check.outcome.value
    if stage.status is Status.NOT_STARTED and tag == "failure":
        tag, kind = "skipped", "not_started"
    lines = [check.title, check.message]
    if check.diagnosis is not None:
        lines.append(f"{check.diagnosis.opening}{check.diagnosis.text}")
    first = check.message.strip().split("\n")[0] or check.title
    result = ElementTree.SubElement(case, tag, type=kind, message=_text(first))
    result.text = _text("\n\n".join(filter(None, lines)))
    return case


def _seconds(checks: Iterable[CheckResult]) -> str:
    """The sum with three decimals, the most that the schema allows."""
    return f"{sum(check.seconds for check in checks):.3f}"


def _text(text: str) -> str:
    return _NOT_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", safe(text))
