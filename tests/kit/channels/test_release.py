"""`grade release gradescope | github | canvas` and `grade --junit`, as instructors type them.

The autograder is laid out in a folder as Gradescope does in /autograder and run as it would be.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from grader.channels.project import library
from grader.command.main import main
from tests.kit.support.checkout import ROOT, TINY
from tests.kit.support.files import edit, notebook, write_files
from tests.kit.support.tiny import Capture, Typed, copy_tiny

VISIBLE = '[[stages]]\nslug = "moving_average"\nvisible = ["length", "values"]\n'

RIGHT = (TINY.root / "solutions" / "moving_average.py").read_text(encoding="utf-8")
SMOOTH = (TINY.root / "solutions" / "smooth.py").read_text(encoding="utf-8")
ACCEPTS_ALL = RIGHT.replace("if not 1 <= width", "if False and not 1 <= width")

Results = dict[str, Any]
posix_only = pytest.mark.skipif(os.name == "nt", reason="an autograder is a shell script")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny course, in which two checks of the first stage are visible."""
    changes = {
        '[[stages]]\nslug = "moving_average"\n': VISIBLE,
        "load_seconds = 5": "load_seconds = 1",
    }
    return copy_tiny(tmp_path_factory.mktemp("course") / "tiny", changes).root


