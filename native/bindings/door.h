/* SPDX-License-Identifier: Apache-2.0
 * What a Handle (collectives/handle.py) shares with the calls that C makes for Python. Only who
 * holds the lock of the interpreter reads or writes it. */
#ifndef COLLECTIVES_DOOR_H
#define COLLECTIVES_DOOR_H

#include "collectives.h"

typedef struct coll_door {
  coll_comm* comm; /* NULL: closed */
  int32_t in_call; /* a call is in progress, or a persistent one was started */
} coll_door;

int32_t install_plain_calls(void);

#endif
