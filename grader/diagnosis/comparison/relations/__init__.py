"""How a wrong array relates to the right one.

pair <- axes, numbers, parts (the relations) <- finding (the one to tell)
"""
