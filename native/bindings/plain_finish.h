/* SPDX-License-Identifier: Apache-2.0
 * How a short way waits for the end of a call that it has begun. */
#ifndef COLLECTIVES_PLAIN_FINISH_H
#define COLLECTIVES_PLAIN_FINISH_H

#include <Python.h>

#include "bindings/door.h"

/* Goes on with a call that has begun, to its end, whose status it returns. It comes up for air
 * every 50 ms, so that Python runs the signal handlers; one of them may close the communicator,
 * which the call then says. Where one has raised: COLL_IN_PROGRESS, with the exception set. */
coll_status plain_finish(coll_door* door, coll_comm* comm, const char* name, coll_status status);

#endif
