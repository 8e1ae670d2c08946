/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks on several machines: the part of the public C interface that collectives.h includes.
 *
 * Every rank opens a listener, hands its text to all others (over the launcher's own channel:
 * collectives_directory.h, or any other), and then begins. Connections are made when a call needs
 * them; each proves by challenge and response that both ends know the job's secret. */
#ifndef COLLECTIVES_WIRE_H
#define COLLECTIVES_WIRE_H

#include "collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coll_listener coll_listener;

typedef enum coll_secret { COLL_SECRET_BYTES = 32 } coll_secret;

typedef struct coll_wire_options {
  size_t size; /* sizeof(coll_wire_options) */
  int32_t rank;
  int32_t ranks;
  const char* job;          /* NULL: "default" */
  int32_t attempt;          /* a restart of a job counts up */
  double timeout;           /* seconds for each call; 0: 300 */
  int32_t interruptible;    /* calls return COLL_IN_PROGRESS now and then */
  const uint8_t* secret;    /* COLL_SECRET_BYTES that only the ranks of this job know */
  const char* const* doors; /* by rank: what coll_listener_text() says there */
  const char* const* hosts; /* by rank: the name of its machine, which no other has; or NULL */
  int32_t spin;             /* microseconds to wait busily at most; -1: 50; 0: never */
  double silence;           /* seconds after which a machine that does not answer is lost; 0: 15 */
  const char* transport;    /* "ucx": collectives go by UCX; NULL or "auto": TCP, and in groups
                               whose ranks are all of one machine its memory; all ranks alike */
  const char* ucx_library;  /* the path of libucp.so.0; NULL: the loader finds it */
  const char* ucx_devices;  /* the devices that UCX may use, "eth0,mlx5_0:1", where the variable
                               UCX_NET_DEVICES does not say; NULL: all */
  int32_t ucx_between;      /* of "ucx": 1: groups whose ranks are all of one machine share its
                               memory; 0: theirs go by UCX too; all ranks alike */
} coll_wire_options;

/* Listens at an address of this machine, "192.0.2.7" or "[2001:db8::7]", on ports that the kernel
 * chooses; never at all addresses. */
coll_status coll_listener_open(const char* address, coll_listener** listener);
/* Its endpoints with blanks between them. Returns the length; where that is not less than `room`,
 * nothing is written. */
size_t coll_listener_text(const coll_listener* listener, char* text, size_t room);
/* NULL is allowed. */
void coll_listener_close(coll_listener* listener);
/* An address of this machine at which ranks of others reach it, without a port. `interfaces`: what
 * COLLECTIVES_INTERFACE says. `peer`: an address towards which the way counts where that leaves a
 * choice; NULL: none. */
coll_status coll_own_address(const char* interfaces, const char* peer, char* text, size_t room);
/* Takes the listener. Does not wait for the other ranks. */
coll_status coll_init_wire(const coll_wire_options* options, coll_listener* listener,
                           coll_comm** comm);
/* How the collectives of a communicator go: "memory", "tcp" (within a machine by memory) or "ucx";
 * NULL for NULL. */
const char* coll_transport(const coll_comm* comm);
/* The version of the UCX that "ucx" would take, as "1.13.1". `library`, `devices`: as above.
 * COLL_UNSUPPORTED, COLL_BOOTSTRAP: there is none, or it has no way to talk. */
coll_status coll_ucx_version(const char* library, const char* devices, char* text, size_t room);
/* A fresh secret from the kernel's randomness. */
coll_status coll_make_secret(uint8_t* secret);
/* The secret in a file, 64 hex digits, that nobody but this user can read: what
 * COLLECTIVES_SECRET_FILE names. Every error, also that of NULL for a variable that is not set,
 * says how to make such a file. */
coll_status coll_read_secret(const char* path, uint8_t* secret);

#ifdef __cplusplus
}
#endif
#endif
