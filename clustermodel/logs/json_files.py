"""Files in JSON: of which program they are, by the keys with which they begin, and their content."""

import json
import os
import re
from pathlib import Path
from typing import Any, Final

from clustermodel.errors import TraceError
from clustermodel.text.files import UNREADABLE, opened, whole_text

SACCT, BATSIM, ELASTISIM = "sacct", "batsim", "elastisim"
_BEGIN: Final = 65_536  # characters that tell what a file is


def kind_of_json(path: Path) -> str:
    """Return ``"batsim"``, ``"elastisim"`` or ``"sacct"`` of a file that looks like one in JSON; empty if it does not."""
    try:
        if not path.is_file():
            return ""
        with opened(path, newline="\n") as file:
            begin = file.read(_BEGIN)
    except UNREADABLE:
        return ""
    if not begin.lstrip().startswith("{"):
        return ""
    keys = {*re.findall(r'"(\w{1,20})"\s*:', begin)}
    for kind, telling in ((BATSIM, {"subtime", "nb_res"}), (ELASTISIM, {"application_model"}), (SACCT, {"meta", "jobs"})):
        if keys & telling:
            return kind
    return BATSIM if "profiles" in keys else ""


def content_of_json(path: str | os.PathLike[str], has: str) -> dict[str, Any]:
    """Return the object in a file, which ``has`` a list ``jobs``; a file that cannot be read, or has none, is a TraceError."""
    try:
        content = json.loads(whole_text(Path(path)))
    except TraceError:
        raise
    except (ValueError, RecursionError) as problem:
        raise TraceError(f"{path}: not readable as JSON: {problem}") from None
    except UNREADABLE as problem:
        raise TraceError(f"{path}: cannot be read: {getattr(problem, 'strerror', None) or problem}") from None
    if not isinstance(content, dict) or not isinstance(content.get("jobs"), list):
        raise TraceError(f"{path}: it has no list 'jobs', as {has}")
    return content
