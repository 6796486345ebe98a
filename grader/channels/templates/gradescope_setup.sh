#!/usr/bin/env bash
# Gradescope runs this once, when it builds the autograder's image.
set -euo pipefail
root=${AUTOGRADER_ROOT:-/autograder}
cd "$root/source"

if [ ! -x "$root/venv/bin/python" ]; then
    if ! python3 -m venv "$root/venv" 2> /dev/null; then
        apt-get update -qq
        apt-get install -y -qq python3 python3-venv
        python3 -m venv "$root/venv"
    fi
fi
python="$root/venv/bin/python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10) and
    "The grader needs Python 3.10 or later: choose a newer Ubuntu as the base image.")'

@torch@
"$python" -m pip install -q -c constraints.txt @packages@

# Only the grader may read the checks, even on a kernel that cannot lock submissions in.
if [ "$(id -u)" = 0 ]; then
    chown -R nobody "$root/source"
    chmod -R go= "$root/source"
fi

# Stop here unless the course's own solutions earn all points.
"$python" -m grader --course course --submission course/solutions --device cpu
echo "The autograder for @assignment@ is ready."
