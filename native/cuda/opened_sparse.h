// SPDX-License-Identifier: Apache-2.0
// The functions of the library of kernels for sparse vectors.
#pragma once

#include "cuda/opened.h"
#include "cuda/sparse_library.h"

namespace coll::cuda {

struct SparseLibrary {
  decltype(&coll_cuda_select_room) select_room;
  decltype(&coll_cuda_select) select;
  decltype(&coll_cuda_merge) merge;
  decltype(&coll_cuda_clear) clear;
  decltype(&coll_cuda_download) download;
};

// Throws as library().
const SparseLibrary& sparse_library();

}  // namespace coll::cuda
