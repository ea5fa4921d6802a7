"""Scripts of studies refuse a trace that is not there in one line, and can be loaded without it."""

import ast
from pathlib import Path

import pytest

from clustermodel import ClusterModelError
from clustermodel.experiment.script import load_experiment, read_script

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def scripts_of_traces() -> list[Path]:
    """Return the scripts whose function `study` has a parameter `trace`."""
    return [
        path
        for path in sorted(SCENARIOS.rglob("*.py"))
        for node in ast.parse(read_script(path)).body
        if isinstance(node, ast.FunctionDef) and node.name == "study" and "trace" in {one.arg for one in node.args.args}
    ]


@pytest.mark.parametrize("path", scripts_of_traces(), ids=lambda path: str(path.relative_to(SCENARIOS)))
def test_a_missing_trace_is_named_in_one_line(path: Path) -> None:
    with pytest.raises(ClusterModelError, match=r"^nowhere\.swf: cannot be read: No such file or directory$"):
        load_experiment(path, read_script(path), {"trace": "nowhere.swf"}).run(workers=1)
