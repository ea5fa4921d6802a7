"""Write the report of a stored study; the packages that make its page are imported when it is written."""

import os
from collections.abc import Sequence
from pathlib import Path

from clustermodel.errors import SpecificationError, missing_package
from clustermodel.experiment.store import Store
from clustermodel.text.files import write_file


def write_report(
    directory: str | os.PathLike[str], path: str | os.PathLike[str], *, runs: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Write the report of a stored study, and return the damaged runs, which it leaves out: key and damage of each.

    ``runs`` are keys, or prefixes of keys, of the runs with interactive figures; by default the first replications that fit.

    Raises:
        SpecificationError: the directory has no study, no run is done or has one of these keys, or a package of the
            extra ``report`` is missing.
        OutputError: the file cannot be written.
    """
    try:
        from clustermodel.report.html import report_page  # noqa: PLC0415  needs packages of the extra
    except ModuleNotFoundError as problem:
        package = str(problem.name).partition(".")[0]
        raise SpecificationError(missing_package("report", package, "report")) from None
    directory, path = Path(directory), Path(path)
    with Store.read(directory) as store:
        page, damaged = report_page(store, directory, runs), store.damaged()
    write_file(path, page)
    return damaged
