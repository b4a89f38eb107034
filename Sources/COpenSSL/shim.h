// SPDX-License-Identifier: Apache-2.0

// The parts of OpenSSL 3 that Swift cannot import: macros that call SSL_ctrl and friends, flags made by a macro with an
// argument, and type-safe stacks. Each function says why it exists. All others are called directly.
#ifndef BATON_COPENSSL_SHIM_H
#define BATON_COPENSSL_SHIM_H

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/cms.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/tls1.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#if OPENSSL_VERSION_NUMBER < 0x30000000L
#error "Baton needs OpenSSL 3.0 or newer (Debian and Ubuntu: apt install libssl-dev)"
#endif

// SSL_CTX_set_min_proto_version and SSL_CTX_set_max_proto_version are macros over SSL_CTX_ctrl.
static inline int shim_SSL_CTX_set_tls13_only(SSL_CTX *context) {
    return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION)
        && SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
}

// SSL_CTX_set1_groups_list is a macro over SSL_CTX_ctrl.
static inline int shim_SSL_CTX_set1_groups_list(SSL_CTX *context, const char *list) {
    return SSL_CTX_set1_groups_list(context, list) == 1;
}

// SSL_CTX_set1_sigalgs_list is a macro over SSL_CTX_ctrl. A second macro sets the list for certificates of clients.
// Both lists must be equal, or a server would ask a client for more than it accepts.
static inline int shim_SSL_CTX_set1_sigalgs_list(SSL_CTX *context, const char *list) {
    return SSL_CTX_set1_sigalgs_list(context, list) == 1 && SSL_CTX_set1_client_sigalgs_list(context, list) == 1;
}

// SSL_CTX_set_session_cache_mode is a macro over SSL_CTX_ctrl.
static inline void shim_SSL_CTX_disable_session_cache(SSL_CTX *context) {
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

// SSL_CTX_set_mode is a macro over SSL_CTX_ctrl. With NO_AUTO_CHAIN the leaf is sent alone. Otherwise OpenSSL builds
// the chain from the trusted certificates and sends the account's own with it, which would link devices.
static inline void shim_SSL_CTX_send_leaf_only(SSL_CTX *context) {
    (void)SSL_CTX_set_mode(context, SSL_MODE_NO_AUTO_CHAIN);
}

// SSL_CTX_set_max_cert_list is a macro over SSL_CTX_ctrl.
static inline void shim_SSL_CTX_set_max_cert_list(SSL_CTX *context, long bytes) {
    (void)SSL_CTX_set_max_cert_list(context, bytes);
}

// The SSL_OP_ constants are made by SSL_OP_BIT(n), a macro with an argument, which Swift does not import.
static inline uint64_t shim_SSL_OP_for_baton(void) {
    return SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE
        | SSL_OP_PRIORITIZE_CHACHA;
}

// SSL_set_tlsext_host_name is a macro over SSL_ctrl.
static inline int shim_SSL_set_server_name(SSL *session, const char *name) {
    return SSL_set_tlsext_host_name(session, name) == 1;
}

// SSL_get1_peer_certificate has a compatibility macro (SSL_get_peer_certificate). Borrowing (get0) needs no release,
// and came with OpenSSL 3.
static inline X509 *shim_SSL_peer_certificate(const SSL *session) {
    return SSL_get0_peer_certificate(session);
}

// ERR_GET_REASON was a macro before it was an inline function; this name holds for both.
static inline int shim_ERR_reason(unsigned long error) {
    return ERR_GET_REASON(error);
}

// ERR_GET_LIB was a macro before it was an inline function; this name holds for both.
static inline int shim_ERR_is_from_ssl(unsigned long error) {
    return ERR_GET_LIB(error) == ERR_LIB_SSL;
}

// STACK_OF(CMS_SignerInfo) is a type-safe stack: its accessors are macros over inline functions with casts. Returns -1
// if the message is not signed data.
static inline int shim_CMS_signers_count(CMS_ContentInfo *message) {
    STACK_OF(CMS_SignerInfo) *signers = CMS_get0_SignerInfos(message);
    return signers == NULL ? -1 : sk_CMS_SignerInfo_num(signers);
}

// As above.
static inline CMS_SignerInfo *shim_CMS_signer(CMS_ContentInfo *message, int index) {
    return sk_CMS_SignerInfo_value(CMS_get0_SignerInfos(message), index);
}

// BIO_set_retry_read is a macro.
static inline void shim_BIO_set_retry_read(BIO *bio) {
    BIO_set_retry_read(bio);
}

// BIO_clear_retry_flags is a macro.
static inline void shim_BIO_clear_retry_flags(BIO *bio) {
    BIO_clear_retry_flags(bio);
}

// GENERAL_NAMES is a type-safe stack: its accessors are macros over inline functions with casts.
static inline int shim_GENERAL_NAMES_count(const GENERAL_NAMES *names) {
    return sk_GENERAL_NAME_num(names);
}

// As above.
static inline const GENERAL_NAME *shim_GENERAL_NAMES_value(const GENERAL_NAMES *names, int index) {
    return sk_GENERAL_NAME_value(names, index);
}

// Whether the processor has AES instructions; OPENSSL_ia32cap_P is not exported. It decides the first cipher. With
// instructions for AES and carry-less multiplication, AES-GCM is faster than ChaCha20. Without them it is slower, and
// open to timing attacks.
static inline int shim_machine_has_aes(void) {
#if defined(__x86_64__) || defined(__i386__)
    unsigned int a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 25)) && (c & (1u << 1));
#elif defined(__aarch64__) && defined(__linux__)
    unsigned long capabilities = getauxval(AT_HWCAP);
    return (capabilities & (1ul << 3)) && (capabilities & (1ul << 4));
#elif defined(__aarch64__)
    return 1;
#else
    return 0;
#endif
}

#endif
