// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>

#include "abi/guarded.h"
#include "base/version.h"
#include "communicator/call.h"

namespace coll {
namespace {

struct LastError {
  std::array<char, 512> text{};
  int rank = -1;
};

thread_local LastError last_error;

}  // namespace

void remember_error(const char* text, int rank) noexcept {
  std::snprintf(last_error.text.data(), last_error.text.size(), "%s", text);
  last_error.rank = rank;
}

}  // namespace coll

extern "C" {

const char* coll_last_error(void) { return coll::last_error.text.data(); }

int32_t coll_last_error_rank(void) { return coll::last_error.rank; }

const char* coll_status_name(int32_t status) {
  static constexpr std::array names = {
      "ok",     "invalid_argument", "unsupported", "mismatch",  "timeout",  "peer_lost",  "aborted",
      "closed", "out_of_memory",    "system",      "bootstrap", "internal", "in_progress"};
  const auto i = static_cast<std::size_t>(status);
  return i < names.size() ? names[i] : "unknown";
}

const char* coll_kind_name(int32_t kind) { return coll::name_of(static_cast<coll::Kind>(kind)); }

const char* coll_version(void) { return coll::kLibraryVersion; }

}  // extern "C"
