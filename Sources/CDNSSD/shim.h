// SPDX-License-Identifier: Apache-2.0

#ifndef CDNSSD_SHIM_H
#define CDNSSD_SHIM_H

#include <stdlib.h>

#include <avahi-common/malloc.h>
#include <dns_sd.h>

/// Memory that is zero from the start, where Avahi asks for memory and does not say what is in it.
///
/// `sdref_new()` of avahi-compat-libdns_sd 0.8 sets half of its struct. When the daemon dies under a live query,
/// `generic_client_callback()` tests the other half, the callbacks that were never set, and calls whatever the heap
/// held before: the process crashes. Zeroed memory makes those pointers null.
static inline void *cdnssd_zeroed(size_t size) {
    return calloc(1, size);
}

/// Makes Avahi's compatibility library safe to call. To be called before the first `dns_sd` call, once.
///
/// In C because the allocator has to live for ever at one address (`avahi_set_allocator` keeps the pointer), and
/// because a Swift closure cannot be a C function with Avahi's attributes. The environment variable silences the
/// library's advice, on every program's standard error, to use its native interface.
static inline void cdnssd_prepare(void) {
    static const AvahiAllocator allocator = {cdnssd_zeroed, free, realloc, calloc};
    avahi_set_allocator(&allocator);
    setenv("AVAHI_COMPAT_NOWARN", "1", 1);
}

#endif
