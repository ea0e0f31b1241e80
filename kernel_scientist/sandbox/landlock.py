"""Landlock: restrictions on file access. Linux enforces them irrevocably on this process and its children.

Source: the Linux kernel's Documentation/userspace-api/landlock.rst. Imports only the standard library.
"""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from kernel_scientist.sandbox.lifetime import PR_SET_NO_NEW_PRIVS, prctl

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG, PATH_BENEATH = 1, 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
ALL_OF_FIRST = (1 << 13) - 1
ADDED = {2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
"""Access rights by the Landlock version that introduced them: refer, truncate, ioctl on devices."""
READ = EXECUTE | READ_FILE | READ_DIR
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14 | 1 << 15
TCP, ABSTRACT_SOCKETS_AND_SIGNALS = 0b11, 0b11

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Return the version of Landlock on this system, 0 if it is unavailable."""
    found = _libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION_FLAG)
    return max(int(found), 0)


def restrict(read: Iterable[str], write: Iterable[str], network: bool = False) -> None:
    """Restrict this process to reading below `read` and full access below `write`; forbid TCP unless `network`.

    Missing paths are ignored. Raises OSError if this fails.
    """
    abi = version()
    rights = ALL_OF_FIRST | sum(right for since, right in ADDED.items() if abi >= since)
    attributes = [rights, TCP if abi >= 4 and not network else 0, ABSTRACT_SOCKETS_AND_SIGNALS if abi >= 6 else 0]
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    packed = struct.pack("<QQQ", *attributes)[:size]
    ruleset = _call(CREATE_RULESET, packed, ctypes.c_size_t(size), 0)
    try:
        for path in read:
            _allow(ruleset, path, READ & rights)
        for path in write:
            _allow(ruleset, path, rights)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        _call(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not Path(path).is_dir():
                rights &= FILE_RIGHTS
            _call(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("<Qi", rights, descriptor), 0)
        finally:
            os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    result = _libc.syscall(number, *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"landlock: {os.strerror(error)}")
    return int(result)
