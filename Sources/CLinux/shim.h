// SPDX-License-Identifier: Apache-2.0

/// Linux system calls that Swift does not import from Glibc.
///
/// Every function returns what the kernel returns: a value of zero or more, or the negated error number. So no caller
/// has to read `errno` before the Swift run time changes it. None of them retries: a caller that may be interrupted
/// (EINTR) repeats the call.
#ifndef BATON_CLINUX_SHIM_H
#define BATON_CLINUX_SHIM_H

#include <errno.h>
#include <linux/falloc.h>
#include <linux/openat2.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

/// unistd.h hides this without _GNU_SOURCE, which has no effect after another module has included features.h. Swift
/// cannot call it, because it is variadic.
extern long syscall(long number, ...);

/// Converts the C library's convention (-1 and errno) into one value.
static inline int baton_result(long value) {
    return value < 0 ? -errno : (int)value;
}

/// openat2(2), which has no wrapper in the C library. -ENOSYS before Linux 5.6.
static inline int baton_openat2(int folder, const char *name, uint64_t flags, uint64_t mode, uint64_t resolve) {
    struct open_how how = {.flags = flags, .mode = mode, .resolve = resolve};
    return baton_result(syscall(SYS_openat2, folder, name, &how, sizeof how));
}

/// O_PATH | O_CLOEXEC. fcntl.h hides the first without _GNU_SOURCE, and would define struct stat here as well.
enum { baton_path_flags = 010000000 | 02000000 };

