"""The notebook of a course: what is in it, and that untouched it is a submission of stubs."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from grader.learning.notebook.builder import cell_code, notebook
from grader.learning.predict.questions import read_predictions
from grader.read.stubs import read_stub
from grader.show.html import SUMMARY
from grader.types.course import Course
from tests.kit.support.checkout import COURSE, TINY


def built(course: Course, answers: dict[str, str] | None = None) -> dict[str, Any]:
    stubs = {stage.slug: read_stub(stage) for stage in course.stages}
    asked = {stage.slug: read_predictions(stage) for stage in course.stages}
    questions = {k: v for k, v in asked.items() if v is not None}
    figures = {s.slug: s.figure_file.read_bytes() for s in course.stages if s.figure_file.is_file()}
    return notebook(course, stubs, questions, figures, answers)


def cell(data: dict[str, Any], name: str) -> str:
    (found,) = (cell for cell in data["cells"] if cell["id"] == name)
    return "".join(found["source"])


@pytest.mark.parametrize("course", [COURSE, TINY], ids=["own", "tiny"])
def test_it_is_a_notebook_of_format_4_5_for_the_python3_kernel(course: Course) -> None:
    nbformat = pytest.importorskip("nbformat")
    read = nbformat.reads(json.dumps(built(course)), as_version=4)
    nbformat.validate(read)
    assert read.metadata.kernelspec.name == "python3"


def test_every_stage_has_its_text_questions_a_graded_cell_and_an_empty_one() -> None:
    data = built(COURSE)
    for stage in COURSE.stages:
        own = [c for c in data["cells"] if c["metadata"].get("grader") == {"stage": stage.slug}]
        parts = ["text", "predict", "code", "try"]
        assert [c["id"] for c in own] == [f"{stage.slug}-{part}" for part in parts]
        text = "".join(own[0]["source"])
        unit = "bonus points" if stage.bonus else "points"
        assert stage.title in text and f"{stage.points:g} {unit}" in text
        assert "".join(own[2]["source"]).startswith(f"%%grade {stage.slug}\n")
        assert own[3]["source"] == []
    assert cell(data, "start") == "%load_ext grader"


def test_an_exams_notebook_promises_no_hints() -> None:
    exam = replace(TINY, stages=tuple(replace(stage, is_exam=True) for stage in TINY.stages))
    for course, end in ((TINY, "."), (exam, ", unless this is an exam.")):
        assert f"hints to open when\n   you are stuck{end}" in cell(built(course), "title")


def test_the_code_has_neither_the_text_again_nor_imports_from_other_stages() -> None:
    code = cell(built(COURSE), "multi_head_attention-code")
    assert "Your five stages become" not in code
    assert "from concat_heads" not in code and "from torch import nn" in code
    assert "raise NotImplementedError" in code


def test_docstrings_are_text_above_the_cell_and_one_line_in_it() -> None:
    data = built(COURSE)
    code, text = (cell(data, f"multi_head_attention-{part}") for part in ("code", "text"))
    assert code.count('"""') == 6 and ">>>" not in code
    assert "### `MultiHeadAttention.forward`" in text
    assert "\n    >>> " in text and "\n>>> " not in text
    assert "- `ValueError`: " in text and "Raises:\n" in text


def test_a_docstring_that_the_text_does_not_tell_stays() -> None:
    stub = 'def smooth():\n    """Smooth.\n\n    As told.\n    """\n'
    own = stub.replace("As told", "As I understand it")
    raw = stub.replace("Smooth.", 'Smooth "it".')
    assert cell_code(stub, TINY, stub) == 'def smooth():\n    """Smooth."""'
    assert cell_code(own, TINY, stub) == own.rstrip()
    assert cell_code(raw, TINY, raw) == raw.rstrip()


