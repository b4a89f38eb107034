// SPDX-License-Identifier: Apache-2.0

#ifndef BATON_VERSION_H
#define BATON_VERSION_H

/// The version of this source. The next tag is `v` and this. Scripts/package reads it here.
#define BATON_VERSION "0.1.0"

/// The version for people: that of a package with its commit, or else that of this source and "development".
const char *baton_version(void);

#endif
