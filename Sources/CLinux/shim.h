/// Linux system calls that Swift does not import from Glibc.
///
/// Every function returns what the kernel returns: a value of zero or more, or the negated error number. So no caller
/// has to read `errno` before something else in the Swift run time changes it. None of them retries: a caller that
/// may be interrupted (EINTR) repeats the call itself.
#ifndef BATON_CLINUX_SHIM_H
#define BATON_CLINUX_SHIM_H

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

/// Declared here because unistd.h hides it without _GNU_SOURCE, which cannot be set any more once another module has
/// brought in features.h; Swift itself cannot call it because it is variadic.
extern long syscall(long number, ...);

/// Folds the C library's convention (-1 and errno) into one value.
static inline int baton_result(long value) {
    return value < 0 ? -errno : (int)value;
}

/// openat2(2), which has no wrapper in the C library: opens `name` beneath `folder` and refuses to leave it, whatever
/// `name` says and whatever links someone puts in the way. -ENOSYS before Linux 5.6.
static inline int baton_open_beneath(int folder, const char *name, uint64_t flags, uint64_t mode) {
    struct open_how how;
    memset(&how, 0, sizeof how);
    how.flags = flags;
    how.mode = mode;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    return baton_result(syscall(SYS_openat2, folder, name, &how, sizeof how));
}

/// renameat2(2) with RENAME_NOREPLACE, which stdio.h hides without _GNU_SOURCE: moves a file within one folder and
/// never replaces one. -EEXIST when `to` exists, -EINVAL where the file system cannot promise it.
static inline int baton_rename_without_replacing(int folder, const char *from, const char *to) {
    const unsigned no_replace = 1; /* RENAME_NOREPLACE; linux/fs.h has it, and clashes with sys/mount.h */
    return baton_result(syscall(SYS_renameat2, folder, from, folder, to, no_replace));
}

/// fallocate(2) with FALLOC_FL_KEEP_SIZE, hidden without _GNU_SOURCE: reserves space without changing the size, so that
/// a full disk shows before the first byte. -EOPNOTSUPP where the file system cannot. (Arguments are passed as one
/// register each: 64-bit only, like Swift on Linux.)
static inline int baton_reserve(int file, int64_t offset, int64_t length) {
    return baton_result(syscall(SYS_fallocate, file, FALLOC_FL_KEEP_SIZE, offset, length));
}

/// sync_file_range(2) with SYNC_FILE_RANGE_WRITE, hidden without _GNU_SOURCE: starts writing dirty pages of the range
/// to disk and returns without waiting for them. It promises nothing about durability; only fsync does.
static inline int baton_start_writeback(int file, int64_t offset, int64_t length) {
    const unsigned write = 2; /* SYNC_FILE_RANGE_WRITE */
#if defined(SYS_sync_file_range)
    return baton_result(syscall(SYS_sync_file_range, file, offset, length, write));
#else
    return baton_result(syscall(SYS_sync_file_range2, file, write, offset, length));
#endif
}

#endif
