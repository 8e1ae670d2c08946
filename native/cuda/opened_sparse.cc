// SPDX-License-Identifier: Apache-2.0
#include "cuda/opened_sparse.h"

namespace coll::cuda {
namespace {

template <class Function>
void find(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(function_of_library(name));
}

SparseLibrary found() {
  SparseLibrary to{};
  find("coll_cuda_select_room", to.select_room);
  find("coll_cuda_select", to.select);
  find("coll_cuda_merge", to.merge);
  find("coll_cuda_clear", to.clear);
  find("coll_cuda_download", to.download);
  return to;
}

}  // namespace

const SparseLibrary& sparse_library() {
  static const SparseLibrary library = found();
  return library;
}

}  // namespace coll::cuda
