// SPDX-License-Identifier: Apache-2.0

#include "version.h"

// Package.swift defines BATON_RELEASE if the environment has it, as in Scripts/package.
const char *baton_version(void) {
#ifdef BATON_RELEASE
    return BATON_RELEASE;
#else
    return BATON_VERSION " (development)";
#endif
}
