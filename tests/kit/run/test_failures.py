"""An exception that says nothing itself is explained, with the next step."""

from grader.run.failures import told


def test_a_debugger_is_sent_to_where_there_is_a_terminal() -> None:
    said = told({"type": "BdbQuit", "message": ""})
    assert said.startswith("BdbQuit: graded code has no terminal for a debugger; remove breakpoint")
    assert "`grade repro`" in said


def test_a_name_adds_no_line_of_its_own() -> None:
    frame = {"file": "a\nb.py", "line": 3, "function": "f\n  passed", "text": "f()"}
    said = told({"type": "E\n  passed", "message": "no", "frames": [frame]})
    assert said.splitlines()[:2] == ["Exception: no", "  a\\nb.py, line 3, in f\\n  passed"]


def test_a_class_whose_name_is_a_sentence_says_nothing_by_it() -> None:
    said = told({"type": "grading stopped: the course's own solution fails", "message": "no"})
    assert said == "Exception: no"


def test_an_exit_is_told_to_return_a_value() -> None:
    said = told({"type": "SystemExit", "message": "all tests passed"})
    assert said == "SystemExit: your code called sys.exit() or quit(); return a value instead"


def test_of_a_gpus_error_only_what_went_wrong_is_told() -> None:
    assertion = (
        "CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert' in https://docs."
        "nvidia.com for more information.\nCUDA kernel errors might be reported later."
    )
    said = told({"type": "AcceleratorError", "message": assertion})
    assert said.splitlines()[0] == "AcceleratorError: CUDA error: device-side assert triggered"
    assert "an index is too large or negative" in said and len(said.splitlines()) == 2
    memory = (
        "CUDA out of memory. Tried to allocate 200.00 GiB. GPU 0 has a total capacity of 139.80 "
        "GiB of which 134.01 GiB is free. Process 714 has 614.00 MiB memory in use."
    )
    said = told({"type": "OutOfMemoryError", "message": memory})
    assert said.splitlines()[0] == (
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 200.00 GiB"
    )


def test_plain_words_stand_in_for_torchs_list_of_signatures() -> None:
    signatures = ", but expected one of:\n * (Tensor mask, Tensor value)\n"
    message = "masked_fill() received an invalid combination of arguments - got ({}, float)"
    known = told({"type": "TypeError", "message": message.format("bool") + signatures})
    assert "Tensor value" not in known and "mask == 0 compares each number" in known
    unknown = told({"type": "TypeError", "message": "where" + message[11:] + signatures})
    assert "Tensor value" in unknown


def test_a_name_of_pythons_is_known_by_the_part_of_the_line_that_fails() -> None:
    frame = {"file": "a.py", "line": 3, "text": "n = sum(x) + 1", "caret": [4, 6]}
    said = told({"type": "TypeError", "message": "'int' object is not callable", "frames": [frame]})
    assert "sum is Python's own" in said


def test_the_names_of_a_line_are_told_and_nothing_that_is_no_name() -> None:
    here = [
        ["x", [2, 3], "float32"],
        ["self.mask", [4], "bool"],
        ["é\u202e is right", [1], "float32"],
        ["y", [2, "passed"], "float32"],
        ["z", "passed"],
        ["n", 3],
        7,
    ]
    frame = {"file": "a.py", "line": 3, "function": "f", "text": "x + n"}

    def here_told(names: object) -> list[str]:
        error = {"type": "ValueError", "message": "no", "frames": [{**frame, "here": names}]}
        return told(error).splitlines()[3:]

    assert here_told(here[:2] + here[5:]) == [
        "  here      x is [2 x 3], self.mask is [4 numbers] bool, n is 3"
    ]
    assert here_told(here[2:5] + here[6:]) == here_told("passed") == here_told([]) == []


def test_a_name_that_a_later_cell_makes_is_looked_for_there() -> None:
    error = {"type": "NameError", "message": "name 'nn' is not defined", "later": 7}
    assert "code cell 7 defines or imports it, but runs after this one" in told(error)
    assert "nothing here is called nn" in told({**error, "later": 10**9})


def test_the_last_cell_that_sets_a_global_name_is_told() -> None:
    error = {"type": "AttributeError", "message": "'int' object has no attribute 'sqrt'"}
    said = told({**error, "set_by": ["math", 7]})
    assert "this is a plain int, and neither a tensor nor a layer; code cell 7 was the last" in said
    assert "cell" not in told({**error, "set_by": ["math", 10**9]})
