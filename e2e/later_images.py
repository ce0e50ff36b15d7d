"""`python -m later_images`: build the images of later cluster tests while the first ones run.

The tests build them as well: this one finds them in the cache, or waits for the same build.
"""

import sys

import bucket_servers
import injection_workloads
from cluster import images
from cluster.paths import REPOSITORY
from cluster.provider import Provider
from demo.preparation import prepare
from release.parts import COMMAND_LINE, XPROF


def build_later_images(_: Provider) -> None:
    """Build the images, unless they are there or cannot be built here."""
    if images.obstacle() is None:
        for image in (XPROF, COMMAND_LINE):
            images.build(image.dockerfile, REPOSITORY, image.default_image)
        bucket_servers.image()
        injection_workloads.peers_image()


if __name__ == "__main__":
    sys.exit(prepare([build_later_images]))
