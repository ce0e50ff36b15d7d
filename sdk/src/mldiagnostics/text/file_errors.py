"""Errors of file systems in messages, with their remedies; pure."""

from __future__ import annotations

import errno

_REMEDIES = {
    errno.ENOENT: "create the directory, mount its volume",
    errno.EEXIST: "remove the file that has the directory's name",
    errno.ENOTDIR: "remove the file that is a part of the path",
    errno.ELOOP: "replace the symbolic link by a file or directory",
    errno.EACCES: "grant this user access",
    errno.EPERM: "grant this user access",
    errno.EROFS: "mount the volume writable",
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "raise the quota",
    errno.EFBIG: "raise the limit on file sizes",
    errno.EIO: "check the disk, the network file system",
    errno.ESTALE: "check the network file system",
    errno.ETIMEDOUT: "check the network file system",
    errno.ENOTCONN: "check the mount of the file system",
}


def file_problem(error: OSError, instead: str = "choose another path") -> str:
    """Return the problem and its remedy, or another way out.

    >>> file_problem(OSError(errno.ENOSPC, "No space left on device"), "set TMPDIR")
    'No space left on device; free some space or set TMPDIR'
    """
    remedy = _REMEDIES.get(error.errno or 0, "check the file system")
    return f"{error.strerror or error}; {remedy} or {instead}"
