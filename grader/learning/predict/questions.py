"""Reads hints/predictions/<slug>.md into Predictions, and typed text into answers.

`read_predictions` reads the disk, all else is pure. The file has a title and, for each question, a
heading, text, maybe choices, one answer and an explanation:

    # The stage's title

    ## 1. What comes out?
    Text in simple markdown.
    - a: the first choice, if it is a question with choices
    - b: the second

    Answer: choice b            or:  Answer: shape 2, 3, 4  /  Answer: number 0.5
    Because: two to four lines that explain the answer.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grader.learning.predict.types import Answer, Predictions, Question
from grader.read.faults import author_text
from grader.types.course import Stage
from grader.types.errors import CourseError
from grader.types.text import trimmed

FEWEST, MOST = 3, 5
_LETTERS = "abcdef"  # must not include q, which stops
_LONGEST = 80  # characters of an answer; anything longer is not one

_TITLE = re.compile(r"# +(\S.*?) *")
_HEADING = re.compile(r"(\d+)\. *(\S.*)")
_CHOICE = re.compile(r"- ([A-Za-z]): *(.*)")
_ANSWER = re.compile(r"Answer: *(\w*) *(.*)")
_BECAUSE = "Because:"


def read_predictions(stage: Stage) -> Predictions | None:
    """The questions of `stage`, None if it has no file. Raises CourseError naming the fault."""
    file = stage.predictions_file
    if not file.exists():
        return None
    place = stage.place(file)
    return parse_predictions(author_text(file, place), place)


# --- the author's file -------------------------------------------------------------------------


def parse_predictions(text: str, place: str) -> Predictions:
    """The questions in `text`; `place` is the file's name in errors. Raises CourseError."""
    lines = text.rstrip().splitlines()
    title = _TITLE.fullmatch(lines[0]) if lines else None
    if title is None:
        raise CourseError(f"{place}:1: the first line must be '# ' and the stage's title")
    starts = [number for number, line in enumerate(lines) if line.startswith("## ")]
    for number, line in enumerate(lines[1 : starts[0] if starts else None], start=2):
        if line.strip():
            raise CourseError(f"{place}:{number}: text before question 1: start with '## 1. ...'")
    if not FEWEST <= len(starts) <= MOST:
        raise CourseError(f"{place}: has {len(starts)} questions, not {FEWEST} to {MOST}")
    questions = []
    for count, (start, end) in enumerate(zip(starts, [*starts[1:], len(lines)], strict=True), 1):
        at = f"{place}:{start + 1}"
        heading = _HEADING.fullmatch(lines[start][2:].strip())
        if heading is None or heading[1] != str(count):
            raise CourseError(f"{at}: '{lines[start]}' where '## {count}. ...' should be")
        questions.append(_question(heading[2], lines[start + 1 : end], start + 2, place))
    return Predictions(title[1], tuple(questions))


def _question(heading: str, lines: Sequence[str], first: int, place: str) -> Question:
    """The question under `heading`, whose lines start at line `first` of the file."""
    text: list[str] = []
    choices: dict[str, str] = {}
    answer: tuple[str, str, str] | None = None
    because: list[str] | None = None
    for number, line in enumerate(lines, start=first):
        at = f"{place}:{number}"
        choice = _CHOICE.fullmatch(line) if answer is None else None
        if (found := _ANSWER.fullmatch(line)) is not None:
            if answer is not None:
                raise CourseError(f"{at}: question '{heading}' has an answer already")
            answer = (at, found[1], found[2])
        elif line.startswith(_BECAUSE):
            if answer is None or because is not None:
                raise CourseError(f"{at}: '{_BECAUSE}' belongs once after 'Answer:'")
            because = [line.removeprefix(_BECAUSE).strip()]
        elif because is not None:
            because.append(line)
        elif choice is not None:
            letter = _LETTERS[len(choices) : len(choices) + 1]
            if choice[1] != letter:
                wanted = f"write '- {letter}:'" if letter else f"{len(_LETTERS)} are the most"
                raise CourseError(f"{at}: choice '{choice[1]}' is out of order: {wanted}")
            if not choice[2]:
                raise CourseError(f"{at}: choice '{letter}' says nothing")
            choices[letter] = choice[2]
        elif not line.strip():
            text.append("")
        elif answer is not None:
            raise CourseError(f"{at}: '{_BECAUSE}' should be here, after 'Answer:'")
        elif not choices:
            text.append(line)
        elif line.startswith("  "):  # a choice goes on
            choices[letter] += f" {line.strip()}"
        else:
            raise CourseError(f"{at}: text after the choices: move it above them, or indent it")
    at = f"{place}:{first - 1}"
    if not any(text):
        raise CourseError(f"{at}: '{heading}' has no text")
    if answer is None:
        raise CourseError(f"{at}: question '{heading}' has no line 'Answer: ...'")
    if because is None or not any(line.strip() for line in because):
        raise CourseError(f"{at}: question '{heading}' does not say why: add '{_BECAUSE} ...'")
    if len(choices) == 1:
        raise CourseError(f"{at}: question '{heading}' has only one choice")
    return Question(heading, trimmed(text), choices, _answer(*answer, choices), trimmed(because))


def _answer(at: str, kind: str, words: str, choices: Mapping[str, str]) -> Answer:
    """The author's answer. Raises CourseError."""
    if (kind == "choice") is not bool(choices):
        fault = "has choices, so write 'choice b'" if choices else "has no choices '- a: ...'"
        raise CourseError(f"{at}: 'Answer: {kind}', but the question {fault}")
    examples = {"shape": "2, 3, 4", "number": "0.5", "choice": " or ".join(choices)}
    if kind not in examples:
        raise CourseError(f"{at}: start the answer with shape, number or choice, not '{kind}'")
    found = parse_answer(kind, words, choices)
    if found is None:
        raise CourseError(f"{at}: '{words}' is not a {kind}: write it like {examples[kind]}")
    return found


