import argparse
def add_parser(c):
    p=c.add_parser("verify"); p.set_defaults(run=lambda a: 2)
