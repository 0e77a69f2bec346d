"""The folder of compiled kernels: written atomically, and never loaded from where another user could have written.

It lies in Inductor's cache folder (TORCHINDUCTOR_CACHE_DIR), is made for the user alone, and every folder above it must
belong to the user or to root and keep others from replacing what is in it.
"""

from __future__ import annotations

import functools
import os
import stat
from pathlib import Path

__all__ = ["UnsafeCacheError", "folder", "path_of"]


class UnsafeCacheError(RuntimeError):
    """The cache folder, or one above it, can be written by another user."""


def path_of(key: str, suffix: str) -> Path:
    return folder() / f"{key}{suffix}"


def folder() -> Path:
    from torch._inductor.runtime.runtime_utils import cache_dir

    return _checked(cache_dir())


@functools.cache
def _checked(root: str) -> Path:
    path = Path(root) / "mybackend"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = path.resolve()
    for place in (path, *path.parents):
        if why := _unsafe(place, is_leaf=place == path):
            raise UnsafeCacheError(
                f"mybackend.compile does not load compiled code from {path}: {place} {why}. Set "
                f"TORCHINDUCTOR_CACHE_DIR to a folder that only you can write, or change the permissions "
                f"(chmod go-w {place})."
            )
    return path


def _unsafe(place: Path, is_leaf: bool) -> str | None:
    """Why others could put a file into `place`, or put another folder in its place."""
    status = place.stat()
    if status.st_uid not in ((os.getuid(),) if is_leaf else (os.getuid(), 0)):
        return f"belongs to user {status.st_uid}"
    if status.st_mode & stat.S_ISVTX and not is_leaf:
        return None
    if status.st_mode & stat.S_IWOTH:
        return "can be written by everyone"
    # A user's own group (as most distributions make one for each user) has no one else in it.
    if status.st_mode & stat.S_IWGRP and status.st_gid not in (os.getgid(), 0):
        return f"can be written by group {status.st_gid}"
    return None
