// SPDX-License-Identifier: Apache-2.0

/// Calls of the tests that Swift does not import from Glibc.
#ifndef BATON_CSPAWN_SHIM_H
#define BATON_CSPAWN_SHIM_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/// The child closes every descriptor from that number on; since glibc 2.34. It is declared here because spawn.h hides
/// it without _GNU_SOURCE. That cannot be set any more once another module has included features.h.
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);

/// Has the kernel refuse epoll_ctl(2) with ENOSPC whenever the calling thread adds a descriptor, for good (seccomp(2)).
/// Threads that it makes inherit this. Returns whether the kernel took the rules.
static inline int baton_refuse_watches(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_ctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1 /* EPOLL_CTL_ADD */, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#endif
