// SPDX-License-Identifier: Apache-2.0

/// The parts of spawn.h for the tests that Swift does not import from Glibc.
#ifndef BATON_CSPAWN_SHIM_H
#define BATON_CSPAWN_SHIM_H

#include <spawn.h>

/// The child closes every descriptor from that number on; since glibc 2.34. It is declared here because spawn.h hides
/// it without _GNU_SOURCE. That cannot be set any more once another module has included features.h.
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);

#endif
