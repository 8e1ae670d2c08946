// SPDX-License-Identifier: Apache-2.0
// Rows of null_test.cc: what a row is, and those of sparse vectors.
#pragma once

#include <vector>

#include "collectives.h"

namespace {

constexpr int kNone = COLL_INVALID_ARGUMENT, kGone = COLL_CLOSED;

// A function with null pointers for all that it takes by address, but for the communicator, which
// is null (`without`) or there (`with`): what it returns.
struct Row {
  const char* name;
  int (*call)(coll_comm* comm);
  int without, with;
};

const std::vector<Row> kSparse = {
    {"coll_sparse_algorithm_count",
     [](coll_comm*) -> int { return coll_sparse_algorithm_count() > 0 ? 0 : 1; }, 0, 0},
    {"coll_sparse_algorithm_get",
     [](coll_comm*) -> int { return coll_sparse_algorithm_get(0, nullptr); }, kNone, kNone},
    {"coll_sparse_run", [](coll_comm* c) -> int { return coll_sparse_run(c, nullptr, nullptr); },
     kNone, kNone},
    {"coll_sparse_look", [](coll_comm*) -> int { return coll_sparse_look(nullptr, nullptr); },
     kNone, kNone},
    {"coll_sparse_plan_make",
     [](coll_comm* c) -> int { return coll_sparse_plan_make(c, nullptr, nullptr); }, kNone, kNone},
    {"coll_sparse_plan_reduce",
     [](coll_comm* c) -> int {
       return coll_sparse_plan_reduce(c, nullptr, nullptr, nullptr, 0, 0, 0);
     },
     kNone, kNone},
    {"coll_sparse_plan_sent",
     [](coll_comm*) -> int { return coll_sparse_plan_sent(nullptr, nullptr, nullptr, nullptr); },
     kNone, kNone},
    {"coll_sparse_plan_how",
     [](coll_comm*) -> int { return coll_sparse_plan_how(nullptr, nullptr); }, kNone, kNone},
    {"coll_sparse_plan_free", [](coll_comm*) -> int { return coll_sparse_plan_free(nullptr), 0; },
     0, 0},
    {"coll_sparse_free", [](coll_comm*) -> int { return coll_sparse_free(nullptr), 0; }, 0, 0},
    {"coll_top_k",
     [](coll_comm*) -> int { return coll_top_k(nullptr, COLL_FLOAT32, 2, 1, 4, nullptr, nullptr); },
     kNone, kNone},
    {"coll_select_above",
     [](coll_comm*) -> int {
       return coll_select_above(nullptr, COLL_FLOAT32, 0, 1, 4, 0, nullptr, nullptr, nullptr);
     },
     kNone, kNone},
};

}  // namespace
