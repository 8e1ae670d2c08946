// SPDX-License-Identifier: Apache-2.0
// Rows of null_test.cc: those of GPUs, of which there is none.
#pragma once

#include <vector>

#include "null_sparse.h"

namespace {

const std::vector<Row> kGpu = {
    {"coll_gpu_count", [](coll_comm*) -> int { return coll_gpu_count(nullptr, 9); }, 0, 0},
    {"coll_gpu_get", [](coll_comm*) -> int { return coll_gpu_get(0, nullptr); }, kNone, kNone},
    {"coll_gpu_owner", [](coll_comm*) -> int { return coll_gpu_owner(nullptr); }, -1, -1},
    {"coll_gpu_allocate", [](coll_comm*) -> int { return coll_gpu_allocate(0, 1, nullptr); }, kNone,
     kNone},
    {"coll_gpu_free", [](coll_comm*) -> int { return coll_gpu_free(0, nullptr); }, COLL_UNSUPPORTED,
     COLL_UNSUPPORTED},
    {"coll_gpu_copy",
     [](coll_comm*) -> int { return coll_gpu_copy(0, nullptr, nullptr, 8, nullptr); },
     COLL_UNSUPPORTED, COLL_UNSUPPORTED},
    {"coll_gpu_run", [](coll_comm* c) -> int { return coll_gpu_run(c, nullptr, 0, nullptr); },
     kGone, kNone},
    {"coll_gpu_persistent_new",
     [](coll_comm* c) -> int { return coll_gpu_persistent_new(c, nullptr, 0, nullptr); }, kGone,
     kNone},
    {"coll_gpu_persistent_run",
     [](coll_comm*) -> int { return coll_gpu_persistent_run(nullptr, nullptr); }, kNone, kNone},
    {"coll_gpu_persistent_free",
     [](coll_comm*) -> int { return coll_gpu_persistent_free(nullptr); }, COLL_OK, COLL_OK},
    {"coll_gpu_captured", [](coll_comm*) -> int { return coll_gpu_captured(0, nullptr, nullptr); },
     kNone, kNone},
    {"coll_gpu_follow", [](coll_comm*) -> int { return coll_gpu_follow(0, nullptr, nullptr); },
     COLL_UNSUPPORTED, COLL_UNSUPPORTED},
    {"coll_gpu_wait", [](coll_comm* c) -> int { return coll_gpu_wait(c, 0, nullptr); }, kGone,
     COLL_UNSUPPORTED},
    {"coll_gpu_top_k_room",
     [](coll_comm*) -> int { return coll_gpu_top_k_room(0, nullptr, nullptr); }, kNone, kNone},
    {"coll_gpu_top_k", [](coll_comm*) -> int { return coll_gpu_top_k(0, nullptr, nullptr); }, kNone,
     kNone},
    {"coll_gpu_sparse_run",
     [](coll_comm* c) -> int { return coll_gpu_sparse_run(c, nullptr, 0, nullptr); }, kGone,
     COLL_UNSUPPORTED},
    {"coll_gpu_sparse_entries",
     [](coll_comm* c) -> int { return coll_gpu_sparse_entries(c, 0, nullptr, nullptr); }, kGone,
     COLL_UNSUPPORTED},
    {"coll_gpu_sparse_take",
     [](coll_comm* c) -> int { return coll_gpu_sparse_take(c, 0, nullptr, 4, nullptr, nullptr); },
     kGone, COLL_UNSUPPORTED},
};

}  // namespace
