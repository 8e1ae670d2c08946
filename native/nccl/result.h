// SPDX-License-Identifier: Apache-2.0
// How a function of the ABI ends: a result, and for whoever asks a sentence.
#pragma once

#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "base/error.h"
#include "collectives.h"
#include "nccl/nccl.h"

namespace coll::nccl {

// What the body of a function throws where it cannot do what was asked.
class Refusal : public std::runtime_error {
 public:
  Refusal(ncclResult_t result, const std::string& text)
      : std::runtime_error(text), result(result) {}

  ncclResult_t result;
};

// What a status of the C interface is called here.
ncclResult_t result_of(coll_status status) noexcept;

// Throws Refusal with the sentence of the C interface, unless the status is COLL_OK.
void expect(coll_status status);

// Keeps the sentence for ncclGetLastError(), and prints it where NCCL_DEBUG asks. Returns `result`.
ncclResult_t remember(ncclResult_t result, const char* text) noexcept;

// The last sentence of the process; valid until the calling thread asks again.
const char* last_sentence() noexcept;

// What a caller in C passed for an enum. It may be none of its values, which C++ must not load as
// one.
template <class Enum>
int number_of(const Enum& value) noexcept {
  int number = 0;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

// Runs `body`, which returns a result or throws.
template <class Body>
ncclResult_t answered(Body&& body) noexcept {
  try {
    return body();
  } catch (const Refusal& refusal) {
    return remember(refusal.result, refusal.what());
  } catch (const Error& error) {
    return remember(result_of(static_cast<coll_status>(error.status)), error.what());
  } catch (const std::bad_alloc&) {
    return remember(ncclSystemError, "out of memory");
  } catch (const std::exception& error) {
    return remember(ncclInternalError, error.what());
  }
}

// The result and the sentence of what is being thrown: in a handler.
struct Outcome {
  ncclResult_t result = ncclSuccess;
  std::string text;
};

// Runs `body` and tells how that ended, for whoever keeps it.
template <class Body>
Outcome outcome_of(Body&& body) {
  try {
    body();
    return {};
  } catch (const Refusal& refusal) {
    return {refusal.result, refusal.what()};
  } catch (const Error& error) {
    return {result_of(static_cast<coll_status>(error.status)), error.what()};
  } catch (const std::bad_alloc&) {
    return {ncclSystemError, "out of memory"};
  } catch (const std::exception& error) {
    return {ncclInternalError, error.what()};
  }
}

}  // namespace coll::nccl
