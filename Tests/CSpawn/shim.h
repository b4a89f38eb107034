// SPDX-License-Identifier: Apache-2.0

/// What the tests need of spawn.h that Swift does not import from Glibc.
#ifndef BATON_CSPAWN_SHIM_H
#define BATON_CSPAWN_SHIM_H

#include <spawn.h>

/// Declared here because spawn.h hides it without _GNU_SOURCE, which cannot be set any more once another module has
/// brought in features.h: the child closes every descriptor from that number on. Of glibc 2.34.
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);

#endif
