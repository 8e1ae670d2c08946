// SPDX-License-Identifier: Apache-2.0
// The words of a call that is kept: its caller may change them as soon as it is done.
#pragma once

#include <cstddef>
#include <vector>

#include "communicator/call.h"

namespace coll {

class KeptWords {
 public:
  // From then on keep() allocates for more only.
  void reserve(std::size_t length) { words_.reserve(length); }

  // Copies those of `call`, of which it then has the copy.
  void keep(Call& call) {
    if (call.words.data() != words_.data()) words_.assign(call.words.begin(), call.words.end());
    call.words = {words_.data(), call.words.size()};
  }

 private:
  std::vector<char> words_;
};

}  // namespace coll
