"""What is hidden becomes visible, what is visible stays as it is."""

import time

import pytest

from grader.types.text import (
    headline,
    imported_modules,
    is_of_warnings,
    is_quick_to_parse,
    listed,
    safe,
    safe_data,
    safe_line,
    what_it_did,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("plain text, twice\n\tand indented", "plain text, twice\n\tand indented"),
        ("[red]not markup[/red]", "[red]not markup[/red]"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]8;;http://example.org\x07link", "\\x1b]8;;http://example.org\\x07link"),
        ("over\rwritten", "over\\x0dwritten"),
        ("bell\a null\0 delete\x7f", "bell\\x07 null\\x00 delete\\x7f"),
        ("\x9b31m, the eight-bit escape", "\\x9b31m, the eight-bit escape"),
        ("next line\x85", "next line\\x85"),
        ("a Windows line\r\nand another\r\n", "a Windows line\nand another\n"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("\u2066isolated\u2069", "\\u2066isolated\\u2069"),
        ("zero\u200bwidth, \ufeffmark, a\xadb", "zero\\u200bwidth, \\ufeffmark, a\\xadb"),
        ("line\u2028paragraph\u2029", "line\\u2028paragraph\\u2029"),
        ("variant\ufe00, joined\U00013430", "variant\\ufe00, joined\\U00013430"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("lone \udc80 and \ud83d", "lone \\udc80 and \\ud83d"),
        ("a tower e" + 9 * "\u0301", "a tower e" + 8 * "\u0301" + "\\u0301"),
        ("ที่นี่, क्षि, e\u0302\u0323", "ที่นี่, क्षि, e\u0302\u0323"),
        ("q kᵀ / √d_k → größer, 注意, 🙂", "q kᵀ / √d_k → größer, 注意, 🙂"),
    ],
)
def test_shows(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_a_name_is_one_line() -> None:
    assert safe_line("a\r\nb\tc\x1b") == "a\\nb\\tc\\x1b"


def test_data_hides_nothing() -> None:
    data = {"a\u202e": ["b\x1b", 1.5, None, True, ("c\ud800",)]}
    assert safe_data(data) == {"a\\u202e": ["b\\x1b", 1.5, None, True, ["c\\ud800"]]}


def test_every_control_character() -> None:
    controls = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"]
    assert all(safe(letter) == f"\\x{ord(letter):02x}" for letter in controls)


def test_every_result_is_visible_and_encodes() -> None:
    everything = "".join(map(chr, range(0x110000)))
    shown = safe(everything)
    shown.encode("utf-8")
    assert safe(shown) == shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("piece", ["a plain line of text\n", "\x1b[31m", "ünï→ \u202e", "\u0e47"])
def test_quick_on_a_megabyte(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    start = time.process_time()
    safe(text)
    assert time.process_time() - start < 10  # if its time grew with the square: hours


@pytest.mark.parametrize(
    "source",
    [
        "",
        "def f(a):\n    return a\n" * 3000,
        "x = [\n" + "    'a long text of a table',\n" * 3000 + "]",
        "x = {\n" + "    1: 2,\n" * 3000 + "}",
        "assert a == 1, \\\n    'why'\n" * 2000,
    ],
)
def test_what_people_write_is_quick_to_parse(source: str) -> None:
    assert is_quick_to_parse(source)


@pytest.mark.parametrize(
    "source",
    [
        "import " + "a." * 5000 + "b",
        "import " + "a.\\\n" * 5000 + "b",
        "import " + "a.\\\r\n" * 5000 + "b",
        "x = f'''" + "{a}\n" * 5000 + "'''",
    ],
)
def test_traps_for_the_parser_are_known(source: str) -> None:
    assert not is_quick_to_parse(source)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c"), ([], "")],
)
def test_names_are_listed_as_in_a_sentence(names: list[str], sentence: str) -> None:
    assert listed(names) == sentence
    assert listed(names, "or") == sentence.replace(" and ", " or ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.py, line 3: UserWarning: no dim\nDeprecationWarning: old\n", True),
        ("a.py, line 3: UserWarning: no dim\nmy own line\n", False),
        ("line 3: my own line\n", False),
        ("\n", False),
    ],
)
def test_warnings_are_told_from_what_the_code_prints(text: str, expected: bool) -> None:
    assert is_of_warnings(text) is expected
    assert what_it_did(text) == ("caused warnings" if expected else "printed")


def test_a_headline_has_the_plain_words_of_an_exception() -> None:
    message = "EOFError: EOF\n  in words  nobody can answer\n  a.py, line 3"
    assert headline(message) == "EOFError: EOF (nobody can answer)"
    assert headline("The shape is wrong\n  in words") == "The shape is wrong"


def test_imported_modules_are_found_in_code_that_no_parser_reads() -> None:
    source = "import os.path\n  from torch.nn import functional\nimport a, b\nx = 'import c'\n(("
    assert imported_modules(source) == ["os.path", "torch.nn", "torch.nn.functional", "a", "b"]
