"""The workload models in the package."""

from importlib.resources import files
from typing import Final

_FOLDER: Final = files("clustermodel.workload") / "models"


def shipped_models() -> tuple[str, ...]:
    """Return the names of the models."""
    return tuple(sorted(entry.name.removesuffix(".json") for entry in _FOLDER.iterdir() if entry.name.endswith(".json")))


def shipped_model(name: str) -> str:
    """Return the text of a model, JSON."""
    return (_FOLDER / f"{name}.json").read_text(encoding="utf-8")
