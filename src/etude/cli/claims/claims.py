"""`etude claims VERB`: what each verb runs."""

from etude.cli.claims.report import run as run_report
from etude.cli.claims.verify import run as run_verify

__all__ = ["run_report", "run_verify"]
