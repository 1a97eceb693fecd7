"""Every call that is held: a line adds one. `make golden` writes its golden file, whose name is made of its words.

What of the corpus a line names is laid into the working directory first. `{…}` stands for each of some words.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator

from etude.cli.main import ENGINE_VERBS, VERBS

HELP = [
    *(f"etude {verb} --help" for verb in (*VERBS, *ENGINE_VERBS)),
    *("etude", "etude --help", "etude --version", "etude nothing", "etude stats --style autopilot --help"),
    *(
        f"{program} {word}"
        for program in ("getstats", "graphit")
        for word in ("--help", "--version", "--nothing")
    ),
    "etude-engine --help",
    "etude-engine {serve,columns,trace,known-server,chill,residency,monitor,age,fill,fragments,precondition} --help",
    "etude-engine {flame-graph,measure} --help",
]
STATS = """
etude stats bench/{plain,alone,blocks,failed,aborted,timed-out,set-aside,workers,parameters,inner,duet}
etude stats bench/{interrupted,resumed,torn,cooled,windowed,told,warned,boots,older,newer,spoilt,markup}
etude stats run/{plain,interleaved,threads,failing,stopped,resumed,assigned,expected,probed,watched,watched-torn}
etude stats run/{leaking,older-machine,real}
etude stats --json bench/{plain,blocks,failed,parameters,resumed,windowed,warned,told,boots}
etude stats --json run/{interleaved,watched,expected,threads}
etude stats --all --wide bench/{plain,told,warned} run/{threads,watched}
etude stats --percentiles bench/{windowed,plain}
etude stats --percentiles p50,p95 --metric latency bench/windowed
etude stats --trim 10% --mean {harmonic,geometric} --error-bars {min-max,quartiles,deviation} bench/parameters
etude stats --trim 10% --error-bars {min-max,quartiles,deviation} bench/alone
etude stats --metric rate --reference 4KiB-direct bench/parameters
etude stats --same-within 2% --test {student,by-variance,permutation,bootstrap} bench/plain
etude stats --threshold drift=50% --no-warn outliers --all-warnings bench/warned
etude stats --predicate '$delta < 0.05 * $mean' {bench/plain,bench/warned}
etude stats --fail-if 'elapsed > baseline * 1.05' {bench/plain,run/expected}
etude stats --between-sessions 3% bench/plain bench/boots
etude stats bench/plain bench/resumed run/older-machine
etude stats {peak/posterior,peak/older,surface/full,surface/predicted,io/buffers}
etude stats readers/{hyperfine-1.json,hyperfine-2.json,perf-x.csv,fio.json,go.txt,time-v.txt,pyperf.json,asv.json}
etude stats readers/{pgbench.log,sysbench-cpu.txt,postmark-verbose.txt,table.csv}
etude stats readers/{hyperfine-summaries.json,io-lab-io.json}
etude stats autopilot/{appended,threads,cut-short,odd,empty}.res
etude stats bundles/{two.tar.gz,anonymous.tar.zst,no-logs,spoilt,newer}
etude stats --group size --select 'way eq "cached"' bench/parameters
etude stats --no-warn nothing bench/plain
etude stats nowhere
"""
REPORTS = """
etude report --format {markdown,latex} bench/{plain,parameters,failed,windowed,warned,markup,resumed}
etude report --format {markdown,latex} {run/expected,run/watched,run/interleaved,peak/posterior,surface/predicted}
etude report -o page.html {run/expected,run/real,bench/parameters,peak/region,surface/predicted,run/watched}
etude report -o page.html --title Copies --between-sessions 2% --same-within 2% bench/plain bench/boots
etude report --format markdown --metric user --reference b --confidence 99 bench/plain
etude report --format markdown peak/posterior peak/bracket
etude report --format markdown surface/pooled
etude report --format markdown io/buffers io/totals
etude report --format markdown bundles/two.tar.gz readers/hyperfine-1.json
etude report --format {markdown,latex} {replays/faithful.json,load/overloaded.jsonl}
etude report -o page.html {replays/changed.json,load/directory.jsonl}
etude report --format markdown replays/faithful.json load/known-server.jsonl bench/plain
"""
CLAIMS = """
etude claims new {run/expected,peak/posterior,run/plain}
etude claims new bench/plain peak/bracket
etude claims run nowhere.toml
"""
PLOTS = """
etude plot --data data -o x.svg --kind {bars,ratio,ecdf,box,violin,histogram,percentiles,timeline} bench/plain
etude plot --data data -o x.svg --kind lines --metric rate --x size --log xy --bars quartiles bench/parameters
etude plot --data data -o x.svg --metric elapsed,user,system --bars deviation postmark/ext4:1.res postmark/xfs:1.res
etude plot --data data -o x.svg --kind {pvalues,before-after} tables/linking.csv
etude plot --data data -o x.svg --kind pvalues --first 5 --welch bench/plain
etude plot --data data -o x.svg --kind timeline --threshold 0.11s=budget bench/{warned,resumed}
etude plot --data data -o x.svg --monitor run/{watched,real}
etude plot --data data -o x.svg --monitor --trial 5 --test a run/watched
etude plot --data data -o x.svg --monitor run/plain
etude plot --data data -o x.svg tables/{buffers,cooling}.csv
etude plot --data data -o x.svg {peak/posterior,surface/full,bench/older,readers/hyperfine-summaries.json}
etude plot -o x.gif bench/plain
graphit --mode=line --components=Elapsed,User --graphfile=x.svg ext4 'postmark/ext4:*.res' xfs 'postmark/xfs:*.res'
graphit --mode=bar --components=System,User --graphfile=x.svg ext2 postmark/ext2:1.res xfs postmark/xfs:1.res
graphit --mode bar --components Elapsed,Wait,CPU% --nostack --errorbars deviation --graphfile x.svg a bench/plain
graphit --mode bar --graphfile x.svg a bench/plain
"""
GETSTATS = """
getstats postmark/{ext2:1,ext4:4}.res
getstats tables/{gcc-ext2,gcc-ext3}.res
getstats autopilot/{appended,threads,cut-short,odd,empty}.res
getstats bench/{plain,failed,workers,parameters} run/threads
getstats readers/{table.csv,table.tsv,hyperfine-1.json,fio.json}
getstats --csv tables/gcc-ext2.res tables/gcc-ext3.res
getstats --dump {tables/gcc-ext2.res,autopilot/threads.res,readers/table.csv}
getstats --dump --csv postmark/ext4:2.res
getstats --errorbars {minmax,deviation} --confidence 99 tables/gcc-ext2.res
getstats {--twosamplet,--ftest,--levene} tables/gcc-ext2.res tables/gcc-ext3.res
getstats --predicate '$delta < 0.05 * $mean' --verbose tables/gcc-ext2.res
getstats --predicate '$delta < 0.0001 * $mean' --columns elapsed --verbose tables/gcc-ext2.res
getstats --from-summary tables/autopilot-figure-2.csv
getstats --from-summary tables/autopilot-figure-3.csv
getstats --select '$epoch > 2' --project epoch,elapsed --update 'double:s=$elapsed * 2' --dump tables/gcc-ext2.res
getstats --group command --describe --echo text autopilot/threads.res
getstats --aggregate 'epoch:elapsed=max,user=sum' --nostdtransforms autopilot/threads.res
getstats {--aggthreads,--unifycommand,--waitcpu,--exitfail,--negio,--warnz,--warnregress} autopilot/threads.res
getstats --warnrow '$elapsed > 2' slow --warncol '$sdev > 1' wide --warnval '$elapsed > 2.01' far autopilot/threads.res
getstats --concat --set precision=5 tables/gcc-ext2.res tables/gcc-ext3.res
getstats --rename elapsed=time --columns time tables/gcc-ext2.res
getstats --predicate '$nothing <' tables/gcc-ext2.res
getstats nowhere.res
etude stats --style autopilot --columns elapsed tables/gcc-ext2.res
"""
STORES = """
etude store {list,tests,check} --store stores/{history,results,revision-0001,revision-0009,damaged}.sqlite
etude store {list,tests} --json --store stores/{small,results,history}.sqlite
etude store check --store nowhere.sqlite
etude store forget 2 --store stores/small.sqlite
etude store forget 9 --store stores/small.sqlite
etude store add bench/alone --commit abcdef --committed 2026-02-03T04:05Z --tag x --store stores/small.sqlite
etude store add readers/hyperfine-1.json --machine lab-3 --store new.sqlite
etude store add readers/hyperfine-1.json --store new.sqlite
etude history sort --store stores/{history,small,revision-0001}.sqlite
etude history sort --machine host-a --json --store stores/history.sqlite
etude history sort --machine host-a --rules specs/usual.rules.toml --store stores/history.sqlite
etude history sort --machine host-a --rules specs/usual.rules.toml --gate --store stores/history.sqlite
etude history sort --machine host-b --rules specs/usual.rules.toml --backtest --store stores/history.sqlite
etude history compile --metric user --store stores/history.sqlite
etude history compile --metric user --rules specs/wrong.rules.toml --store stores/history.sqlite
etude history sort --machine host-a --page page.html --store stores/history.sqlite
etude history nothing --store stores/history.sqlite
etude history mark sort 0028 --why 'as planned' --store stores/history.sqlite
etude history mark nothing 0028 --why 'as planned' --store stores/history.sqlite
etude compare tag:v1 tag:v2 --store stores/history.sqlite
etude compare tag:v1 tag:v2 --json --store stores/history.sqlite
etude compare machine:host-a machine:host-b --metric all --store stores/history.sqlite
etude compare date:2026-01-10 date:2026-02-20 --test sort --store stores/history.sqlite
etude compare tag:v1 tag:v9 --store stores/history.sqlite
etude export --format {go,otava,conbench,markdown,openmetrics,github-smaller} --store stores/results.sqlite
etude export --format {bencher,hyperfine} --store stores/small.sqlite
"""
FORMATS = (
    "{bencher,conbench,github-bigger,github-smaller,go,hyperfine,hyperfine-2,hyperfine-csv,"
    "junit,markdown,openmetrics,otava}"
)
EXPORTS = f"""
etude export --format {FORMATS} {{bench/plain,run/expected}}
etude export --format {FORMATS} bench/failed readers/fio.json
etude export --format {{junit,markdown,hyperfine,openmetrics}} bench/{{windowed,markup,boots,parameters}}
etude export --format conbench --commit abc --repository https://github.com/a/b --reason nightly run/interleaved
etude export --format hyperfine --metric user --test a -o out.json bench/plain
etude export --format nothing bench/plain
"""
OTHERS = """
etude diff {bench/resumed,bench/warned,run/older-machine}
etude diff bench/plain bench/warned
etude diff run/expected run/older-machine
etude diff --all --json run/expected run/older-machine
etude diff --fail-if 'sysctl.*' bench/warned
etude diff bundles/two.tar.gz bench/plain
etude diff nowhere bench/plain
etude plan {bench/plain,bench/warned,run/expected,tables/gcc-ext2.res,readers/hyperfine-1.json}
etude plan --json bench/plain
etude plan --effect 5% --power 0.9 --deadline 2h bench/plain
etude plan --precision 1% --test a --metric user bench/plain
etude plan --deadline 10m bench/alone
etude bundle -o out bench/failed
etude bundle -o out --anonymous --no-logs run/threads bench/plain
etude bundle -o out.zip bench/plain
etude bundle --verify bundles/{two.tar.gz,anonymous.tar.zst,no-logs,spoilt,newer}
etude bundle --verify bench/plain
etude run --{check,list} autopilot/{plain,interleaved,threads,failing,loops,directives,including}.ap
etude run --check autopilot/wrong-{no-done,no-such-directive,bad-count,bad-condition,bad-loop,twice,exec-outside}.ap
etude run --check autopilot/plain.ap TRIALS=9 -I autopilot
etude run states/older.json
etude run --resume run/plain
etude bench --resume bench/plain
etude peak peak/{posterior,bracket,region,broken-promise,calibration,interrupted,older}
etude peak --json peak/{posterior,region,broken-promise,older}
etude peak peak/posterior peak/bracket
etude peak {specs/wrong.harness.toml,bench/plain}
etude peak --simulate mm1:300 --rehearse --searches 2 --policy bracket
etude surface surface/{full,predicted,failed,interrupted,pooled,simulated}
etude surface --json surface/{full,predicted,failed,interrupted}
etude surface --target 300 surface/predicted
etude surface {specs/wrong.surface.toml,bench/plain}
etude io explain {io/buffers,io/totals,bench/plain}
etude io explain --json io/{buffers,totals}
etude io explain --figures figures --format svg io/buffers
"""
ENGINE = """
etude profile traces/{copy,tar,pipes,cut-short,newer}.trace
etude profile --json --top 3 traces/{copy,tar,replayed}.trace
etude profile --partial traces/cut-short.trace
etude profile traces/tar.trace traces/replayed.trace
etude profile --json --script scripts/tar.script --roll rolls/tar.roll traces/tar.trace traces/replayed.trace
etude profile --figure x.svg traces/copy.trace
etude-engine trace events traces/{copy,tar,cut-short,newer}.trace
etude-engine trace import strace/copy.strace new.trace
etude script --events traces/{pipes,replayed}.trace
etude script traces/{copy,tar,pipes,cut-short,newer}.trace
etude script --keep pipes --waits none --report made.report -o made.script traces/pipes.trace
etude script --keep-names --map /data=/other traces/copy.trace
etude script check scripts/{copy,tar,pipes,newer,not-open}.script
etude script cut --from 0.01 --to 0.02 scripts/tar.script
etude script cut --files '**/b' scripts/tar.script
etude script filter --calls read,openat scripts/copy.script
etude script filter --classes metadata scripts/tar.script
etude script repeat 2 {scripts/copy.script,--own scripts/copy.script}
etude script merge {scripts/copy.script,--shared scripts/copy.script} scripts/tar.script
etude script clone 2 scripts/copy.script
etude script scale --sizes 2 --align 512 --gaps 0 scripts/tar.script
etude prepare scripts/{copy,newer}.script files
etude compile -o made.roll scripts/{copy,newer,not-open}.script
etude compile traces/copy.trace
etude replay rolls/older.roll nowhere
etude replay rolls/{tar,copy}.roll nowhere
etude load --preset webserver --show
etude load --preset nothing --show
etude io describe
"""


def expanded(line: str) -> Iterator[str]:
    """The lines that one with `{a,b}` stands for; braces without a comma are what they are."""
    parts = re.split(r"\{([^{}\s]*,[^{}\s]*)\}", line)
    choices = [part.split(",") if place % 2 else [part] for place, part in enumerate(parts)]
    return map("".join, itertools.product(*choices))


def name_of(line: str) -> str:
    """Of a call's golden file: its words, below the first one of a verb."""
    words = line.removeprefix("etude ").split(maxsplit=1)
    rest = re.sub(r"[^A-Za-z0-9.:%=,]+", "-", words[1] if len(words) > 1 else "alone").strip("-")
    rest = rest.replace(":", "-")
    if len(rest) > 90:
        rest = f"{rest[:80]}-{hashlib.sha256(line.encode()).hexdigest()[:8]}"
    return f"{words[0]}/{rest}"


GROUPS = (STATS, REPORTS, CLAIMS, PLOTS, GETSTATS, STORES, EXPORTS, OTHERS, ENGINE)
LINES = [*HELP, *(line for group in GROUPS for line in group.strip().splitlines())]
CALLS = {name_of(call): call for line in LINES for call in expanded(line)}
