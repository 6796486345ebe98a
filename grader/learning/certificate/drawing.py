"""Draws a certificate with matplotlib. Imported only to write one."""

from __future__ import annotations

import re
import textwrap

from grader.learning.certificate.screen import Certificate, result, way
from grader.learning.pictures.drawing import Figure, draw_curves, draw_panel, literal
from grader.show.screen import amount
from grader.tracing import Curves

_SIZE = (11.7, 8.3)  # inches: A4
_INK, _QUIET = "#222222", "#666666"
_LINE = 0.026  # of the height
_SENTENCE = 62  # characters


def certificate_figure(certificate: Certificate, *, with_way: bool) -> Figure:
    """One page: what was passed on the left, the pictures of the learner's own code on the right.

    `with_way` adds attempts and hints.
    """
    drawn = Figure(figsize=_SIZE)
    shown = certificate.shown

    def write(x: float, y: float, text: str, size: float = 11, colour: str = _INK) -> None:
        drawn.text(x, y, literal(text), fontsize=size, color=colour, va="top")

    write(0.06, 0.94, certificate.course, 22)
    by = f"{certificate.name}, {certificate.date}" if certificate.name else certificate.date
    write(0.06, 0.875, by, 13)
    write(0.06, 0.82, result(certificate), 13, "#00603f")
    y, step = 0.76, min(0.036, 0.52 / len(certificate.passed))
    for stage, known in certificate.passed:
        write(0.06, y, amount(known.score), 320 * step)
        write(0.09, y, stage.title, 320 * step)
        if with_way:
            write(0.27, y, way(known), 220 * step, _QUIET)
        y -= step
    sentence = next((part for part in shown.parts if isinstance(part, str)), "")
    for line in textwrap.wrap(re.sub(r"[*`]", "", sentence), _SENTENCE):
        y -= _LINE
        write(0.06, y, line, 9)
    write(0.06, 0.05, "Issued by the course's grader on the learner's own machine.", 8, _QUIET)
    curves = [part for part in shown.parts if isinstance(part, Curves)]
    if curves:
        draw_curves(drawn.add_axes((0.56, 0.56, 0.38, 0.30)), curves[0])
    if shown.heatmap is not None:
        for number, panel in enumerate(shown.heatmap.panels[:2]):
            axes = drawn.add_axes((0.56 + 0.21 * number, 0.10, 0.19, 0.34))
            draw_panel(axes, shown.heatmap, panel)
            if number:  # the first panel names the rows
                axes.set_yticks([])
                axes.set_ylabel("")
    return drawn


def description(certificate: Certificate) -> str:
    """The certificate in words, for screen readers."""
    stages = ", ".join(stage.title for stage, _ in certificate.passed)
    return f"{certificate.course}. {result(certificate)} {stages}. {certificate.date}."
