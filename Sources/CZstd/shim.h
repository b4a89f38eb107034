// SPDX-License-Identifier: Apache-2.0

/// The stable interface of the system's libzstd. Swift imports the functions. The two sizes below are macros with a
/// cast, which it does not import.
#ifndef BATON_CZSTD_SHIM_H
#define BATON_CZSTD_SHIM_H

#include <zstd.h>
#include <zstd_errors.h>

/// The result of ZSTD_getFrameContentSize for a frame that does not state the size of its content.
static inline unsigned long long baton_zstd_content_size_unknown(void) { return ZSTD_CONTENTSIZE_UNKNOWN; }

/// The result of ZSTD_getFrameContentSize for bytes that are not a frame.
static inline unsigned long long baton_zstd_content_size_error(void) { return ZSTD_CONTENTSIZE_ERROR; }

#endif
