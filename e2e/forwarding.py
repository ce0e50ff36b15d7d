"""Ports of pods on this machine, by `kubectl port-forward`."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from demo.kubectl import Kubectl


@contextmanager
def forwarded(kubectl: Kubectl, namespace: str, resource: str, ports: Sequence[int]) -> Iterator[list[int]]:
    """Forward ports of a pod while the block runs; yield their ports on this machine, in order."""
    command = [str(kubectl.binary), f"--kubeconfig={kubectl.kubeconfig}", "port-forward", f"--namespace={namespace}"]
    command += [resource, *(f":{port}" for port in ports)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            here: dict[int, int] = {}
            while len(here) < len(ports):
                line = process.stdout.readline()  # one for each port, of IPv4 and of IPv6
                match = re.search(r":(\d+) -> (\d+)", line)
                assert match, f"{resource}: {line}"
                here[int(match[2])] = int(match[1])
            yield [here[port] for port in ports]
        finally:
            process.terminate()
