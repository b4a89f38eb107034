// SPDX-License-Identifier: Apache-2.0

/* Counts what a program and its libraries allocate on the heap, and beside it, with mmap(2): LD_PRELOAD it, with
   ALLOCATION_COUNTS naming a file of a page. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

struct counts { _Atomic unsigned long long calls, bytes, mapped; };
static struct counts unshared, *counts = &unshared;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("ALLOCATION_COUNTS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, sizeof(struct counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED) counts = page;
}

static void count(size_t size) {
    atomic_fetch_add_explicit(&counts->calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts->bytes, size, memory_order_relaxed);
}

void *malloc(size_t size) { count(size); return __libc_malloc(size); }
void *calloc(size_t number, size_t size) { count(number * size); return __libc_calloc(number, size); }
void *realloc(void *old, size_t size) { count(size); return __libc_realloc(old, size); }
void *memalign(size_t alignment, size_t size) { count(size); return __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { count(size); return __libc_memalign(alignment, size); }
int posix_memalign(void **result, size_t alignment, size_t size) {
    count(size);
    *result = __libc_memalign(alignment, size);
    return *result ? 0 : 12; /* ENOMEM */
}

/* What malloc maps goes past this: it was counted where it was asked for. */
void *mmap(void *place, size_t size, int protection, int flags, int file, off_t offset) {
    if (flags & MAP_ANONYMOUS) atomic_fetch_add_explicit(&counts->mapped, size, memory_order_relaxed);
    return (void *)syscall(SYS_mmap, place, size, protection, flags, file, offset);
}
void *mmap64(void *place, size_t size, int protection, int flags, int file, off64_t offset) {
    return mmap(place, size, protection, flags, file, offset);
}
