// SPDX-License-Identifier: Apache-2.0
// What the emulated GPU (gpu/emulated_library.cc) has for tests.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace coll::testing {

template <class Function>
Function* emulated(const char* name) {
  const char* const said = std::getenv("COLLECTIVES_CUDA_LIBRARY");
  const std::string file = said != nullptr ? said : "";
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(::dlsym(library, name));
}
inline void begin_capture(void* stream) { emulated<void(void*)>("emulated_begin_capture")(stream); }
inline std::uint64_t end_capture(void* stream) {
  return emulated<std::uint64_t(void*)>("emulated_end_capture")(stream);
}
inline std::size_t nodes(std::uint64_t graph) {
  return emulated<std::size_t(std::uint64_t)>("emulated_nodes")(graph);
}
inline bool replay(std::uint64_t graph, void* stream) {
  return emulated<std::int32_t(std::uint64_t, void*)>("emulated_replay")(graph, stream) == 0;
}
inline std::size_t taken() { return emulated<std::size_t()>("emulated_taken")(); }
// Whether what is on a stream is left undone.
inline void hold(void* stream, bool held) {
  emulated<void(void*, std::int32_t)>("emulated_hold")(stream, held ? 1 : 0);
}

// Keeps others from opening memory of a device, and it from opening theirs.
inline void forbid(int device, bool its_export, bool its_open) {
  emulated<void(std::int32_t, std::int32_t, std::int32_t)>("emulated_forbid")(
      device, its_export ? 1 : 0, its_open ? 1 : 0);
}
// Done once, before the next launch there of ranks that have a GPU each.
inline void before_launch(int device, void (*work)(void*), void* of) {
  emulated<void(std::int32_t, void (*)(void*), void*)>("emulated_before_launch")(device, work, of);
}

inline void* stream_of(int number) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
}

}  // namespace coll::testing
