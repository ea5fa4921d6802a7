"""Run what the pages in this folder show: their examples, and the ``clustermodel`` commands of README.md.

The package must be the installed one.  A command that reads a trace which is not here is left out, and said so.
"""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import clustermodel


def commands(page: Path) -> list[str]:
    """Return the clustermodel commands in the shell blocks of a page, lines joined where they end in a backslash."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [
        command[0]
        for line in lines
        if (command := re.findall(r"clustermodel (?:init|whatif|run|trace|sweep|results|report) .*", line))
    ]


def main() -> int:
    """Return the number of failures."""
    installed = Path(clustermodel.__file__)
    if "site-packages" not in installed.parts:
        print(f"the package is not the installed one: {installed}")
        return 1
    script = []
    for command in commands(Path("README.md")):
        missing = [name for name in re.findall(r"\S+\.swf\.gz", command) if not Path(name).is_file()]
        if missing:
            print(f"left out, no {missing[0]}: {command}", flush=True)
        else:
            script.append(command)
    pasted = subprocess.run(["bash", "-exc", "\n".join(script)], check=False, stdout=subprocess.DEVNULL)
    failures = int(pasted.returncode != 0)
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    for page in sorted(Path().glob("*.md")):
        found = doctest.testfile(str(page.resolve()), module_relative=False, optionflags=options)
        print(f"{page}: {found.attempted} examples, {found.failed} failed", flush=True)
        failures += found.failed
    return failures


if __name__ == "__main__":
    sys.exit(min(main(), 1))
