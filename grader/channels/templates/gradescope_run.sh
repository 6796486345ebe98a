#!/usr/bin/env bash
# Gradescope runs this for every submission. If the grader itself fails, it writes no results.json:
# the student gets no score, and the output of this script says why.
root=${AUTOGRADER_ROOT:-/autograder}
cd "$root/source" || exit 1
exec "${AUTOGRADER_PYTHON:-$root/venv/bin/python}" -m grader release gradescope \
    --course course --assignment @assignment@ --hidden @when@ --minutes @minutes@ --run "$root"
