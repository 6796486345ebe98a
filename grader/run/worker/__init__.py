"""The untrusted side: all modules here are sent as text to an isolated interpreter.

They import each other, the standard library and the course's own libraries, and nothing else of the
kit: wire (frames) <- packing (values in them) <- bridge (calls with them) <- bench (answers calls)
<- stage_server <- server. trying runs tests for bench, recording notes what a call makes, raised
what it raises. lock puts the layers of landlock and seccomp around it, as a policy says. forbidden
and scratch import no other module here.
"""
