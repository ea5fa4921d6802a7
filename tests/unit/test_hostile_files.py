"""Files that somebody has sent: each is refused in one line, runs no code, and takes less than 500 MB."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clustermodel import Scenario, SpecificationError, read_csv
from clustermodel.errors import ClusterModelError
from clustermodel.logs.csv_jobs import read_muri

MOST_BYTES = 500 * 2**20
SMALL = "[workload]\nsynthetic = true\njobs = 30\n"
STREAM = "[workload.job_stream]\nnodes = 1\nrun_s = 3\narrivals = 5\n"

SCENARIOS = {
    "a command": 'policy = "os:system:command=touch called"\n' + SMALL,
    "an exit": 'policy = "os:_exit:status=0"\n' + SMALL,
    "a command in a table": 'policy = {name = "os:system", command = "touch called"}\n' + SMALL,
    "a module beside the file": 'policy = "evil:Evil"\n' + SMALL,
    "a predictor of a module": 'policy = "easy:predictor=evil:Evil"\n' + SMALL,
    "a speedup of a module": 'speedup = "evil:Evil"\n' + SMALL,
    "an attribute of scipy": "[workload.job_stream]\nnodes = 1\nrun_s = 3\narrivals = {scipy = '__loader__'}\n",
    "a type that is none": "[workload.job_stream]\nnodes = 1\nrun_s = 3\narrivals = {type = 'os.system'}\n",
    "a long integer": f"seed = {'9' * 5000}\n" + SMALL,
    "a long hexadecimal integer": f"seed = 0x{'f' * 5000}\n" + SMALL,
    "a long name of a trace": f'[workload]\ntrace = "{"x" * 5000}"\n',
    "a long name of a model": f'[workload]\nmodel = "{"x" * 5000}"\n',
    "a long name of a table": f'machine = "{"x" * 5000}.toml"\n' + SMALL,
    "a billion jobs": "[workload]\nsynthetic = true\njobs = 1_000_000_000\n",
    "a million million jobs of a model": '[workload]\nmodel = "blue-pacific"\njobs = 1_000_000_000_000\n',
    "a billion jobs of a stream": "[workload]\njobs = 1_000_000_000\n" + STREAM,
    "days without end": "[workload]\ndays = 100_000\n" + STREAM.replace("= 5", "= {type = 'Poisson', per_hour = 1e9}"),
    "a deep key": ".".join("a" * 50_000) + " = 1\n" + SMALL,
    "a deep key in quotes": "x = {" + ".".join(['"="', "'#'"] * 20_000) + " = 1}\n" + SMALL,
    "a deep heading": "[" + ".".join("a" * 50_000) + "]\n",
    "nested arrays": "a = " + "[" * 50_000 + "]" * 50_000 + "\n" + SMALL,
    "a key of escape codes": '"\\u001b[2J" = 1\n' + SMALL,
    "a model of zeros": '[workload]\nmodel = "/dev/zero"\n',
    "a trace of zeros": '[workload]\ntrace = "/dev/zero"\n',
    "a trace that is a pipe": '[workload]\ntrace = "pipe.swf"\n',
    "a machine that is a pipe": 'machine = "pipe.toml"\n' + SMALL,
    "outages of zeros": 'machine = {nodes = 4, failures = {outages = "/dev/zero"}}\n' + SMALL,
    "a large file of holes": 'workload = "holes.toml"\n',
    "a trace of holes": '[workload]\ntrace = "holes.swf"\n',
    "a trace that is a folder": '[workload]\ntrace = "folder"\n',
    "a link to itself": 'workload = "loop.toml"\n',
}
HEADER = "id,submit_time,num_gpu,duration\n"
TABLES: dict[str, bytes] = {
    "lone carriage returns": (HEADER + "1,0,1,5\n2,5,1,5\n").replace("\n", "\r").encode(),
    "a carriage return in a line": (HEADER + "1,0,1\r,5\n").encode(),
    "escape codes in the header": b"\x1b[2Jid,\x1b]0;x\x07,num_gpu,duration\n1,0,1,5\n",
    "many columns": (",".join(f"c{n}" for n in range(9000)) + "\n").encode(),
    "an unclosed quote": (HEADER + '"1,0,1,5\n').encode(),
    "zeros": bytes(10**6),
    "one long line": b"1," * 10**6,
    "a long number": (HEADER + f"1,0,1,{'9' * 5000}\n").encode(),
    "infinity": (HEADER + "1,0,1,inf\n").encode(),
    "no number": (HEADER + "1,0,1,=cmd|'/c calc'!A0\n").encode(),
    "too few fields": (HEADER + "1,0\n").encode(),
    "too many nodes": (HEADER + "1,0,1e300,5\n").encode(),
    "UTF-16": HEADER.encode("utf-16"),
    "random bytes": bytes(range(256)) * 50,
    "zeros, compressed": gzip.compress(bytes(10**8)),
    "compressed and cut": gzip.compress(HEADER.encode() * 100)[:-20],
    "not compressed": b"\x1f\x8bnothing",
    "nothing": b"",
    "a header only": HEADER.encode(),
    "blank lines": b"\n" * 10**5,
}
_ONE_RUN = (
    "import re, sys; from clustermodel.cli.main import main\n"
    "sys.argv[0] = 'clustermodel'\n"
    "try:\n    main()\nfinally:\n"
    "    print('peak', int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) * 1024)\n"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with what the files name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("from pathlib import Path\nPath('called').touch()\n")
    (tmp_path / "folder").mkdir()
    for name in ("pipe.swf", "pipe.toml"):
        os.mkfifo(name)
    for name in ("holes.toml", "holes.swf"):
        with open(name, "wb") as file:
            file.truncate(2**40)
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    return tmp_path


def refused(*arguments: str) -> str:
    """Return the line with which a command refuses a file, after a check of its memory."""
    finished = subprocess.run([sys.executable, "-P", "-c", _ONE_RUN, *arguments], capture_output=True, text=True, check=False)
    assert finished.returncode == 2, finished.stderr
    (line,) = finished.stderr.splitlines()
    assert line.startswith("clustermodel: error: "), line
    assert line.isprintable()
    assert len(line) < 1500
    (peak,) = finished.stdout.splitlines()
    assert int(peak.removeprefix("peak ")) < MOST_BYTES
    assert not Path("called").exists()
    return line


@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_hostile_scenario_is_refused_in_a_line(here: Path, name: str) -> None:
    (here / "sent.toml").write_text(SCENARIOS[name])
    assert "sent.toml" in refused("run", "sent.toml") or "loop.toml" in name or "holes" in SCENARIOS[name]


@pytest.mark.long
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("ending", ["csv", "swf"])
def test_a_hostile_trace_is_refused_in_a_line(here: Path, name: str, ending: str) -> None:
    (here / f"sent.{ending}").write_bytes(TABLES[name])
    assert f"sent.{ending}" in refused("run", "--trace", f"sent.{ending}", "--nodes", "4")


@pytest.mark.parametrize("name", TABLES)
def test_a_hostile_table_is_refused_in_a_line(here: Path, name: str) -> None:
    (here / "sent.csv").write_bytes(TABLES[name])
    columns = {"submit_s": "submit_time", "nodes": "num_gpu", "run_s": "duration"}
    for read in (read_muri, lambda path: read_csv(path, columns=columns)):
        with pytest.raises(ClusterModelError) as problem:
            read(here / "sent.csv")
        assert str(problem.value).isprintable()
        assert len(str(problem.value)) < 1500 + len(str(here))


def test_no_hostile_scenario_is_read(here: Path) -> None:
    for name, text in SCENARIOS.items():
        if name == "days without end":  # takes seconds
            continue
        (here / "sent.toml").write_text(text)
        with pytest.raises(SpecificationError) as problem:
            Scenario.from_toml("sent.toml")
        assert "\n" not in str(problem.value), name
    assert not (here / "called").exists()
