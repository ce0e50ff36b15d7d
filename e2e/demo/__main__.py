"""`python -m demo`: run the demo on the first cluster that this machine supports, else on local processes.

Set `DEMO=local` for local processes, `CLUSTER=` for a kind of cluster, `DEMO_OUTPUT=` for the folder of the files.
"""

import os
import sys
from pathlib import Path

from cluster.paths import REPOSITORY
from cluster.progress import ClusterError, echo
from cluster.provider import Provider
from cluster.providers import provider
from cluster.tools import tool
from mldiagnostics.errors import MLDiagnosticsError
from release.parts import PARTS
from rich.console import Console

from demo import diagnosis, installation, on_cluster, on_processes
from demo.kubectl import Kubectl
from demo.profiles import UnreadableError


def main() -> int:
    """Run the demo; return 0 if all profiles were captured and read."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    output = Path(os.environ.get("DEMO_OUTPUT", REPOSITORY / "demo-out")).absolute()
    try:
        chosen = _cluster()
        if chosen is None:
            on_processes.run(console, output)
        else:
            _on_cluster(console, chosen, output)
    except (ClusterError, MLDiagnosticsError, UnreadableError) as error:
        echo(f"\nThe demo failed: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _cluster() -> Provider | None:
    """Return the cluster to use, or print the reason and return None for local processes."""
    if os.environ.get("DEMO") == "local":
        return None
    try:
        return provider()
    except ClusterError as error:
        if os.environ.get("CLUSTER"):
            raise
        echo(f"{error}\nThe demo runs without Kubernetes and captures two local processes.\n")
        return None


def _on_cluster(console: Console, chosen: Provider, output: Path) -> None:
    echo(f"Running on a `{chosen.name}` cluster: about 2 min, and longer the first time (tools and images).\n")
    chosen.up()
    kubectl = Kubectl(tool("kubectl"), chosen.kubeconfig)
    helm = installation.Helm(tool("helm"), chosen.kubeconfig)
    try:
        installation.prepare(chosen)
        values = [(part, installation.load_image(part, chosen)) for part in PARTS]
        on_cluster.run(console, kubectl, helm, values, output)
    except ClusterError:
        for title, output_text in diagnosis.collect(kubectl).items():
            echo(f"\n--- {title}\n{output_text}")
        raise
    echo(f"The cluster keeps running: export KUBECONFIG={chosen.kubeconfig}. Run `make clean` to remove it.")


if __name__ == "__main__":
    sys.exit(main())