def test_a_formula_is_typeset() -> None:
    assert "$$\nS = \\frac{Q K^\\top}{\\sqrt{d_k}}\n$$" in cell(built(COURSE), "scaled_scores-text")
    assert "$$" not in cell(built(TINY), "smooth-text")


def test_every_text_ends_with_its_figure() -> None:
    for found in built(COURSE)["cells"]:
        if found["id"].endswith("-text") and found["id"] not in ("total-text", "finale-text"):
            assert "".join(found["source"]).endswith("](attachment:figure.png)")
            picture = base64.b64decode(found["attachments"]["figure.png"]["image/png"])
            assert picture.startswith(b"\x89PNG") and len(picture) < 30_000
    assert not any("attachments" in found for found in built(TINY)["cells"])


def test_a_question_shows_its_answer_only_when_it_is_opened() -> None:
    text = cell(built(COURSE), "masking-predict")
    question, _, rest = text.partition(f"<details>{SUMMARY}The answer</summary>")
    assert "How many pairs are left?" in question and "15" not in question
    assert rest.strip().startswith("**15**")
    assert text.count("<details>") == text.count("</details>") == text.count("list-item") == 5
    assert "- a) token 0 alone" in text


def test_a_stage_without_a_docstring_or_questions_is_no_trouble() -> None:
    stubs = {stage.slug: "def f():\n    pass\n" for stage in TINY.stages}
    data = notebook(TINY, stubs, {}, {})
    assert cell(data, "smooth-text").startswith("## Average again")
    assert cell(data, "smooth-code") == "%%grade smooth\ndef f():\n    pass"


def test_answers_stand_in_the_place_of_stubs() -> None:
    data = built(
        TINY, {"smooth": '"""My own."""\nfrom moving_average import moving_average\nx=1\n'}
    )
    assert cell(data, "smooth-code") == "%%grade smooth\nx=1"
    assert "NotImplementedError" in cell(data, "roughness-code")
    assert "My own" not in cell(data, "smooth-text")


@pytest.mark.parametrize(
    "source, code",
    [
        ("x = 1\n", "x = 1"),
        ("x = 1\r\ny = 2\r\n", "x = 1\ny = 2"),
        ('"""Text."""\n\n\nx = 1\n', "x = 1"),
        ("from smooth import (\n    smooth,\n)\nimport math\n", "import math"),
        ("from .smooth import smooth\n", "from .smooth import smooth"),
        ("import math\n\nfrom smooth import smooth\n\n\n\nx = 1\n", "import math\n\n\nx = 1"),
        ("def broken(:\n", "def broken(:"),
        ("def f():\n    from smooth import smooth\n", "def f():\n    from smooth import smooth"),
    ],
)
def test_the_code_of_a_file(source: str, code: str) -> None:
    assert cell_code(source, TINY) == code


def test_nothing_in_an_authors_text_is_a_tag_but_code_is_left_alone() -> None:
    stub = '"""Title.\n\nA <b> and 1 < 2.\n\n    x <b> y\n"""\n'
    data = notebook(TINY, {stage.slug: stub for stage in TINY.stages}, {}, {})
    text = cell(data, "smooth-text")
    assert "A &lt;b> and 1 < 2." in text and "    x <b> y" in text


def test_ids_are_unique_and_short_enough() -> None:
    long = replace(TINY.stages[0], slug="s" * 80)
    course = replace(TINY, stages=(long, *TINY.stages[1:]))
    data = notebook(course, {stage.slug: "" for stage in course.stages}, {}, {})
    names = [c["id"] for c in data["cells"]]
    assert len(set(names)) == len(names) and max(map(len, names)) <= 64


def test_a_course_with_a_finale_ends_with_it() -> None:
    stubs = {stage.slug: read_stub(stage) for stage in TINY.stages}
    more = notebook(TINY, stubs, {}, {}, has_finale=True)
    assert more["cells"][:-2] == notebook(TINY, stubs, {}, {})["cells"]
    assert cell(more, "finale") == "# %finale"
