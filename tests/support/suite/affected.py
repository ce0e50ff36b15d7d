"""Which tests a change can affect, the nearest first."""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath

# Tests of files that no Python file imports.
TESTS_OF = {
    "charts/": "tests/manifests/",
    "kustomize/": "tests/manifests/",
    "view/web/": "tests/view/web/",
    "examples/": "tests/examples/",
    ".github/": "tests/layout/",
    "docs/": "tests/layout/",
    "Makefile": "tests/layout/",
    "pyproject.toml": "tests/layout/",
}
# They check the shape of the whole tree, in seconds.
ALWAYS = ("tests/layout/test_names.py", "tests/layout/test_repository.py")


def affected(changed: Collection[str], imports: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the test files that a change can affect, the nearest first.

    Distance 0 is a changed test, 1 a test that mirrors a changed file or imports it, 2 one that imports a module
    that imports it, and so on.

    Args:
        changed: Paths that changed.
        imports: The files that each Python file uses.
    """
    tests = [path for path in imports if _is_test(path)]
    reached = distances(changed, imports)
    for path in changed:
        for test in tests:
            if mirrors(test, path) or _stands_for(test, path):
                reached[test] = min(reached.get(test, 1), 1)
    reached |= {test: reached.get(test, 1) for test in ALWAYS if test in imports and changed}
    return sorted((test for test in tests if test in reached), key=lambda test: (reached[test], test))


def distances(changed: Iterable[str], imports: Mapping[str, frozenset[str]]) -> dict[str, int]:
    """Return how many imports each file is away from a changed one."""
    users: dict[str, set[str]] = {}
    for path, used in imports.items():
        for each in used:
            users.setdefault(each, set()).add(path)
    reached = dict.fromkeys(changed, 0)
    edge, steps = set(reached), 0
    while edge:
        steps += 1
        edge = {user for path in edge for user in users.get(path, ())} - reached.keys()
        reached |= dict.fromkeys(edge, steps)
    return reached


def mirrors(test: str, source: str) -> bool:
    """Return whether a test stands where a source file, or the folder of it, has its tests."""
    if not (match := re.match(r"(\w+)/src/\w+/(.*)\.\w+$", source)):
        return False
    inner = PurePosixPath(match[1], match[2])
    return any(
        PurePosixPath(test).parent == PurePosixPath("tests") / each.parent
        and re.match(rf"test_{re.escape(each.name.strip('_'))}(?:_\w+)?\.py$", PurePosixPath(test).name)
        for each in (inner, inner.parent)
    )


def _stands_for(test: str, path: str) -> bool:
    return any(path.startswith(start) and test.startswith(tests) for start, tests in TESTS_OF.items())


def _is_test(path: str) -> bool:
    return path.startswith("tests/") and PurePosixPath(path).name.startswith("test_")