# --- what people type --------------------------------------------------------------------------

_NAMED = re.compile(r"\b[a-z]\w*\s*=\s*")  # B=2, T=3 as in the messages of a check
_SIZE = re.compile(r"^\s*(?:torch\.)?size\b")
_SHAPE = re.compile(r"[(\[{\s]*([0-9]+(?:(?:\s*[,;x*]\s*|\s+)[0-9]+)*)[\s,.)\]}]*")
_LETTER = re.compile(r"[(\[\s]*([a-z])[\s).:\]]*")
_SIGNS = str.maketrans(
    {"−": "-", "–": "-", "×": "*", "·": "*", "⁄": "/", "√": "sqrt", "∞": "inf", "^": "**"}
)
_LIBRARY = re.compile(r"\b(?:math|torch|numpy|np)\.")
_GROUPED = re.compile(r"(?<![\d.,_])[1-9]\d{0,2}(?:[,_ ]\d{3})+(?![\d,_])")  # 1,050,624
_PERCENT = re.compile(r"(?<=[\d.])\s*%")
_TIMES = re.compile(r"(?<=\d)\s*x\s*(?=\d)")
_ROOT = re.compile(r"sqrt\s*([\d.]+)")
_ARITHMETIC = re.compile(r"(?:\b(?:inf|nan|sqrt)\b|(?<=[\d.])e(?=[-+\d])|[\d.+*/()\s-])+", re.A)
_DECIMAL = re.compile(r"[-+]?\d*\.?(\d*)(%?)", re.A)
_OPERATIONS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def judge(question: Question, typed: str) -> bool | None:
    """Whether `typed` is the answer to `question`; None if it is not understood, so not wrong."""
    wanted = question.answer
    given = parse_answer(wanted.kind, typed, question.choices)
    if given is None:
        return None
    return _agrees(given, wanted) if wanted.kind == "number" else bool(given.value == wanted.value)


def parse_answer(kind: str, text: str, choices: Mapping[str, str]) -> Answer | None:
    """The answer of this kind that a text gives; None if it gives none."""
    short = text.strip().lower() if len(text) <= _LONGEST else ""
    if kind == "number":
        return _number(short)
    return _shape(short) if kind == "shape" else _choice(short, choices)


def _shape(text: str) -> Answer | None:
    """`(2, 3)`, `[2,3]`, `2 3`, `2x3`, `torch.Size([2, 3])` or `B=2, T=3`; None for all else."""
    text = _NAMED.sub("", _SIZE.sub("", text.replace("×", "x")))
    if _SHAPE.fullmatch(text) is None:
        return None
    sizes = tuple(map(int, re.findall("[0-9]+", text)))
    return Answer("shape", sizes, str(sizes))


def _number(text: str) -> Answer | None:
    """`0.5`, `.5`, `1/2`, `50%`, `1,050,624`, `4 * 8^2`, `sqrt(2)/2`, `-inf`; None for all else."""
    written = text.lstrip("=~≈ ").removesuffix(".")
    plain = _LIBRARY.sub("", written.translate(_SIGNS).replace("infinity", "inf"))
    plain = _GROUPED.sub(lambda found: re.sub("[,_ ]", "", found[0]), plain)
    plain = _ROOT.sub(r"sqrt(\1)", _TIMES.sub("*", _PERCENT.sub("/100", plain)))
    if _ARITHMETIC.fullmatch(plain) is None:
        return None
    try:
        return Answer("number", _value(ast.parse(plain.strip(), mode="eval").body), written)
    except (SyntaxError, ValueError, ArithmeticError):
        return None


def _choice(text: str, choices: Mapping[str, str]) -> Answer | None:
    """The letter of a choice in either case, with or without `)`; None for all else."""
    found = _LETTER.fullmatch(text)
    if found is None or found[1] not in choices:
        return None
    return Answer("choice", found[1], f"{found[1]})")


def _value(node: ast.expr) -> float:
    """The value of a formula, in floats so that powers are fast.

    Raises ValueError and ArithmeticError.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, ast.Name) and node.id in ("inf", "nan"):
        return float(node.id)
    if isinstance(node, ast.UnaryOp):
        return float(_OPERATIONS[type(node.op)](_value(node.operand)))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        value = _OPERATIONS[type(node.op)](_value(node.left), _value(node.right))
        if isinstance(value, float):  # a root of a negative number is complex
            return value
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "sqrt" and len(node.args) == 1:
        return math.sqrt(_value(node.args[0]))
    raise ValueError("not a formula")


def _agrees(given: Answer, wanted: Answer) -> bool:
    """Whether `given` is `wanted`: whole numbers exactly, others as people round them.

    That is within 1 %, or rounded correctly to the given digits if that is within 5 %.
    """
    a, b = float(given.value), float(wanted.value)
    if a == b or (math.isnan(a) and math.isnan(b)):
        return True
    if not (math.isfinite(a) and math.isfinite(b)):
        return False
    off = abs(a - b)
    if b.is_integer():
        return off <= 1e-9 * abs(b)
    rounding = off <= _half_a_unit(given.text) * (1 + 1e-9)
    return off <= 0.01 * abs(b) or (rounding and off <= 0.05 * abs(b))


def _half_a_unit(text: str) -> float:
    """Half a unit of the last digit of a decimal number; 0 for a formula."""
    found = _DECIMAL.fullmatch(text)
    return 0.0 if found is None else 0.5 * 10.0 ** -(len(found[1]) + 2 * len(found[2]))
