// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_words.h"

#include "schedule/layout.h"

namespace coll {

std::string gpu_words(const Call& call, int ranks, GpuWork work) {
  std::string words = work == GpuWork::prepare ? "persistent " : "";
  words += name_of(call.kind);
  if (call.kind != Kind::barrier) {
    // Of unequal parts a rank may say how long its own one is.
    const std::size_t n = call.counts != nullptr ? vector_elements(call, ranks) : call.count;
    words += " of " + std::to_string(n) + " " + name_of(call.dtype);
  }
  if (reduces(call.kind)) words += std::string(", ") + name_of(call.op);
  if (Layout(call.kind, 1, 0, 1).rooted()) words += ", root " + std::to_string(call.root);
  if (call.algorithm >= 0) words += ", algorithm " + std::to_string(call.algorithm);
  if (call.mode >= 0) words += ", mode " + std::to_string(call.mode);
  if (accumulates_wider(call)) {
    words += std::string(", accumulated in ") + name_of(folded_dtype(call));
  }
  if (call.reproducible != Reproducible::no) words += ", reproducible";
  if (call.counts != nullptr) words += ", parts " + std::to_string(hash_counts(call, ranks));
  return words;
}

}  // namespace coll
