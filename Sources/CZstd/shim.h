// SPDX-License-Identifier: Apache-2.0

/// Zstandard of the system's libzstd: its stable interface alone. The functions import by themselves; the two sizes
/// below are macros with a cast, which do not.
#ifndef BATON_CZSTD_SHIM_H
#define BATON_CZSTD_SHIM_H

#include <zstd.h>
#include <zstd_errors.h>

/// What ZSTD_getFrameContentSize answers for a frame that does not tell its content's size.
static inline unsigned long long baton_zstd_content_size_unknown(void) { return ZSTD_CONTENTSIZE_UNKNOWN; }

/// What ZSTD_getFrameContentSize answers for what is no frame.
static inline unsigned long long baton_zstd_content_size_error(void) { return ZSTD_CONTENTSIZE_ERROR; }

#endif
