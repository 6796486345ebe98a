"""`python -m grader` is `grade`."""

import sys

from grader.command.main import main

sys.exit(main())
