"""Files that tests write, change and look at."""

import io
import json
import os
import socket
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """The folder, with these files and the folders that they need."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def zipped(files: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file of these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def notebook(*sources: object) -> str:
    """A notebook of code cells."""
    code = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**code, "source": source} for source in sources]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def edit(file: Path, old: str, new: str) -> None:
    """Replace the first `old` in a file."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def tree(root: Path) -> dict[str, bytes]:
    """Every file below `root`, and every folder as no bytes."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in root.rglob("*")
    }


def deep_folders(folder: Path, depth: int) -> None:
    """Folders in folders, deeper than a path may be long."""
    with elsewhere(folder):
        for _ in range(depth):
            os.mkdir("folder")
            os.chdir("folder")


def a_socket(path: Path) -> None:
    """A socket in the file system, whose own name may have few letters."""
    with elsewhere(path.parent), socket.socket(socket.AF_UNIX) as own:
        own.bind(path.name)


@contextmanager
def elsewhere(folder: Path) -> Iterator[None]:
    """Work in another folder for a while."""
    here = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
