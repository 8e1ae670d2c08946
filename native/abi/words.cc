// SPDX-License-Identifier: Apache-2.0
#include "abi/words.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error.h"
#include "collectives.h"

namespace coll {

void hand_out(std::span<const std::int32_t> words, std::int32_t** data, std::size_t* length) {
  if (data == nullptr || length == nullptr) {
    throw Error(Status::invalid_argument, "no place for the words: a null pointer");
  }
  auto* copy = static_cast<std::int32_t*>(std::malloc(words.size_bytes()));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, words.data(), words.size_bytes());
  *data = copy;
  *length = words.size();
}

}  // namespace coll

extern "C" void coll_free(void* data) { std::free(data); }
