"""The small edits of a learner's source, each of which undoes one mistake.

A rule takes a node, its source and its scope, and gives changes. Each module of rules lists them in
`RULES`, with the kinds of nodes that they are about:

edit <- source, syntax <- scope <- definitions, operations <- statements, results, calls, values
     <- finding
"""

# In the order of their imports: a worker is sent their text.
MODULES = (
    *("edit", "source", "syntax", "scope", "definitions", "operations", "statements", "results"),
    *("calls", "values", "finding"),
)
