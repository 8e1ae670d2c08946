/* SPDX-License-Identifier: Apache-2.0
 * The clock by which short ways time their calls. */
#ifndef COLLECTIVES_CLOCK_H
#define COLLECTIVES_CLOCK_H

#include <time.h>

static inline double seconds_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
