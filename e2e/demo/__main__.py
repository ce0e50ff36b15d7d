"""`python -m demo`: profile two local processes at once, then the same on a cluster if this machine can have one.

Set `DEMO=local` for the local processes alone, `CLUSTER=` for a kind of cluster, `DEMO_OUTPUT=` for the folder of the
files.
"""

import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from cluster import durations
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError, duration, echo, step
from cluster.provider import Provider
from cluster.providers import provider
from cluster.tools import tool
from mldiagnostics.errors import MLDiagnosticsError
from release.parts import PARTS
from rich.console import Console

from demo import diagnosis, installation, on_cluster, on_processes, preparation, viewing, waiting
from demo.kubectl import Kubectl
from demo.profiles import UnreadableError


def main() -> int:
    """Run the demo; return 0 if all profiles were captured and read."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    output = Path(os.environ.get("DEMO_OUTPUT", REPOSITORY / "demo-out")).absolute()
    alone = os.environ.get("DEMO") == "local"
    is_first_shown = False
    try:
        # Tools are fetched or built from the first second on: this is most of the time until there is a cluster.
        with nullcontext() if alone else preparation.Preparation() as tools:
            started = time.monotonic()
            on_processes.run(console, output)
            is_first_shown = True
            echo(f"First result after {duration(time.monotonic() - started)}; its files stay in {output}.")
            if tools is not None and (chosen := _cluster()) is not None:
                kubeconfig = _on_cluster(console, chosen, tools, output)
                echo(f"Result on the cluster after {duration(time.monotonic() - started)}.")
                echo(f"It keeps running: export KUBECONFIG={kubeconfig}. Run `make clean` to remove it.")
            viewing.how_to_view(console, output / on_processes.RUNS)
    except (ClusterError, MLDiagnosticsError, UnreadableError) as error:
        echo(f"\nThe demo failed: {error}")
        return 1
    except KeyboardInterrupt:
        if is_first_shown:
            echo(
                f"\nStopped. The first result stays in {output}. `make demo` continues with the cluster and uses the "
                "tools that are finished; `make demo DEMO=local` shows only the first result."
            )
        return 130
    return 0


def _cluster() -> Provider | None:
    """Return the cluster to use, or print the reason and return None."""
    try:
        return provider()
    except ClusterError as error:
        if os.environ.get("CLUSTER"):
            raise
        echo(f"\nThe same on a cluster is left out: {error}")
        return None


def _on_cluster(console: Console, chosen: Provider, tools: preparation.Preparation, output: Path) -> Path:
    """Show the result on a cluster; return its kubeconfig."""
    following = preparation.following(chosen)
    left_s = waiting.Countdown().left_s(preparation.preparing(chosen), time.monotonic())
    left = durations.about(left_s + durations.left_s(following, durations.load()))
    echo(f"\nThe same on a `{chosen.name}` cluster follows in about {left}. Ctrl-C ends the demo here.")
    waiting.wait(console, tools, lambda: preparation.preparing(chosen), following)
    if not chosen.running():
        with step(chosen.start.title, about_s=chosen.start.usual_s):
            chosen.up()
    kubectl = Kubectl(tool("kubectl"), chosen.kubeconfig)
    helm = installation.Helm(tool("helm"), chosen.kubeconfig)
    try:
        on_cluster.run(console, kubectl, helm, installation.prepare(chosen, PARTS), output)
    except ClusterError:
        for title, output_text in diagnosis.collect(kubectl).items():
            echo(f"\n--- {title}\n{output_text}")
        raise
    return chosen.kubeconfig


if __name__ == "__main__":
    sys.exit(main())