/// Opens `name` beneath `folder` and never leaves it, whatever `name` is and whatever links are on the way.
static inline int baton_open_beneath(int folder, const char *name, uint64_t flags, uint64_t mode) {
    return baton_openat2(
        folder, name, flags, mode, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/// A descriptor that only names a file beneath `folder`. -EXDEV if a component or a link on the way leaves the folder.
/// Links that stay inside are followed; an absolute link never does.
static inline int baton_find_beneath(int folder, const char *name) {
    return baton_openat2(folder, name, baton_path_flags, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

/// The same without following any link, so that a path is inspected without being opened (which has effects on a device
/// or a pipe). -ELOOP for a link, at the end and on the way.
static inline int baton_look_beneath(int folder, const char *name) {
    return baton_openat2(
        folder, name, baton_path_flags, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/// Like baton_open_beneath, for an existing file on the same mount (-EXDEV otherwise). It is for removing, which must
/// not reach a file system that is only mounted there.
static inline int baton_open_within(int folder, const char *name, uint64_t flags) {
    return baton_openat2(
        folder, name, flags, 0,
        RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
}

/// A file as its inode, its size, and when content and entry last changed (seconds and nanoseconds each).
struct baton_file_state {
    uint64_t inode;
    int64_t size;
    int64_t times[4];
};

/// The state of a file as the kernel has it in memory: openat2(2) with RESOLVE_CACHED, then statx(2) with
/// AT_STATX_DONT_SYNC. -EAGAIN if the kernel would have to wait for a disk or a server. -EINVAL before Linux 5.12. The
/// fields of `struct statx` are at the kernel's offsets in its 256 bytes.
static inline int baton_cached_state(const char *path, struct baton_file_state *state) {
    enum { at_fdcwd = -100, empty_path = 0x1000, dont_sync = 0x4000, basic_stats = 0x7ff, resolve_cached = 0x20 };
    int file = baton_openat2(at_fdcwd, path, baton_path_flags, 0, resolve_cached);
    if (file < 0) return file;
    uint64_t status[32];
    int result = baton_result(syscall(SYS_statx, file, "", empty_path | dont_sync, basic_stats, status));
    syscall(SYS_close, file);
    if (result < 0) return result;
    state->inode = status[4];
    state->size = (int64_t)status[5];
    state->times[0] = (int64_t)status[14];
    state->times[1] = (uint32_t)status[15];
    state->times[2] = (int64_t)status[12];
    state->times[3] = (uint32_t)status[13];
    return 0;
}

/// epoll(7), whose header would define thread types here as well. The kernel's struct is packed on x86-64 only.
struct baton_epoll_event {
    uint32_t events;
    uint64_t key;
}
#if defined(__x86_64__)
__attribute__((packed))
#endif
;

/// EPOLLIN, EPOLLOUT, and the events that are always reported: EPOLLERR, EPOLLHUP.
enum { baton_epoll_in = 0x1, baton_epoll_out = 0x4, baton_epoll_broken = 0x8 | 0x10 };

/// EPOLLIN | EPOLLET: each write is reported once, and nothing needs to be read.
static const uint32_t baton_epoll_each_write = 0x1u | 1u << 31;

/// The most events of one call of baton_epoll_wait.
enum { baton_epoll_batch = 64 };

/// epoll_create1(2) with EPOLL_CLOEXEC.
static inline int baton_epoll_create(void) {
    return baton_result(syscall(SYS_epoll_create1, 02000000));
}

/// epoll_ctl(2): watches `descriptor` for `events` in place of `before`, and reports them with `key`. 0 means no watch.
static inline int baton_epoll_watch(int poll, int descriptor, uint32_t before, uint32_t events, uint64_t key) {
    struct baton_epoll_event event = {events, key};
    const int add = 1, remove = 2, modify = 3;
    const int operation = before == 0 ? add : events == 0 ? remove : modify;
    return baton_result(syscall(SYS_epoll_ctl, poll, operation, descriptor, &event));
}

/// accept4(2) of a socket that does not block and is closed on exec. fcntl.h hides the wrapper without _GNU_SOURCE.
static inline int baton_accept(int listener, void *address, uint32_t *length) {
    return baton_result(syscall(SYS_accept4, listener, address, length, 02000000 | 04000));
}

/// eventfd2(2) that never blocks.
static inline int baton_event_create(void) {
    return baton_result(syscall(SYS_eventfd2, 0, 02000000 | 04000 /* EFD_CLOEXEC, EFD_NONBLOCK */));
}

/// timerfd_create(2) on CLOCK_BOOTTIME that never blocks.
static inline int baton_timer_create(void) {
    const int boottime = 7;
    return baton_result(syscall(SYS_timerfd_create, boottime, 02000000 | 04000 /* TFD_CLOEXEC, TFD_NONBLOCK */));
}

/// timerfd_settime(2) for once, at so many nanoseconds of that clock; 0 means never. A past time is now.
static inline int baton_timer_set(int timer, uint64_t nanoseconds) {
    const int64_t times[4] = {0, 0, (int64_t)(nanoseconds / 1000000000), (int64_t)(nanoseconds % 1000000000)};
    return baton_result(syscall(SYS_timerfd_settime, timer, 1 /* TFD_TIMER_ABSTIME */, times, (void *)0));
}

/// epoll_wait(2) for at most so many milliseconds. It fills the front of both arrays, which have baton_epoll_batch
/// elements.
static inline int baton_epoll_wait(int poll, int milliseconds, uint32_t *events, uint64_t *keys) {
    struct baton_epoll_event taken[baton_epoll_batch];
    const int count =
        baton_result(syscall(SYS_epoll_pwait, poll, taken, baton_epoll_batch, milliseconds, (void *)0, 8ul));
    for (int index = 0; index < count; index++) {
        events[index] = taken[index].events;
        keys[index] = taken[index].key;
    }
    return count;
}

/// getdents64(2): the next entries of an open folder, as a number of bytes; 0 at the end. Each is a struct
/// linux_dirent64: inode 8 bytes, offset 8, length 2, type 1, name with its NUL. readdir(3) would own the descriptor.
static inline int baton_read_folder(int folder, void *entries, size_t size) {
    return baton_result(syscall(SYS_getdents64, folder, entries, size));
}

/// renameat2(2) with RENAME_NOREPLACE, which stdio.h hides without _GNU_SOURCE: moves a file within one folder and
/// never replaces one. -EEXIST if `to` exists, -EINVAL if the file system does not support it.
static inline int baton_rename_without_replacing(int folder, const char *from, const char *to) {
    const unsigned no_replace = 1; /* RENAME_NOREPLACE; linux/fs.h has it, and clashes with sys/mount.h */
    return baton_result(syscall(SYS_renameat2, folder, from, folder, to, no_replace));
}

/// fallocate(2) with FALLOC_FL_KEEP_SIZE, hidden without _GNU_SOURCE: reserves space without changing the size, so that
/// a full disk shows before the first byte. -EOPNOTSUPP if the file system cannot. Each argument is one register, which
/// is true on 64-bit systems only, as for Swift on Linux.
static inline int baton_reserve(int file, int64_t offset, int64_t length) {
    return baton_result(syscall(SYS_fallocate, file, FALLOC_FL_KEEP_SIZE, offset, length));
}

/// fallocate(2) with FALLOC_FL_PUNCH_HOLE: makes bytes zeros and frees their space. -EOPNOTSUPP if the file system has
/// no holes.
static inline int baton_punch_hole(int file, int64_t offset, int64_t length) {
    return baton_result(syscall(SYS_fallocate, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length));
}

/// UTIME_OMIT of utimensat(2), which sys/stat.h hides without _GNU_SOURCE.
static inline long baton_omitted_time(void) {
    return (1l << 30) - 2l;
}

/// sync_file_range(2) with SYNC_FILE_RANGE_WRITE, hidden without _GNU_SOURCE: starts to write dirty pages of the range
/// to disk, and does not wait. It makes nothing durable; only fsync does.
static inline int baton_start_writeback(int file, int64_t offset, int64_t length) {
    const unsigned write = 2; /* SYNC_FILE_RANGE_WRITE */
#if defined(SYS_sync_file_range)
    return baton_result(syscall(SYS_sync_file_range, file, offset, length, write));
#else
    return baton_result(syscall(SYS_sync_file_range2, file, write, offset, length));
#endif
}

/// fcntl(2) with F_SETLEASE, hidden without _GNU_SOURCE: whether a program may have a file open for writing.
///
/// Returns 0 if the file is neither open for writing nor mapped for it, even after the mapping's descriptor was closed.
/// Returns 1 if it is, and if the kernel does not tell (files of other users, file systems without leases).
///
/// A lease is granted in the first case only, and released at once. A program that opens the file for writing in
/// between waits, or is refused with O_NONBLOCK. The kernel then signals the holder. The default signal SIGIO ends a
/// process; SIGURG does not.
static inline int baton_may_have_writer(int file) {
    const long set_signal = 10 /* F_SETSIG */, urgent = 23 /* SIGURG */;
    const long set_lease = 1024 /* F_SETLEASE */, read = 0 /* F_RDLCK */, none = 2 /* F_UNLCK */;
    if (syscall(SYS_fcntl, file, set_signal, urgent) != 0) return 1;
    if (syscall(SYS_fcntl, file, set_lease, read) != 0) return 1;
    syscall(SYS_fcntl, file, set_lease, none);
    return 0;
}

/// sync_file_range(2) of a whole file, with SYNC_FILE_RANGE_WAIT_BEFORE and SYNC_FILE_RANGE_WRITE: starts to write each
/// changed page to disk.
///
/// This write-protects mapped pages, so that the file system sees the next store. It waits for pages that are being
/// written, which would otherwise be left out, and not for those that it starts. Does nothing if the file system has no
/// disk.
static inline int baton_protect_mapped(int file) {
    const unsigned flags = 1 | 2;
#if defined(SYS_sync_file_range)
    return baton_result(syscall(SYS_sync_file_range, file, 0l, 0l, flags));
#else
    return baton_result(syscall(SYS_sync_file_range2, file, flags, 0l, 0l));
#endif
}

/// The alignment of direct writes of a file, in bytes, for offset, length and memory; 0 if the file system takes no
/// direct writes, or cannot tell (before Linux 6.1).
///
/// statx(2) with STATX_DIOALIGN, which older headers do not name. The fields are at the kernel's offsets in its 256
/// bytes.
static inline uint32_t baton_direct_alignment(int file) {
    uint32_t status[64] = {0};
    const unsigned empty_path = 0x1000 /* AT_EMPTY_PATH */, wanted = 0x2000 /* STATX_DIOALIGN */;
    if (syscall(SYS_statx, file, "", empty_path, wanted, status) != 0 || !(status[0] & wanted)) return 0;
    const uint32_t memory = status[38], offset = status[39];
    if (memory == 0 || offset == 0) return 0;
    return memory > offset ? memory : offset;
}

/// fcntl(2) with F_SETFL: turns O_DIRECT of an open file on or off, with which reads and writes bypass the page cache.
/// It is hidden without _GNU_SOURCE. -EINVAL if the file system does not support it.
static inline int baton_set_direct(int file, int direct) {
#if defined(__aarch64__)
    const long flag = 0200000; /* O_DIRECT */
#else
    const long flag = 040000; /* O_DIRECT */
#endif
    const long flags = syscall(SYS_fcntl, file, 3 /* F_GETFL */, 0l);
    if (flags < 0) return -errno;
    return baton_result(syscall(SYS_fcntl, file, 4 /* F_SETFL */, direct ? flags | flag : flags & ~flag));
}

/// lseek(2) with SEEK_DATA, hidden without _GNU_SOURCE: the offset of the next byte, from `offset` on, that is not in a
/// hole. -ENXIO if there is none; -EINVAL if the file system cannot tell. It moves the file's own position.
static inline int64_t baton_next_data(int file, int64_t offset) {
    const int data = 3; /* SEEK_DATA */
    long found = syscall(SYS_lseek, file, offset, data);
    return found < 0 ? -(int64_t)errno : (int64_t)found;
}

/// The same with SEEK_HOLE: the offset of the next hole, from `offset` on. The end of the file counts as one.
static inline int64_t baton_next_hole(int file, int64_t offset) {
    const int hole = 4; /* SEEK_HOLE */
    long found = syscall(SYS_lseek, file, offset, hole);
    return found < 0 ? -(int64_t)errno : (int64_t)found;
}

/// syncfs(2), hidden without _GNU_SOURCE: makes everything durable that was written to the file system of `file`. It
/// reports failures since Linux 5.8.
static inline int baton_synchronize_file_system(int file) {
    return baton_result(syscall(SYS_syncfs, file));
}

/// The type of a file's file system, as numbered by statfs(2) (all below 2^32); 0 if it is unknown.
static inline uint32_t baton_file_system(int file) {
    struct statfs status;
    return fstatfs(file, &status) == 0 ? (uint32_t)status.f_type : 0;
}

/// A number of a file's file system that never changes, whatever device it is on; 0 if there is none.
///
/// ext2 to ext4, Btrfs and ZFS derive f_fsid of statfs(2) from it. Btrfs also uses the subvolume, which is the scope of
/// its inode numbers. Others use the device's number for f_fsid, and mostly report their UUID (FS_IOC_GETFSUUID, since
/// Linux 6.9).
static inline uint64_t baton_file_system_number(int file) {
    struct statfs status;
    if (fstatfs(file, &status) != 0) return 0;
    uint64_t halves[2] = {0, 0};
    switch ((uint32_t)status.f_type) {
    case 0xEF53: case 0x9123683E: case 0x2FC12FC1:
        memcpy(halves, &status.f_fsid, sizeof status.f_fsid);
        return halves[0];
    }
    struct {
        uint8_t length, bytes[16];
    } uuid = {0};
    if (syscall(SYS_ioctl, file, 0x80111500ul /* FS_IOC_GETFSUUID */, &uuid) != 0 || uuid.length != 16) return 0;
    memcpy(halves, uuid.bytes, sizeof halves);
    return halves[0] ^ halves[1];
}

/// The version of Landlock that the kernel supports, 1 or more. -ENOSYS if it was built without (or before Linux 5.13),
/// -EOPNOTSUPP if it is disabled.
///
/// The numbers of its three calls are the same on every architecture. Older headers name neither them nor later
/// additions, so both are defined here.
static inline int baton_landlock_version(void) {
    return baton_result(syscall(444, (void *)0, (size_t)0, 1u /* LANDLOCK_CREATE_RULESET_VERSION */));
}

/// landlock_create_ruleset(2): the descriptor of a rule set that denies `files` (LANDLOCK_ACCESS_FS_*), `network`
/// (version 4) and `scopes` (version 6). A kernel that knows fewer fields accepts the others if they are 0.
static inline int baton_landlock_create(uint64_t files, uint64_t network, uint64_t scopes) {
    struct {
        uint64_t files, network, scopes;
    } attributes = {files, network, scopes};
    return baton_result(syscall(444, &attributes, sizeof attributes, 0u));
}

/// landlock_add_rule(2): allows `access` beneath the open folder, wherever it is moved.
static inline int baton_landlock_allow_beneath(int rules, int folder, uint64_t access) {
    struct {
        uint64_t access;
        int32_t folder;
    } __attribute__((packed)) rule = {access, folder};
    return baton_result(syscall(445, rules, 1 /* LANDLOCK_RULE_PATH_BENEATH */, &rule, 0u));
}

/// landlock_restrict_self(2): restricts the calling thread, and every thread and process that it makes, for good. The
/// kernel first demands no_new_privs, which applies to the same thread.
static inline int baton_landlock_restrict_thread(int rules) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -errno;
    return baton_result(syscall(446, rules, 0u));
}

/// prctl(2) with PR_SET_DUMPABLE 0 (variadic, which Swift does not import): no core of this process is made, not even
/// through a pipe, and only root may access its files under /proc and its memory. exec resets it.
static inline int baton_forbid_dumping(void) {
    return baton_result(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
}

/// prctl(2) with PR_GET_DUMPABLE: 0 after baton_forbid_dumping.
static inline int baton_is_dumpable(void) {
    return baton_result(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
}

/// Overwrites the remains of returned functions on the stack, 32 KiB below the caller. Not inlined, or the caller's own
/// frame would grow. With explicit_bzero(3), which the compiler may not remove.
__attribute__((noinline)) static void baton_wipe_stack(void) {
    unsigned char left[32 << 10];
    explicit_bzero(left, sizeof left);
}

/// mallopt(3), which is glibc's and not a system call: maps blocks of this size and more separately, and returns free
/// memory beyond it at the end of a heap to the system. Both sizes are fixed from then on.
static inline void baton_map_blocks_from(int size) {
    mallopt(M_MMAP_THRESHOLD, size);
    mallopt(M_TRIM_THRESHOLD, size);
}

/// malloc_usable_size(3), as above: the usable size of a block of the heap.
static inline long baton_usable_size(void *block) {
    return (long)malloc_usable_size(block);
}

// --- The executor of the concurrency runtime ---

// In C because the runtime's hooks have Swift's calling convention, which no Swift function pointer can have. The hooks
// are those of swift/Runtime/Concurrency.h, which no module exports. `original` is what the runtime would have called.

void baton_pool_enqueue(void *job);

typedef void (*baton_enqueue_hook)(void *job, void *original) __attribute__((swiftcall));

extern baton_enqueue_hook swift_task_enqueueGlobal_hook;
extern void swift_job_run(void *job, void *executor, uintptr_t implementation) __attribute__((swiftcall));

__attribute__((swiftcall)) static void baton_enqueue(void *job, void *original) {
    (void)original;
    baton_pool_enqueue(job);
}

/// Has the concurrency runtime give the jobs of its global executor to the function above.
static inline void baton_install_executor(void) {
    swift_task_enqueueGlobal_hook = baton_enqueue;
}

/// Runs a job on the calling thread, as one of the global executor.
static inline void baton_run_job(void *job) {
    swift_job_run(job, 0, 0);
}

#endif
