"""Errors that are told to a person in one line, without a traceback."""


class KitError(Exception):
    """What is wrong, where, and what to do. The command prints it and exits with 2."""


class CourseError(KitError):
    """course.toml or a file of the course is wrong: for the course's author."""


class SubmissionFileError(KitError):
    """The submission cannot be read at all: no such path, not a notebook, too large."""


class ProgressError(KitError):
    """What is remembered of a learner cannot be read or written."""
