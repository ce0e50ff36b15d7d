"""Conditions of other machines, under which every test must pass as well."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SUPPORT = Path(__file__).parents[1]
BUSY = 8
"""Processes that compute beside the tests; eight on two cores are the load of a shared machine."""


@dataclass(frozen=True)
class Disturbance:
    """Variables and a command in front of the one that runs the tests; `python` is a version with its own environment.

    A variable `TESTS_X` is X for all tests (`support.suite.isolation`).
    """

    name: str
    about: str
    variables: Mapping[str, str] = field(default_factory=dict)
    before: Sequence[str] = ()
    python: str = ""

    def command(self, tests: Sequence[str]) -> list[str]:
        """Return the command that runs another one under this disturbance."""
        assigned = [f"{name}={value}" for name, value in self.variables.items()]
        return [*(["env", *assigned] if assigned else []), *self.before, *tests]

    def shown(self, tests: Sequence[str]) -> str:
        """Return the same command as a line for a shell."""
        return shlex.join(self.command(tests))


def zone(name: str, about: str) -> Disturbance:
    """Return the disturbance of a time zone."""
    return Disturbance(name, about, {"TESTS_TZ": name})


def fonts(name: str, about: str) -> Disturbance:
    """Return the disturbance of a set of fonts, which is a configuration of fontconfig in `tests/support/fonts`."""
    return Disturbance(name, about, {"TESTS_FONTCONFIG_FILE": str(SUPPORT / f"fonts/{name}.conf")})


def in_shell(script: str, *start: str) -> list[str]:
    """Return the start of a command that a script prepares, and runs as its arguments."""
    return [*start, "bash", "-c", script, "bash"]


BUSY_BESIDE = f'for each in {{1..{BUSY}}}; do (while :; do :; done) & done; "$@"; code=$?; kill $(jobs -p); exit $code'
# Without another network than its own, uv reads its cache alone.
NO_IPV6 = 'ip link set lo up && echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && UV_OFFLINE=1 exec "$@"'
# The caches of tools, of uv and of Go stay where they are.
READ_ONLY_HOME = (
    'export XDG_CACHE_HOME="${XDG_CACHE_HOME:-$HOME/.cache}" GOPATH="${GOPATH:-$HOME/go}" HOME=/proc; exec "$@"'
)

DISTURBANCES = (
    Disturbance("none", "a machine that does nothing else"),
    Disturbance("load", f"{BUSY} processes compute beside the tests", before=in_shell(BUSY_BESIDE)),
    Disturbance("nice", "the tests have the lowest priority", before=("nice", "-n", "19")),
    fonts("wide-fonts", "every family is the widest of the machine"),
    # Without any font, Chromium ends as soon as a page has a field for text.
    fonts("one-font", "a serif is the only font"),
    zone("America/New_York", "daylight saving, west of Greenwich"),
    zone("Australia/Lord_Howe", "daylight saving of half an hour, a day ahead"),
    zone("Europe/Dublin", "winter time is the exception"),
    Disturbance("read-only-home", "root cannot write to the home either", before=in_shell(READ_ONLY_HOME)),
    Disturbance("no-ipv6", "one interface, lo, without IPv6", before=in_shell(NO_IPV6, "unshare", "--net")),
    # After those that only root can make.
    Disturbance(
        "user",
        "not root, and without capabilities",
        before=("unshare", "--user", "--map-user=1000", "--map-group=1000"),
    ),
    Disturbance("temporary-folder", "a name with a space and other letters", {"TMPDIR": "/tmp/other tmp é"}),
    Disturbance("slow-disk", "Python waits for its files", {"PYTHONPATH": str(SUPPORT / "slow_disk")}),
    Disturbance("python3.13", "another Python", python="3.13"),
)


def together(disturbances: Sequence[Disturbance]) -> Disturbance:
    """Return one disturbance that makes several; of two values of a variable, or two Pythons, the last one counts."""
    return Disturbance(
        "+".join(each.name for each in disturbances),
        "; ".join(each.about for each in disturbances),
        {name: value for each in disturbances for name, value in each.variables.items()},
        [part for each in disturbances for part in each.before],
        next((each.python for each in reversed(disturbances) if each.python), ""),
    )


def chosen(names: Sequence[str]) -> tuple[Disturbance, ...]:
    """Return the named disturbances, all if none is named; `user+one-font` makes both in one run.

    Raises:
        ValueError: A name is not that of a disturbance.
    """
    known = [each.name for each in DISTURBANCES]
    parts = [set(name.split("+")) for name in names]
    if unknown := sorted(set().union(*parts).difference(known)):
        raise ValueError(f"{unknown[0]}: not a disturbance; choose from {', '.join(known)}")
    return tuple(together([each for each in DISTURBANCES if each.name in some]) for some in parts) or DISTURBANCES
