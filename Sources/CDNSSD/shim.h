// SPDX-License-Identifier: Apache-2.0

#ifndef CDNSSD_SHIM_H
#define CDNSSD_SHIM_H

#include <errno.h>
#include <linux/filter.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <avahi-common/malloc.h>
#include <dns_sd.h>

/// Allocates zeroed memory for Avahi, which does not initialize all of it.
///
/// `sdref_new()` of avahi-compat-libdns_sd 0.8 sets half of its struct. If the daemon dies during a query,
/// `generic_client_callback()` tests the other half, callbacks that were never set. It then calls whatever the heap
/// held before, and the process crashes. Zeroed memory makes those pointers null.
static inline void *cdnssd_zeroed(size_t size) {
    return calloc(1, size);
}

/// Makes Avahi's compatibility library safe to call. Call it once, before the first `dns_sd` call.
///
/// It is in C for two reasons. The allocator must stay at one address for ever, because `avahi_set_allocator` keeps the
/// pointer. And a Swift closure cannot be a C function with Avahi's attributes. The environment variable silences the
/// library's advice to use its native interface, which it prints on standard error.
static inline void cdnssd_prepare(void) {
    static const AvahiAllocator allocator = {cdnssd_zeroed, free, realloc, calloc};
    avahi_set_allocator(&allocator);
    setenv("AVAHI_COMPAT_NOWARN", "1", 1);
}

/// Lets a UDP socket take only multicast DNS responses whose first record belongs to an instance of one service type.
///
/// Anything else is dropped in the kernel and wakes nobody. In C because Swift does not see linux/filter.h.
///
/// - Parameter type: the length byte of the type's first label and its first three characters, in network order.
/// - Returns: zero, or the negated error number.
static inline int cdnssd_keep_announcements(int descriptor, uint32_t type) {
    // Offsets count from the UDP header: 8 bytes of that, then 12 of the DNS header, then the name of the first record.
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 8 + 2),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x80, 0, 5),  // not a response
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 8 + 12),        // the length of the instance's name
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_IND, 8 + 13),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, type, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog filter = {sizeof program / sizeof *program, program};
    return setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0 ? 0 : -errno;
}

#endif
