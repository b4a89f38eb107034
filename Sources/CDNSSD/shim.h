// SPDX-License-Identifier: Apache-2.0

/// The functions of Avahi's libdns_sd that Baton calls, loaded at the first reference.
///
/// They are not linked. The library brings nine others, libdbus and libsystemd among them, and every process that links
/// them pays at its start. The cost was measured: 1.5 ms for each `baton` command.
#ifndef CDNSSD_SHIM_H
#define CDNSSD_SHIM_H

#include <dlfcn.h>
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

/// The loaded functions. They never change after `cdnssd_load` and are never unloaded.
struct cdnssd {
    __typeof__(DNSServiceRegister) *start_registration;
    __typeof__(DNSServiceBrowse) *start_browsing;
    __typeof__(DNSServiceQueryRecord) *start_query;
    __typeof__(DNSServiceUpdateRecord) *update_record;
    __typeof__(DNSServiceProcessResult) *process_result;
    __typeof__(DNSServiceRefSockFD) *descriptor;
    __typeof__(DNSServiceRefDeallocate) *end;
};

/// Loads Avahi's compatibility library (ABI 1), fills `library`, and makes it safe to call. Returns 0 if it
/// is not installed or lacks a function. Call it until it has succeeded.
///
/// It is in C for two reasons. The allocator must stay at one address for ever, because `avahi_set_allocator` keeps the
/// pointer. And a Swift closure cannot be a C function with Avahi's attributes. The environment variable silences the
/// library's advice to use its native interface, which it prints on standard error.
static inline int cdnssd_load(struct cdnssd *library) {
    static const AvahiAllocator allocator = {cdnssd_zeroed, free, realloc, calloc};
    void *handle = dlopen("libdns_sd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) return 0;
    *(void **)&library->start_registration = dlsym(handle, "DNSServiceRegister");
    *(void **)&library->start_browsing = dlsym(handle, "DNSServiceBrowse");
    *(void **)&library->start_query = dlsym(handle, "DNSServiceQueryRecord");
    *(void **)&library->update_record = dlsym(handle, "DNSServiceUpdateRecord");
    *(void **)&library->process_result = dlsym(handle, "DNSServiceProcessResult");
    *(void **)&library->descriptor = dlsym(handle, "DNSServiceRefSockFD");
    *(void **)&library->end = dlsym(handle, "DNSServiceRefDeallocate");
    // Of libavahi-common, which libdns_sd links.
    __typeof__(avahi_set_allocator) *set_allocator;
    *(void **)&set_allocator = dlsym(handle, "avahi_set_allocator");
    if (library->start_registration == NULL || library->start_browsing == NULL || library->start_query == NULL
        || library->update_record == NULL || library->process_result == NULL || library->descriptor == NULL
        || library->end == NULL || set_allocator == NULL)
        return 0;
    set_allocator(&allocator);
    setenv("AVAHI_COMPAT_NOWARN", "1", 1);
    return 1;
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
