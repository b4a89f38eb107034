# SPDX-License-Identifier: Apache-2.0

# Says where in the memory of a process the bytes of a file are, a line each: those at the start of a page, where
# secrets have pages of their own, are left out. Needs to be root.
#
#     memory-places.py PROCESS FILE

import sys

PAGE = 4096
with open(sys.argv[2], "rb") as file:
    needle = file.read()
read = 0
with open(f"/proc/{sys.argv[1]}/maps") as maps, open(f"/proc/{sys.argv[1]}/mem", "rb", 0) as memory:
    for line in maps:
        fields = line.split()
        start, end = (int(bound, 16) for bound in fields[0].split("-"))
        if not fields[1].startswith("rw"):
            continue
        try:
            memory.seek(start)
            content = b""
            while len(content) < end - start and (part := memory.read(end - start - len(content))):
                content += part
        except OSError:
            continue
        read += len(content)
        index = -1
        while (index := content.find(needle, index + 1)) >= 0:
            if (start + index) % PAGE:
                print(f"{start + index:x}", *fields[5:])
if not needle or not read:
    sys.exit("there was nothing to look for, or nothing to look at")
