"""Examples of each verb, two or three, with which its help and its manual page begin."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "bench": (
        ("etude bench 'sort /etc/services' 'sort -n /etc/services'", "compare two commands"),
        ("etude bench -L level 1,6,9 'gzip -{level} -c /etc/services'", "over a parameter"),
    ),
    "run": (
        ("etude run --check bench.ap", "what a script would run"),
        ("etude run bench.ap TRIALS=20 -o results", "run it, with a variable set"),
    ),
    "io sweep": (
        ("etude io sweep --buffers 4K,64K,1M", "reading, over buffer sizes"),
        ("etude io sweep --write --totals 1..16M --trials 5", "writing, over file sizes"),
    ),
    "io lab": (
        ("etude io lab -o lab --format svg", "the whole lab, figures as SVG"),
        ("etude io lab --resume lab", "resumed where it was interrupted"),
    ),
    "io explain": (
        ("etude io explain lab/buffers", "what a sweep shows"),
        ("etude io explain lab/linking --csv linking.csv", "its trials as rows"),
    ),
    "io": (
        ("etude io create -t 64M data", "make a file of 64 MiB"),
        ("etude io read -b 1M -t 64M data", "measure reading it by 1 MiB"),
    ),
    "ipc": (
        ("etude ipc 2proc", "a pipe between two processes"),
        ("etude ipc -i tcp -b 64K 2proc", "a TCP socket, 64 KiB a write"),
    ),
    "stats": (
        ("etude stats results", "one result: tables and warnings"),
        ("etude stats --metric user --percentiles p50,p99 old new", "two results compared"),
    ),
    "report": (
        ("etude report results -o report.html", "an HTML page"),
        ("etude report old new --format markdown", "two results, as Markdown"),
    ),
    "plot": (
        ("etude plot results -o bars.pdf", "means with their intervals"),
        ("etude plot --kind ecdf results -o times.svg", "distributions of the trials"),
    ),
    "diff": (
        ("etude diff old new", "two results"),
        ("etude diff results now", "a result and the machine as it is now"),
    ),
    "why": (
        ("etude why results", "the first two tests: which causes, and how much of the difference"),
        ("etude why results old new --pairs 20", "two tests by name"),
        ("etude why results old --outliers", "why some trials of one test are slow"),
    ),
    "plan": (
        ("etude plan pilot --effect 2%", "trials to find a difference of 2 %"),
        ("etude plan pilot --deadline 2h", "what fits into two hours"),
    ),
    "export": (
        ("etude export results --format hyperfine -o times.json", "for hyperfine's scripts"),
        ("etude export results --format go", "for benchstat"),
    ),
    "bundle": (
        ("etude bundle results", "pack a results directory"),
        ("etude bundle --verify results-bundle.tar.gz", "verify a bundle"),
    ),
    "claims new": (
        ("etude claims new results -o claims.toml", "each comparison becomes a claim"),
        ("etude claims new results peak-server", "of several results, to standard output"),
    ),
    "claims check": (
        ("etude claims check claims.toml", "is anything missing here?"),
        ("etude claims check claims.toml --scale quick --pilot claims-run", "trials, time and disk"),
    ),
    "claims run": (
        ("etude claims run claims.toml -o claims-run", "decide all; typed again, it resumes"),
        ("etude claims run claims.toml faster --scale quick --json", "one claim, for a program"),
    ),
    "claims verify": (
        ("etude claims verify sorting-bundle.tar.gz", "every claim, as its authors ran it"),
        ("etude claims verify sorting-bundle.tar.gz --scale quick -o ours", "in a scale of the claims file"),
    ),
    "claims report": (
        ("etude claims report sorting -o claims.html", "a page"),
        ("etude claims report sorting --appendix latex -o appendix.tex", "the artifact appendix"),
    ),
    "capture": (
        ("etude capture -o tar.capture -- tar cf /dev/null /etc", "record, and make it ready for replay"),
        ("etude capture -q -o db.capture -- sqlite3 base 'vacuum'", "print only errors and warnings"),
    ),
    "replay": (
        ("etude replay tar.capture", "in the original's time, in a temporary place"),
        ("etude replay --timing none tar.roll files", "a roll, as fast as possible"),
    ),
    "record": (
        ("etude record -o tar.trace tar cf /dev/null /etc", "record a command"),
        ("etude record -p 4711 -o server.trace", "record a running process"),
    ),
    "profile": (
        ("etude profile tar.trace", "what a recording holds"),
        ("etude profile tar.trace replayed.trace", "a program and its replay side by side"),
    ),
    "script": (
        ("etude script tar.trace -o tar.script", "a script from a recording"),
        ("etude script repeat 10 tar.script -o tens.script", "ten times in a row"),
    ),
    "prepare": (
        ("etude prepare tar.script files", "build its files"),
        ("etude prepare --sync tar.roll files", "and wait until they are on disk"),
    ),
    "compile": (
        ("etude compile tar.script", "writes tar.roll"),
        ("etude compile -o /tmp/tar.roll tar.script", "to another file"),
    ),
    "load": (
        ("etude load --url http://localhost:8000/ --rate 200 --seconds 10", "an HTTP server"),
        ("etude load --directory served --preset web --rate 100 --seconds 10", "files in a directory"),
    ),
    "peak": (
        ("etude peak --simulate mm1:700", "try it on a simulated server"),
        ("etude peak --url http://localhost:8000/ --p99 100ms", "a server of HTTP"),
        ("etude peak server.toml -o found --figures figures", "any server, with figures"),
    ),
    "surface": (
        ("etude surface --simulate DB_TP --count 20", "try it on a simulated server"),
        ("etude surface map.toml -o found --figures figures", "a map, with figures"),
    ),
    "doctor": (("etude doctor", "findings with what they mean"), ("etude doctor --json", "as JSON")),
    "quiet": (
        ("etude quiet on --dry-run", "what it would change"),
        ("etude quiet off", "put everything back"),
    ),
    "cool": (
        ("etude cool none /usr/share/doc", "how much of it is cached"),
        ("etude cool drop /usr/share/doc", "drop the caches"),
    ),
    "hosts": (
        ("etude hosts lab.toml", "check each host of a file"),
        ("etude hosts ~/hosts/nfs.toml", "of another file"),
    ),
    "boot-resume": (
        ("etude boot-resume status", "what resumes at boot"),
        ("etude boot-resume install", "as root: resume scripts at boot"),
    ),
    "store add": (
        ("etude store add results --repository .", "with the commit of this repository"),
        ("etude store add results --commit 0064ab --tag v1", "with a commit and tag given by hand"),
    ),
    "store": (("etude store list", "stored results"), ("etude store tests", "their tests")),
    "history": (
        ("etude history sort", "steps of a test over time"),
        ("etude history sort --rules rules.toml --gate", "exit code 1 for an alert"),
    ),
    "history mark": (
        ("etude history mark sort 0064ab --why 'new algorithm'", "a step that is expected"),
        ("etude history mark sort 0064ab --metric user --why 'two threads'", "of one metric"),
    ),
    "compare": (
        ("etude compare v1 v2", "two tags"),
        ("etude compare machine:old machine:new --metric all", "two machines"),
    ),
    "bisect": (
        ("etude bisect v1.0 v1.1 --build make -- ./sort data", "which commit made it slower?"),
        ("etude bisect --resume etude-results/bisect-20261130T151616Z", "continue"),
    ),
    "completion": (
        ('eval "$(etude completion bash)"', "in ~/.bashrc, or ~/.zshrc"),
        ("etude completion fish > ~/.config/fish/completions/etude.fish", "for fish"),
    ),
}

OF_PROGRAMS = {
    "etude": (
        EXAMPLES["bench"][0],
        EXAMPLES["doctor"][0],
    ),
    "getstats": (
        ("getstats gcc-ext2.res gcc-ext3.res", "tables, with the overhead over the first file"),
        ("getstats --predicate '$delta < 0.05 * $mean' gcc-ext2.res", "exit status 1 where it does not hold"),
    ),
    "graphit": (
        ("graphit -mode=bar -graphfile=bar.png Ext2 ext2:1.res Ext4 ext4:1.res", "two bars"),
        ("graphit -mode=line -components=Elapsed -graphfile=line.png Ext4 'ext4:*.res'", "over the threads"),
    ),
}
"""Examples of the programs, for their manual pages."""


def example_lines(name: str) -> str:
    """The examples of a verb as its help shows them, or of a program."""
    lines = (EXAMPLES | OF_PROGRAMS)[name]
    return "examples:\n" + "".join(f"  {line}\n      {what}\n" for line, what in lines) + "\n"
