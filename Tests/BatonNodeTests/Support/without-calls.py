# SPDX-License-Identifier: Apache-2.0

# Runs a program on a kernel that lacks some calls, as it seems to the program and to whatever it starts: a filter
# (seccomp(2)) answers them as a file system or a container without them does.
#
#     without-calls.py rename,link PROGRAM ARGUMENTS...
#
# rename: renaming without replacing, which NFS and many others refuse with EINVAL. link: a second name for a file,
# which FAT refuses with EPERM. open: opening beneath a folder, which is younger than some kernels (ENOSYS). -: nothing.

import ctypes
import errno
import os
import platform
import struct
import sys

LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD+BPF_W+BPF_ABS, BPF_JMP+BPF_JEQ+BPF_K, BPF_RET+BPF_K
ALLOW, ERROR = 0x7FFF0000, 0x50000  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO
NUMBER, FLAGS = 0, 16 + 4 * 8  # in struct seccomp_data: nr, and the fifth argument

numbers = {"x86_64": (316, 265), "aarch64": (276, 37)}
renameat2, linkat = numbers[platform.machine()]
openat2 = 437

lacking = sys.argv[1].split(",")
program = [(LOAD, 0, 0, NUMBER)]
if "link" in lacking:
    program += [(EQUAL, 0, 1, linkat), (RETURN, 0, 0, ERROR | errno.EPERM)]
if "open" in lacking:
    program += [(EQUAL, 0, 1, openat2), (RETURN, 0, 0, ERROR | errno.ENOSYS)]
if "rename" in lacking:
    # Without flags it is an ordinary renaming.
    program += [(EQUAL, 0, 3, renameat2), (LOAD, 0, 0, FLAGS), (EQUAL, 1, 0, 0), (RETURN, 0, 0, ERROR | errno.EINVAL)]
program += [(RETURN, 0, 0, ALLOW)]


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.c_void_p)]


lines = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
filter = Filter(len(program), ctypes.addressof(lines))
SET_SECCOMP, FILTER = 22, 2
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(SET_SECCOMP, ctypes.c_ulong(FILTER), ctypes.byref(filter)) != 0:
    sys.exit("the filter was not taken: " + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[2], sys.argv[2:])
