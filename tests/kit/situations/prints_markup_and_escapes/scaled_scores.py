import math

SIGNS = "[bold red]red[/bold red] [/] [link=http://example.org]x[/link] \x1b[31mred\x1b[2J\x1b]0;title\x07 \u202egnp.exe\u202c \u200bzero"


def scaled_scores(q, k):
    print(SIGNS)
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
