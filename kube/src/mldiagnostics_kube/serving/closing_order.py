"""The order in which connections give way to new ones.

Each step takes the same time for any number of connections.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from mldiagnostics_kube.serving.connection import Connection, Stage

_ADDRESSES = 8  # with more than their share, whose connections are looked at


@dataclass(slots=True)
class _Stages:
    """Connections by stage; the first of each has been in it for the longest time."""

    members: dict[Stage, OrderedDict[Connection, None]] = field(default_factory=dict)
    size: int = 0

    def add(self, connection: Connection) -> None:
        self.members.setdefault(connection.stage, OrderedDict())[connection] = None
        self.size += 1

    def remove(self, connection: Connection, stage: Stage) -> None:
        members = self.members[stage]
        del members[connection]
        if not members:
            del self.members[stage]
        self.size -= 1

    def first(self, young_since_s: float) -> Connection:
        firsts = (next(iter(members)) for members in self.members.values())
        return min(firsts, key=lambda each: each.rank(young_since_s))


class ClosingOrder:
    """The open connections of a server.

    The first to close is one of the address with most connections, if these are more than its share of the limit.

    Args:
        limit: Most connections at a time.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._all = _Stages()
        self._stages: dict[Connection, Stage] = {}
        self._of_address: dict[str, _Stages] = {}
        self._by_size: dict[int, OrderedDict[str, None]] = {}
        """Addresses by the number of their connections."""
        self._largest = 0

    def add(self, connection: Connection) -> None:
        """Add a connection in its stage."""
        self._stages[connection] = connection.stage
        self._all.add(connection)
        of_address = self._of_address.setdefault(connection.address, _Stages())
        of_address.add(connection)
        self._resize(connection.address, of_address.size - 1, of_address.size)

    def move(self, connection: Connection) -> None:
        """Note that a connection has entered a stage; one that was removed stays so."""
        before = self._stages.get(connection)
        if before is None:
            return
        for stages in (self._all, self._of_address[connection.address]):
            stages.remove(connection, before)
            stages.add(connection)
        self._stages[connection] = connection.stage

    def remove(self, connection: Connection) -> None:
        """Remove a connection."""
        stage = self._stages.pop(connection)
        of_address = self._of_address[connection.address]
        for stages in (self._all, of_address):
            stages.remove(connection, stage)
        self._resize(connection.address, of_address.size + 1, of_address.size)
        if not of_address.size:
            del self._of_address[connection.address]

    def count(self, stage: Stage) -> int:
        """Return how many connections are in a stage."""
        return len(self._all.members.get(stage, ()))

    def in_stage(self, stage: Stage) -> Iterator[Connection]:
        """Return the connections of a stage, the oldest first."""
        return iter(self._all.members.get(stage, ()))

    def first(self, young_since_s: float) -> Connection:
        """Return the connection to close.

        One with a request in flight is closed only if all have one.

        Args:
            young_since_s: Connections that began later and have sent nothing yet give way behind idle ones.
        """
        for address in self._unfair():
            connection = self._of_address[address].first(young_since_s)
            if connection.stage is not Stage.ANSWERING:
                return connection
        return self._all.first(young_since_s)

    def _unfair(self) -> Iterator[str]:
        """Yield the addresses with most connections, above their share."""
        share, left = self._limit / len(self._of_address), _ADDRESSES
        for size in range(self._largest, int(share), -1):
            for address in self._by_size.get(size, ()):
                yield address
                left -= 1
                if not left:
                    return

    def _resize(self, address: str, before: int, after: int) -> None:
        """Note the number of an address's connections, which changed by one."""
        if before:
            addresses = self._by_size[before]
            del addresses[address]
            if not addresses:
                del self._by_size[before]
        if after:
            self._by_size.setdefault(after, OrderedDict())[address] = None
        if after > self._largest:
            self._largest = after
        elif self._largest not in self._by_size:
            self._largest -= 1
