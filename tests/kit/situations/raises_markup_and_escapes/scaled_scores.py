import math

SIGNS = "[bold red]red[/bold red] [/] [link=http://example.org]x[/link] \x1b[31mred\x1b[2J\x1b]0;title\x07 \u202egnp.exe\u202c \u200bzero"


def scaled_scores(q, k):
    raise ValueError(SIGNS)
