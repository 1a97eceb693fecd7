"""``python -m etude``: the command line of one interpreter, where `etude` is not on the PATH."""

from etude.cli.main import entry

if __name__ == "__main__":
    entry()
