"""Only mounts of the cluster are removed from a machine."""

from cluster.host import mounts_below

MOUNTINFO = """\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 21 0:40 / /run/ours rw - tmpfs tmpfs rw
31 30 0:41 / /run/ours/pod\\040volumes/token rw - tmpfs tmpfs rw
32 21 0:42 / /run/ours-not rw - tmpfs tmpfs rw
33 21 0:43 / /var/lib/ours/rootfs rw - overlay overlay rw
34 33 0:44 / /var/lib/ours/rootfs/proc rw - proc proc rw
"""


def test_only_mounts_below_are_unmounted_the_innermost_first() -> None:
    assert mounts_below(MOUNTINFO, ["/run/ours", "/var/lib/ours"]) == [
        "/var/lib/ours/rootfs/proc",
        "/var/lib/ours/rootfs",
        "/run/ours/pod volumes/token",
        "/run/ours",
    ]
