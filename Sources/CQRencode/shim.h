// SPDX-License-Identifier: Apache-2.0

/// The functions of libqrencode that Baton calls, loaded when the account key is drawn as a QR code.
///
/// They are not linked: no other command needs the library, and a machine without it runs all others.
#ifndef BATON_CQRENCODE_SHIM_H
#define BATON_CQRENCODE_SHIM_H

#include <dlfcn.h>
#include <malloc.h>
#include <qrencode.h>
#include <stdlib.h>
#include <string.h>

/// The loaded functions.
struct shim_qr {
    QRcode *(*encode)(const char *text, int version, QRecLevel level, QRencodeMode hint, int casesensitive);
    void (*release)(QRcode *code);
};

/// Loads libqrencode of the system (ABI 4, since 2017). Returns 0 if it is not installed or lacks a function.
static inline int shim_qr_load(struct shim_qr *library) {
    void *handle = dlopen("libqrencode.so.4", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) return 0;
    *(void **)&library->encode = dlsym(handle, "QRcode_encodeString");
    *(void **)&library->release = dlsym(handle, "QRcode_free");
    return library->encode != NULL && library->release != NULL;
}

/// Overwrites the memory that this thread has freed last: glibc keeps 7 blocks of each size up to 1,032 bytes for the
/// thread, and M_PERTURB does not reach those.
static inline void shim_qr_wipe_freed(void) {
    enum { kept = 7 };
    for (size_t size = 24; size <= 1032; size += 16) {
        void *blocks[kept];
        for (int index = 0; index < kept; index++) {
            blocks[index] = malloc(size);
            if (blocks[index] != NULL) explicit_bzero(blocks[index], size);
        }
        for (int index = 0; index < kept; index++) free(blocks[index]);
    }
}

/// Encodes a text of capitals, digits and `-` at level M, and writes a byte for each module, row by row: 1 is dark.
/// Returns the number of modules in a row; 0 if there is no memory, or no room for them.
///
/// The library frees its copies of the text without wiping them. Here glibc overwrites what is freed.
static inline int
shim_qr_encode(const struct shim_qr *library, const char *text, unsigned char *modules, size_t room) {
    mallopt(M_PERTURB, 0xff);
    QRcode *code = library->encode(text, 0, QR_ECLEVEL_M, QR_MODE_8, 1);
    int width = 0;
    if (code != NULL) {
        size_t count = (size_t)code->width * (size_t)code->width;
        if (count <= room) {
            width = code->width;
            for (size_t index = 0; index < count; index++) modules[index] = code->data[index] & 1;
        }
        library->release(code);
    }
    shim_qr_wipe_freed();
    mallopt(M_PERTURB, 0);
    return width;
}

#endif
