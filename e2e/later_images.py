"""`python -m later_images`: build the images of later cluster tests while the first ones run.

The tests build them as well: this one finds them in the cache, or waits for the same build.
"""

import signal
import sys

import bucket_servers
import injection_workloads
from cluster import images
from cluster.paths import REPOSITORY
from cluster.progress import ClusterError, echo
from cluster.providers import provider
from release.parts import COMMAND_LINE, XPROF


def main() -> int:
    """Build the images; without a cluster there is nothing to do."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stops a build too
    try:
        provider()
    except ClusterError as error:
        echo(str(error))
        return 0
    try:
        for image in (XPROF, COMMAND_LINE):
            images.build(image.dockerfile, REPOSITORY, image.default_image)
        bucket_servers.image()
        injection_workloads.peers_image()
    except ClusterError as error:
        echo(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
