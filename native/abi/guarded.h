// SPDX-License-Identifier: Apache-2.0
// The only place where exceptions become a status: the text stays with the calling thread.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "base/error.h"
#include "base/looks.h"
#include "collectives.h"

namespace coll {

void remember_error(const char* text, int rank) noexcept;

template <class F>
coll_status guarded(F&& f) noexcept {
  try {
    return static_cast<coll_status>(f());
  } catch (const Error& e) {
    remember_error(e.what(), e.rank);
    return static_cast<coll_status>(e.status);
  } catch (const Stopped& e) {
    remember_error(e.what(), -1);
    return COLL_ABORTED;
  } catch (const std::bad_alloc&) {
    remember_error("out of memory", -1);
    return COLL_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    remember_error(e.what(), -1);
    return COLL_INTERNAL;
  }
}

// What a caller passes by its address. Throws Error(invalid_argument) for a null pointer.
template <class T>
T& required(T* pointer, const char* what) {
  if (pointer != nullptr) return *pointer;
  throw Error(Status::invalid_argument, std::string(what) + ": a null pointer");
}

}  // namespace coll
