/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between two ranks: the part of the public C interface that collectives.h includes.
 *
 * As in MPI: messages of one sender meet receives in the order of their sending, receives meet
 * messages in the order of their posting. Both buffers have the same dtype: else all ranks get
 * COLL_MISMATCH. A message that is longer than its receive is lost, and the receive ends with
 * COLL_INVALID_ARGUMENT; a shorter one fills the beginning. */
#ifndef COLLECTIVES_MESSAGES_H
#define COLLECTIVES_MESSAGES_H

#include "collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum coll_any {
  COLL_ANY_SOURCE = -1, /* a message of any rank */
  COLL_ANY_TAG = -1     /* with any tag */
} coll_any;

/* What a message was, for its receiver. */
typedef struct coll_message {
  int32_t source;
  int32_t tag;
  int32_t dtype;
  size_t count; /* elements that were sent */
} coll_message;

/* A send or receive that goes on beside its caller. 0 is none. */
typedef uint64_t coll_request;

/* Returns when `data` may be changed again: the message is on its way, or, where it is longer than
 * its way (256 KiB, less among more than 32 ranks), being received. A message to oneself is always
 * taken. Between machines 64 KiB do not wait, but the first message until its receiver is in a
 * call on this communicator. tag: 0 ... 2^31-1. timeout: seconds; 0: the communicator's. */
coll_status coll_send(coll_comm* comm, const void* data, size_t count, int32_t dtype, int32_t to,
                      int32_t tag, double timeout);
/* Receives a message of at most `count` elements. `received` may be NULL; else it is written when
 * the call ends, and must live until then, over calls of coll_resume(). */
coll_status coll_recv(coll_comm* comm, void* data, size_t count, int32_t dtype, int32_t source,
                      int32_t tag, coll_message* received, double timeout);
/* Both at once, so that ranks may send to each other, in rings and pairs. The two buffers must not
 * overlap. */
coll_status coll_sendrecv(coll_comm* comm, const void* data, size_t count, int32_t dtype,
                          int32_t to, int32_t send_tag, void* into, size_t into_count,
                          int32_t into_dtype, int32_t source, int32_t recv_tag,
                          coll_message* received, double timeout);
/* Returns when a message is there that a receive would get, and tells what it is. COLL_TIMEOUT
 * after `timeout` seconds leaves all as it is; where that is 0 the communicator's ends it. */
coll_status coll_probe(coll_comm* comm, int32_t source, int32_t tag, coll_message* found,
                       double timeout);
/* Whether such a message is there now: *there is 1 or 0. */
coll_status coll_iprobe(coll_comm* comm, int32_t source, int32_t tag, int32_t* there,
                        coll_message* found);
/* Begin and return. The buffer is the library's until coll_test() or coll_wait() says that the
 * request is done. Every call on the communicator moves it on; nothing does between calls. */
coll_status coll_isend(coll_comm* comm, const void* data, size_t count, int32_t dtype, int32_t to,
                       int32_t tag, coll_request* request);
/* The receiving side of it. */
coll_status coll_irecv(coll_comm* comm, void* data, size_t count, int32_t dtype, int32_t source,
                       int32_t tag, coll_request* request);
/* Whether the request is done: *done is 1 or 0. Done, it is gone, `received` is written where it
 * was a receive, and the status is that of the receive. */
coll_status coll_test(coll_comm* comm, coll_request request, int32_t* done, coll_message* received);
/* Waits until it is done; then as coll_test(). Time-outs as in coll_probe(). */
coll_status coll_wait(coll_comm* comm, coll_request request, coll_message* received,
                      double timeout);

#ifdef __cplusplus
}
#endif
#endif
