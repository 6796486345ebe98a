"""The untrusted side: everything here is sent as text to an isolated interpreter.

Its modules import each other, the standard library and the course's own libraries, nothing else
of the kit: wire (frames and values) <- bridge (calls across it) <- bench (answers calls) <- server.
trying runs tests for bench. forbidden, lock and scratch stand alone.
"""