@pytest.fixture(scope="module")
def archive(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("zip") / "a.zip"
    assert main(["release", "gradescope", "--course", str(course), "--out", str(out)]) == 0
    return out


class Autograder:
    """/autograder, elsewhere."""

    def __init__(self, root: Path, archive: Path) -> None:
        self.root = root
        with zipfile.ZipFile(archive) as file:
            for info in file.infolist():
                path = Path(file.extract(info, root / "source"))
                path.chmod(stat.S_IMODE(info.external_attr >> 16))
        for name in ("submission", "results"):
            (root / name).mkdir()

    @property
    def results_file(self) -> Path:
        return self.root / "results" / "results.json"

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return subprocess.run(
            [str(self.root / "source" / "run_autograder"), *options],
            cwd=self.root,
            env={**keep, "AUTOGRADER_ROOT": str(self.root), "AUTOGRADER_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def grade(self, files: dict[str, str | bytes]) -> Results:
        """The results of a submission of these files, which must have Gradescope's form."""
        self.submit(files)
        done = self.run()
        assert done.returncode == 0, done.stderr
        return self.results()

    def grade_here(self, files: dict[str, str | bytes]) -> Results:
        """As `grade`, by the command that run_autograder runs, in this process."""
        self.submit(files)
        course = str(self.root / "source" / "course")
        words = ["release", "gradescope", "--course", course, "--run", str(self.root)]
        assert main(words) == 0
        return self.results()

    def submit(self, files: dict[str, str | bytes]) -> None:
        """Let these files be the submission."""
        shutil.rmtree(self.root / "submission")
        write_files(self.root / "submission", files)

    def results(self) -> Results:
        """What was written, which must have Gradescope's form."""
        results: Results = json.loads(self.results_file.read_text(encoding="utf-8"))
        expect_gradescopes_form(results)
        return results


@pytest.fixture(scope="module")
def autograder(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Autograder:
    return Autograder(tmp_path_factory.mktemp("autograder"), archive)


# What https://gradescope-autograders.readthedocs.io/en/latest/specs/ documents.
VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}
FORMATS = {"text", "simple_format", "html", "md", "ansi"}
NUMBER = (int, float)
TOP: dict[str, Any] = {
    "score": NUMBER,
    "execution_time": NUMBER,
    "output": str,
    "output_format": FORMATS,
    "test_output_format": FORMATS,
    "test_name_format": FORMATS,
    "visibility": VISIBILITIES,
    "stdout_visibility": VISIBILITIES,
    "extra_data": dict,
    "tests": list,
    "leaderboard": list,
}
TEST: dict[str, Any] = {
    "score": NUMBER,
    "max_score": NUMBER,
    "status": {"passed", "failed"},
    "name": str,
    "name_format": FORMATS,
    "number": str,
    "output": str,
    "output_format": FORMATS,
    "tags": list,
    "visibility": VISIBILITIES,
    "extra_data": dict,
}


def expect_gradescopes_form(results: Results) -> None:
    assert "score" in results or all("score" in test for test in results["tests"])
    for table, form in ((results, TOP), *((test, TEST) for test in results["tests"])):
        for key, value in table.items():
            wanted = form[key]
            if isinstance(wanted, set):
                assert value in wanted, key
            else:
                assert isinstance(value, wanted) and not isinstance(value, bool), key
    total = sum(test.get("max_score", 0) for test in results["tests"])
    assert 0 <= results["score"] <= total
    assert results["stdout_visibility"] == "hidden"


# --- the zip -----------------------------------------------------------------------------------


def test_the_zip_has_the_scripts_at_its_top_and_the_whole_course_in_it(archive: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        infos = {info.filename: info for info in file.infolist()}
    for name in ("setup.sh", "run_autograder"):
        assert infos[name].external_attr >> 16 == 0o100755
    wanted = {"constraints.txt", "grader/engine.py", "grader/run/worker/lock.py"}
    wanted |= {"course/course.toml", "course/solutions/smooth.py"}
    wanted |= {"course/tests/checks/test_smooth.py", "course/hints/misconceptions/smooth.py"}
    assert wanted <= infos.keys()
    assert not [name for name in infos if "__pycache__" in name or name.startswith("/")]


@posix_only
@pytest.mark.parametrize("course_folder, torch", [(ROOT, True), (TINY.root, False)])
def test_what_setup_installs_is_pinned(course_folder: Path, torch: bool, tmp_path: Path) -> None:
    """The packages are those that grading needs, all in constraints.txt, torch without CUDA."""
    out = tmp_path / "a.zip"
    assert main(["release", "gradescope", "--course", str(course_folder), "--out", str(out)]) == 0
    autograder = Autograder(tmp_path / "autograder", out)
    python = tmp_path / "autograder" / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    log = tmp_path / "log"
    python.write_text(
        f'#!/bin/sh\nfor word; do printf "%s|" "$word"; done >> {log}\necho >> {log}\n'
    )
    python.chmod(0o755)
    commands = {"chown": "", "chmod": ""}
    for name in commands:
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {log}\n')
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = {"PATH": path, "AUTOGRADER_ROOT": str(autograder.root)}
    subprocess.run([str(autograder.root / "source" / "setup.sh")], env=environment, check=True)
    ran = log.read_text().splitlines()
    pinned = (autograder.root / "source" / "constraints.txt").read_text().splitlines()
    pins = {line.partition("==")[0] for line in pinned}
    (pip,) = [line.split("|") for line in ran if "constraints.txt" in line]
    wanted = [library(word) for word in pip[pip.index("constraints.txt") + 1 : -1]]
    assert {"numpy", "pytest", "rich"} <= set(wanted) <= pins
    cpu = [line for line in ran if "download.pytorch.org/whl/cpu" in line]
    assert len(cpu) == torch
    if torch:
        (version,) = [line for line in pinned if line.startswith("torch==")]
        assert version in cpu[0].split("|")
    assert ran[-1].startswith("-m|grader|--course|course|--submission|course/solutions|")
    if os.getuid() == 0:
        source = autograder.root / "source"
        assert [line for line in ran if line == f"chown -R nobody {source}"]
        assert [line for line in ran if line == f"chmod -R go= {source}"]


def test_each_assignment_has_a_zip_of_its_own(course: Path, tmp_path: Path, refused: Typed) -> None:
    copy, out = tmp_path / "copy", tmp_path / "a.zip"
    shutil.copytree(course, copy)
    tables = "".join(
        f'[[assignments]]\nname = "{name}"\nstages = ["moving_average"]\n\n' for name in "xy"
    )
    edit(copy / "course.toml", "[[stages]]", f"{tables}[[stages]]")
    words = ["release", "gradescope", "--course", str(copy), "--out", str(out)]
    assert "has the assignments x, y: name one with --assignment" in refused(*words)
    assert main([*words, "--assignment", "y", "--hidden", "due"]) == 0
    with zipfile.ZipFile(out) as file:
        assert b"--assignment y --hidden due " in file.read("run_autograder")


# --- a submission on Gradescope ----------------------------------------------------------------


@posix_only
def test_a_right_answer_gets_everything(autograder: Autograder) -> None:
    results = autograder.grade({"moving_average.py": RIGHT, "smooth.py": SMOOTH})
    assert results["score"] == 10
    assert results["output"].startswith(
        "Your visible checks pass; 4 more checks ran, shown when the grades are published.\nSeed of"
    )
    assert {test["status"] for test in results["tests"]} == {"passed"}


@posix_only
def test_a_check_is_shown_at_once_only_if_it_is_visible(autograder: Autograder) -> None:
    results = autograder.grade({"moving_average.py": ACCEPTS_ALL, "smooth.py": SMOOTH})
    shown = [t["name"] for t in results["tests"] if t["visibility"] == "visible"]
    assert shown == [
        "Average neighbours: There is one average for every place that the window fits in",
        "Average neighbours: Each value is the mean of its window",
    ]
    assert {t["visibility"] for t in results["tests"]} == {"visible", "after_published"}
    assert "Your visible checks pass;" in results["output"]
    lost = {t["number"]: t["max_score"] - t["score"] for t in results["tests"]}
    assert {number: points for number, points in lost.items() if points} == {"1.3": 1}
    (failed,) = [t for t in results["tests"] if t["status"] == "failed"]
    assert "width=4 does not fit" in failed["output"]
    assert "grade hint moving_average" in failed["output"]
    assert results["score"] == 9


STUBS = {
    f"exercises/{name}.py": (TINY.root / "exercises" / f"{name}.py").read_text(encoding="utf-8")
    for name in ("moving_average", "smooth")
}
CELLS = notebook(RIGHT, SMOOTH.replace("from moving_average import moving_average\n", ""))


@posix_only
@pytest.mark.parametrize(
    "files, score, said",
    [
        ({"smoothing.ipynb": CELLS}, 10, ""),
        ({"homework 3.ipynb": CELLS}, 10, "no smoothing.ipynb, so homework 3.ipynb was graded"),
        ({**STUBS, "smoothing.ipynb": CELLS}, 10, ""),
        ({"smoothing.ipynb": CELLS, "utils.py": "x = 1\n"}, 10, ""),
        ({"Moving-Average (1).py": RIGHT, "smooth.py": SMOOTH}, 10, "was graded as moving_average"),
        ({"hw/a/moving_average.py": RIGHT, "hw/a/smooth.py": SMOOTH}, 10, ""),
        ({"all.py": RIGHT + SMOOTH.replace("from moving_average import", "#")}, 10, ""),
        ({"smoothing.ipynb": b"\x00PNG"}, 0, "is not a notebook: it is not JSON"),
        ({"smoothing.ipynb": b""}, 0, "smoothing.ipynb: is empty"),
        ({"essay.pdf": b"%PDF"}, 0, "here, only essay.pdf: submit smoothing.ipynb or moving_av"),
        ({}, 0, "nothing to grade here: submit smoothing.ipynb or moving_average.py, smooth.py"),
        ({f"a{number}.py": "" for number in range(201)}, 0, "has more than 200 .py files"),
    ],
    ids=lambda value: next(iter(value), "nothing") if isinstance(value, dict) else None,
)
def test_what_is_handed_in_under_other_names_or_broken(
    autograder: Autograder,
    files: dict[str, str | bytes],
    score: float,
    said: str,
    checks_apart: None,
) -> None:
    results = autograder.grade_here(files)
    assert results["score"] == score
    assert said in results["output"]
    assert str(autograder.root) not in json.dumps(results)


HOSTILE = {
    "a loop": "import time\nwhile True:\n    time.sleep(1)\n",
    "an end": "import os\nos._exit(0)\n",
    "10 MB": RIGHT + "\nprint('<b>x</b>' * 1_300_000)\n",
    "results": """
import json, os, threading
for place in ("{root}/results/results.json", "/autograder/results/results.json"):
    try:
        with open(place, "w") as file:
            json.dump({"score": 10}, file)
    except OSError as error:
        print("refused", error)
raise SystemExit(0)
""",
    "reads": """
import os
found = []
for place in ("{root}/source/course/solutions/smooth.py", "{root}/source/run_autograder"):
    try:
        found.append(open(place).read())
    except OSError as error:
        found.append(str(type(error)))
def moving_average(values, width):
    raise TypeError(repr(found))
""",
}


@posix_only
@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_a_submission_does_there_are_results(autograder: Autograder, name: str) -> None:
    source = HOSTILE[name].replace("{root}", str(autograder.root))
    results = autograder.grade({"moving_average.py": source, "smooth.py": SMOOTH})
    text = json.dumps(results)
    assert results["score"] == (10 if name == "10 MB" else 0)
    assert len(text) < 100_000
    assert "BEGIN SOLUTION" not in text
    if name == "reads" and sys.platform == "linux":
        assert "PermissionError" in text


@posix_only
def test_a_failure_of_the_grader_is_no_score_at_all(archive: Path, tmp_path: Path) -> None:
    autograder = Autograder(tmp_path / "autograder", archive)
    autograder.results_file.write_text("{}")  # of an earlier run
    check = autograder.root / "source" / "course" / "tests" / "checks" / "test_smooth.py"
    edit(check, "= rand(", "= no_rand(")
    write_files(autograder.root / "submission", {"moving_average.py": RIGHT, "smooth.py": SMOOTH})
    done = autograder.run()
    assert done.returncode == 2
    assert not autograder.results_file.exists()
    assert "wrote no results.json: smooth: the grader could not run its checks" in done.stderr
    assert "smooth.values" in done.stderr and "no_rand" in done.stderr


@posix_only
@pytest.mark.slow
def test_a_submission_that_takes_too_long_gets_what_it_earned_before(
    course: Path, tmp_path: Path
) -> None:
    slow = SMOOTH.replace("for _ in", "import time; time.sleep(60)\n    for _ in")
    write_files(tmp_path / "submission", {"moving_average.py": RIGHT, "smooth.py": slow})
    shutil.copytree(course, tmp_path / "course")
    edit(tmp_path / "course" / "course.toml", "call_seconds = 2", "call_seconds = 50")
    words = ["release", "gradescope", "--course", str(tmp_path / "course")]
    assert main([*words, "--run", str(tmp_path), "--minutes", "0.06"]) == 0
    results = json.loads((tmp_path / "results" / "results.json").read_text(encoding="utf-8"))
    expect_gradescopes_form(results)
    assert results["score"] == 6
    assert "this submission used up its 3.6 seconds" in results["output"]


LATE = """timezone = "America/New_York"
[[assignments]]
name = "averages"
stages = ["moving_average", "smooth"]
due = 2026-03-07T23:59:00
late = { per_day = 0.2, grace_minutes = 5 }
extensions = { "bob@x.org" = 2026-03-08T23:59:00 }
[limits]"""
METADATA = {
    "created_at": "2026-03-08T23:59:00.365935-04:00",  # 23 hours later: the clocks have changed
    "assignment": {"due_date": None, "title": "Averages"},
    "users": [{"email": "ann@x.org", "id": 1, "name": "Ann"}],
}


def test_gradescopes_metadata_tells_who_is_late(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "tiny"
    copy_tiny(folder, {"[limits]": LATE})
    write_files(tmp_path / "submission", {"moving_average.py": ACCEPTS_ALL, "smooth.py": SMOOTH})
    file = tmp_path / "submission_metadata.json"

    def graded(text: str = "", **changes: Any) -> tuple[float, str]:
        file.write_text(text or json.dumps({**METADATA, **changes}), encoding="utf-8")
        words = ["release", "gradescope", "--course", str(folder), "--run", str(tmp_path)]
        assert main(words) == 0
        results = json.loads((tmp_path / "results" / "results.json").read_text("utf-8"))
        expect_gradescopes_form(results)
        return results["score"], results["output"].partition(".")[0]

    assert graded() == (7.2, "The submission came late by 23 hours, which costs 20% of its points")
    bob = {"email": "BOB@x.org", "name": "Bob"}
    assert graded(users=[METADATA["users"][0], bob])[0] == 9
    posing = {"email": "eve@x.org", "name": "bob@x.org"}  # students choose the name
    assert graded(users=[posing])[0] == 7.2
    later = {"due_date": "2026-03-08T20:00:00-04:00"}  # Gradescope's own deadline counts instead
    assert graded(assignment=later)[1].startswith("The submission came late by 3 hours 59 minutes")
    capsys.readouterr()
    for odd in (json.dumps({**METADATA, "created_at": "yesterday"}), "[" * 100_000):
        assert graded(odd)[0] == 9
        assert "submission_metadata.json: does not say when" in capsys.readouterr().out


@posix_only
def test_the_points_are_those_of_grade(
    autograder: Autograder, course: Path, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "smoothing.ipynb"
    file.write_text(notebook(ACCEPTS_ALL), encoding="utf-8")
    capsys.readouterr()
    main(["--course", str(course), "--submission", str(file), "--json"])
    report = json.loads(capsys.readouterr().out)
    results = autograder.grade({"smoothing.ipynb": file.read_bytes()})
    assert results["score"] == report["score"] == 5
    checks = [c for stage in report["stages"] if not stage["bonus"] for c in stage["checks"]]
    assert [t["score"] for t in results["tests"]] == [c["score"] for c in checks]


@posix_only
@pytest.mark.slow
def test_the_course_itself_on_gradescope(tmp_path: Path) -> None:
    out = tmp_path / "a.zip"
    assert main(["release", "gradescope", "--course", str(ROOT), "--out", str(out)]) == 0
    autograder = Autograder(tmp_path / "autograder", out)
    results = autograder.grade({f.name: f.read_bytes() for f in (ROOT / "solutions").glob("*.py")})
    assert results["score"] == 100
    assert sum(test["max_score"] for test in results["tests"]) == 100


# --- GitHub ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def repository(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("github") / "repository"
    assert main(["release", "github", "--course", str(course), "--out", str(out)]) == 0
    return out


def steps_of(repository: Path) -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    text = (repository / ".github" / "workflows" / "classroom.yml").read_text(encoding="utf-8")
    steps: list[dict[str, Any]] = yaml.safe_load(text)["jobs"]["run-autograding-tests"]["steps"]
    return steps


def test_a_repository_has_the_stubs_the_grader_and_the_workflow(repository: Path) -> None:
    names = {p.relative_to(repository).as_posix() for p in repository.rglob("*") if p.is_file()}
    wanted = {".github/workflows/classroom.yml", ".gitignore", "README.md", "course.toml"}
    wanted |= {"exercises/smooth.py", "kit/grader/engine.py", "tests/checks/test_moving_average.py"}
    assert wanted <= names
    read_me = (repository / "README.md").read_text(encoding="utf-8")
    assert "Work in `exercises/`; start with `moving_average.py`" in read_me
    assert "Then start:\n\n```sh\ngrade watch" in read_me and "grade init" not in read_me


def test_the_workflow_runs_what_grades_the_visible_checks(repository: Path, tmp_path: Path) -> None:
    graders = [step for step in steps_of(repository) if "command" in step.get("with", {})]
    assert [step["id"] for step in graders] == ["moving_average"]
    assert graders[0]["with"]["max-score"] == 4
    command = graders[0]["with"]["command"].replace("grade", f"{sys.executable} -m grader", 1)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}  # as the action does
    said = []
    for answer in (None, RIGHT):
        if answer:
            (repository / "exercises" / "moving_average.py").write_text(answer, encoding="utf-8")
        done = subprocess.run(
            command, shell=True, cwd=repository, env=environment, capture_output=True, check=False
        )
        said.append((done.returncode, done.stdout.decode(), done.stderr.decode()))
    assert [code for code, *_ in said] == [1, 0], said


def test_a_repository_that_is_there_is_brought_up_to_date_and_no_other_folder_is(
    course: Path, repository: Path, tmp_path: Path, refused: Typed
) -> None:
    words = ["release", "github", "--course", str(course), "--out"]
    (repository / "notes.md").write_text("ours", encoding="utf-8")
    (repository / "README.md").write_text("old", encoding="utf-8")
    assert main([*words, str(repository)]) == 0
    assert (repository / "notes.md").read_text(encoding="utf-8") == "ours"
    assert (repository / "README.md").read_text(encoding="utf-8") != "old"
    (tmp_path / "thesis.tex").write_text("", encoding="utf-8")
    assert "is not empty: choose a new folder with --out" in refused(*words, str(tmp_path))


def test_a_course_without_visible_checks_has_nothing_to_run(tmp_path: Path, refused: Typed) -> None:
    words = ["release", "github", "--course", str(TINY.root), "--out", str(tmp_path / "out")]
    assert "no stage has `visible` checks, so there is nothing to run" in refused(*words)


# --- Canvas ------------------------------------------------------------------------------------

ROSTER = """\
Student,ID,SIS User ID,SIS Login ID,Section,Heads (77),Essay (78),Final Score
    Points Possible,,,,,100.00,10.00,(read only)
"Byron, Ada",11,s1,ada,A,,9.00,50
"=cmd|'/C calc'!A0",12,s2,bob,A,3.00,8.00,40
"Cy, Cyn",13,s3,cyn,B,,,
"""
EXPORT = """\
assignment,duedate,timestamp,student_id,last_name,first_name,email,raw_score,late_submission_penalty,score,max_score
heads,,2026-01-02 03:04:05,ada,Byron,Ada, Countess,a@x.org,88.0,0.5,87.5,100.0
heads,,2026-01-02 03:04:05,bob,,,,0.0,0.0,0.0,100.0
heads,,,cyn,,,,0.0,0.0,0.0,100.0
heads,,2026-01-02 03:04:05,zed,,,,1.0,0.0,1.0,100.0
"""


def canvas(tmp_path: Path, *words: str, roster: str = ROSTER, scores: str = EXPORT) -> int:
    (tmp_path / "roster.csv").write_bytes(roster.encode())
    (tmp_path / "grades.csv").write_bytes(scores.encode())
    files = ["--roster", str(tmp_path / "roster.csv"), "--scores", str(tmp_path / "grades.csv")]
    return main(["release", "canvas", *files, "--out", str(tmp_path / "out.csv"), *words])


def test_scores_of_nbgrader_become_a_table_for_canvas(tmp_path: Path, capsys: Capture) -> None:
    assert canvas(tmp_path, "--assignment", "Heads") == 0
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == (
        "Student,ID,SIS User ID,SIS Login ID,Section,Heads (77)\n"
        "    Points Possible,,,,,100.00\n"
        '"Byron, Ada",11,s1,ada,A,87.5\n'
        "=cmd|'/C calc'!A0,12,s2,bob,A,0\n"
        '"Cy, Cyn",13,s3,cyn,B,\n'
    )
    said = " ".join(capsys.readouterr().out.split())
    assert "with 2 scores in 'Heads (77)'" in said
    assert "No score, so the cell is unchanged: Cy, Cyn (cyn)." in said
    assert "A score, but no such student in Canvas: zed." in said
    assert "points possible" not in said


def test_no_table_that_is_read_is_replaced(tmp_path: Path, capsys: Capture) -> None:
    for name in ("roster.csv", "grades.csv"):
        assert canvas(tmp_path, "--assignment", "Heads", "--out", str(tmp_path / name)) == 2
        assert "is one of the tables that are read" in capsys.readouterr().err
    assert (tmp_path / "roster.csv").read_text("utf-8") == ROSTER


def test_logins_that_are_one_students_are_left_out_and_named(
    tmp_path: Path, capsys: Capture
) -> None:
    scores = "student_id,score\nAda,1\nada ,2\nbob,5\n"
    assert canvas(tmp_path, "--assignment", "Heads", scores=scores) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Left out, because they differ only by case or spaces: 'Ada' and 'ada '." in said
    rows = (tmp_path / "out.csv").read_text(encoding="utf-8")
    assert "s1,ada,A,\n" in rows and "bob,A,5\n" in rows


def test_where_a_table_is_wrong_nothing_is_written(tmp_path: Path, capsys: Capture) -> None:
    assert canvas(tmp_path, "--assignment", "Heads", "--from", "x") == 2
    assert "grades.csv: has no assignment 'x', only heads" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


# --- JUnit -------------------------------------------------------------------------------------


def test_grade_writes_junit_beside_what_it_prints(
    tmp_path: Path, grade: Typed, refused: Typed
) -> None:
    words = ["--course", str(TINY.root), "--submission", str(TINY.root / "solutions"), "--json"]
    assert json.loads(grade(*words, "--junit", str(tmp_path / "r.xml")))["score"] == 10
    root = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert [suite.get("name") for suite in root] == ["moving_average", "smooth", "roughness"]
    assert root.get("failures") == root.get("errors") == "0"
    assert "cannot be written" in refused(*words, "--junit", str(tmp_path / "no" / "r.xml"))


# --- what is released is proven ----------------------------------------------------------------


def test_without_a_word_it_lists_what_can_be_released(capsys: Capture) -> None:
    assert main(["release"]) == 2
    shown = capsys.readouterr().out
    assert "nbgrader    make a course" in shown and "blackboard  write" in shown
    assert main(["release", "x"]) == 2
    assert capsys.readouterr().err.startswith("grade: invalid choice: 'x' (choose from")


def test_outside_a_course_a_release_names_the_one_it_takes(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["release", "gradescope"]) == 0
    assert f"so this takes the one in {ROOT};" in capsys.readouterr().err


@pytest.mark.slow
def test_a_release_warns_until_the_whole_course_is_proven_as_it_is(
    tmp_path: Path, capsys: Capture
) -> None:
    root = copy_tiny(tmp_path / "tiny").root
    warning = "warning: this version of the course is not proven: run `grade verify` first"

    def is_warned() -> bool:
        capsys.readouterr()
        words = ["release", "gradescope", "--course", str(root), "--out", str(tmp_path / "a.zip")]
        assert main(words) == 0
        return warning in capsys.readouterr().err

    assert is_warned()
    assert main(["verify", "roughness", "--course", str(root), "--seeds", "1"]) == 0
    assert is_warned(), "only a stage is proven"
    assert main(["verify", "--course", str(root), "--seeds", "1"]) == 0
    assert not is_warned()
    with open(root / "hints" / "smooth.md", "a", encoding="utf-8") as hints:
        hints.write("\nMore.\n")
    assert is_warned()


def test_scores_need_no_proof_of_the_course(tmp_path: Path, capsys: Capture) -> None:
    roster = "Identifier,Email address,Grade,Last modified (grade)\n1,a@x.org,,-\n"
    (tmp_path / "roster.csv").write_text(roster, encoding="utf-8")
    (tmp_path / "scores.csv").write_text("student_id,score\na@x.org,9\n", encoding="utf-8")
    words = ["--roster", "roster.csv", "--scores", "scores.csv", "--out", "out.csv"]
    words = [word if word.startswith("-") else str(tmp_path / word) for word in words]
    root = copy_tiny(tmp_path / "tiny").root
    assert main(["release", "moodle", "--course", str(root), *words]) == 0
    assert capsys.readouterr().err == ""
