"""Compressed files: what they may grow to, and what is refused before it fills the memory."""

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from clustermodel.errors import TraceError
from clustermodel.logs.trace_file import read_trace
from clustermodel.text import files

LINE = b"1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n"


@pytest.fixture(autouse=True)
def few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ALWAYS_READ", 100_000)
    monkeypatch.setattr(files, "LARGEST_WHOLE", 100_000)


@pytest.mark.parametrize(("name", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
@pytest.mark.parametrize("content", [LINE, b"\n", b"1|2\n", b'{"jobs": [{}, {}, {}]}\n', b"\0", b"\xff"])
def test_a_file_that_grows_more_than_logs_do_is_refused(
    tmp_path: Path, name: str, compress: Callable[[bytes], bytes], content: bytes
) -> None:
    path = tmp_path / f"log.swf.{name}"
    path.write_bytes(compress(content * (8_000_000 // len(content))))
    most = max(files.LARGEST_GROWTH * path.stat().st_size, 100_000)
    read = 0
    with files.decompressed(path) as file, pytest.raises(TraceError) as refused:  # noqa: PT012
        while part := file.read(4096):
            read += len(part)
    assert read <= most  # and no more of it is kept
    assert str(refused.value) == (
        f"{path}: the compressed data grows to more than {most:,} bytes; it may grow to 256 times the size of the file, or to "
        "100,000 bytes; decompress it first"
    )
    with pytest.raises(TraceError, match=f"^{path}[^\n]*$"):
        read_trace(path)


def test_what_logs_grow_by_is_read(tmp_path: Path) -> None:
    lines = b"".join(b"%d %d 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n" % (job, job) for job in range(1, 20_001))
    for name, compress in (("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)):
        (tmp_path / f"log.swf.{name}").write_bytes(compress(lines))
        assert len(read_trace(tmp_path / f"log.swf.{name}")) == 20_000
    assert len(lines) > 100_000


def test_a_large_file_is_not_read_as_a_whole(tmp_path: Path) -> None:
    for path in (tmp_path / "jobs.json", tmp_path / "jobs.json.gz"):
        content = b'{"jobs": [' + b'{"job_id": 1, "time": {}},' * 5_000
        path.write_bytes(content if path.suffix == ".json" else gzip.compress(content, 1))
        with pytest.raises(TraceError, match=r"it has more than 100,000 bytes$|grows to more than"):
            read_trace(path)


def test_a_zip_archive_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as archive:
        archive.writestr("log.swf", LINE)
    with pytest.raises(TraceError, match=r"log.zip: it is a zip archive; extract the file"):
        read_trace(tmp_path / "log.zip")
