// SPDX-License-Identifier: Apache-2.0

/// The functions of libcurl that Baton calls, loaded at the first request for a web page.
///
/// They are not linked. libcurl brings two dozen libraries, and every process that links them pays at its start. The
/// cost was measured: 3 ms and 4 MiB for each `baton` command and each node.
///
/// `curl_easy_setopt` and `curl_easy_getinfo` are variadic, which Swift does not import. So each kind of argument has a
/// function here.
#ifndef BATON_CCURL_SHIM_H
#define BATON_CCURL_SHIM_H

#include <curl/curl.h>
#include <dlfcn.h>
#include <stddef.h>

/// The loaded functions. They never change after `shim_curl_load` and are never unloaded, because
/// curl_global_cleanup(3) is not thread-safe.
struct shim_curl {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *handle);
    CURLcode (*easy_perform)(CURL *handle);
    const char *(*easy_strerror)(CURLcode code);
    CURLcode (*easy_setopt)(CURL *handle, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *handle, CURLINFO information, ...);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *line);
    void (*slist_free_all)(struct curl_slist *list);
};

/// Loads libcurl of the system (ABI 4, since 2006) and fills `curl`. Returns 0 if it is not installed or lacks a
/// function. RTLD_LOCAL keeps the symbols of its libraries private.
static inline int shim_curl_load(struct shim_curl *curl) {
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return 0;
    *(void **)&curl->global_init = dlsym(library, "curl_global_init");
    *(void **)&curl->easy_init = dlsym(library, "curl_easy_init");
    *(void **)&curl->easy_cleanup = dlsym(library, "curl_easy_cleanup");
    *(void **)&curl->easy_perform = dlsym(library, "curl_easy_perform");
    *(void **)&curl->easy_strerror = dlsym(library, "curl_easy_strerror");
    *(void **)&curl->easy_setopt = dlsym(library, "curl_easy_setopt");
    *(void **)&curl->easy_getinfo = dlsym(library, "curl_easy_getinfo");
    *(void **)&curl->slist_append = dlsym(library, "curl_slist_append");
    *(void **)&curl->slist_free_all = dlsym(library, "curl_slist_free_all");
    return curl->global_init != NULL && curl->easy_init != NULL && curl->easy_cleanup != NULL
        && curl->easy_perform != NULL && curl->easy_strerror != NULL && curl->easy_setopt != NULL
        && curl->easy_getinfo != NULL && curl->slist_append != NULL && curl->slist_free_all != NULL
        && curl->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

// Sets an option with a number.
static inline CURLcode shim_curl_set_long(const struct shim_curl *curl, CURL *handle, CURLoption option, long value) {
    return curl->easy_setopt(handle, option, value);
}

// Sets an option with text, which libcurl copies. NULL resets it.
static inline CURLcode
shim_curl_set_text(const struct shim_curl *curl, CURL *handle, CURLoption option, const char *text) {
    return curl->easy_setopt(handle, option, text);
}

// Sets an option with a pointer that the caller keeps alive, such as a callback's owner or a list.
static inline CURLcode
shim_curl_set_pointer(const struct shim_curl *curl, CURL *handle, CURLoption option, void *pointer) {
    return curl->easy_setopt(handle, option, pointer);
}

// Sets CURLOPT_CAINFO_BLOB, which takes a struct; libcurl copies the certificates.
static inline CURLcode
shim_curl_set_authorities(const struct shim_curl *curl, CURL *handle, const void *pem, size_t length) {
    struct curl_blob blob = { (void *)pem, length, CURL_BLOB_COPY };
    return curl->easy_setopt(handle, CURLOPT_CAINFO_BLOB, &blob);
}

// CURLOPT_PROTOCOLS_STR came with 7.85. The headers of a newer libcurl warn about the older option.
static inline CURLcode shim_curl_set_https_only(const struct shim_curl *curl, CURL *handle) {
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl->easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "https");
#else
    return curl->easy_setopt(handle, CURLOPT_PROTOCOLS, (long)CURLPROTO_HTTPS);
#endif
}

// Sets a callback. Swift must see its exact type to convert a closure to it.
static inline CURLcode
shim_curl_set_data_function(
    const struct shim_curl *curl, CURL *handle, CURLoption option, curl_write_callback function) {
    return curl->easy_setopt(handle, option, function);
}

// As above.
static inline CURLcode
shim_curl_set_progress_function(const struct shim_curl *curl, CURL *handle, curl_xferinfo_callback function) {
    return curl->easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, function);
}

// As above.
static inline CURLcode
shim_curl_set_socket_function(const struct shim_curl *curl, CURL *handle, curl_opensocket_callback function) {
    return curl->easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, function);
}

// Gets information that is a number.
static inline CURLcode
shim_curl_get_long(const struct shim_curl *curl, CURL *handle, CURLINFO information, long *value) {
    return curl->easy_getinfo(handle, information, value);
}

// The address of a socket. Swift would copy `addr`, which is declared with the 16 bytes of an IPv4 address; a longer
// address continues behind them.
static inline const struct sockaddr *shim_curl_address(const struct curl_sockaddr *address) {
    return &address->addr;
}

// CURL_SOCKET_BAD is a macro with a cast on some systems.
static inline curl_socket_t shim_curl_no_socket(void) {
    return CURL_SOCKET_BAD;
}

#endif
