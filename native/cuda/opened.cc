// SPDX-License-Identifier: Apache-2.0
#include "cuda/opened.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <optional>

#include "base/error.h"

namespace coll::cuda {
namespace {

constexpr const char* kName = "libcollectives_cuda.so";

std::string beside_this() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&beside_this), &here) == 0) return kName;
  const std::string file = here.dli_fname;
  return file.substr(0, file.rfind('/') + 1) + kName;
}

std::string path() {
  const char* said = std::getenv("COLLECTIVES_CUDA_LIBRARY");
  return said != nullptr && *said != 0 ? said : beside_this();
}

void* named_in(void* library, const char* name) {
  void* const function = ::dlsym(library, name);
  if (function == nullptr) {
    throw Error(Status::unsupported, "the library of kernels for GPUs has no function " +
                                         std::string(name) + ": it is of another version");
  }
  return function;
}

template <class Function>
void find_in(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(named_in(library, name));
}

Library found_in(void* from) {
  Library to{};
  find_in(from, "coll_cuda_version", to.version);
  if (to.version() != kLibraryVersion) {
    throw Error(Status::unsupported, "the library of kernels for GPUs is of version " +
                                         std::to_string(to.version()) + ", and version " +
                                         std::to_string(kLibraryVersion) + " is wanted");
  }
  find_in(from, "coll_cuda_devices", to.devices);
  find_in(from, "coll_cuda_device", to.device);
  find_in(from, "coll_cuda_load", to.load);
  find_in(from, "coll_cuda_blocks", to.blocks);
  find_in(from, "coll_cuda_allocate", to.allocate);
  find_in(from, "coll_cuda_free", to.free);
  find_in(from, "coll_cuda_export", to.export_memory);
  find_in(from, "coll_cuda_open", to.open);
  find_in(from, "coll_cuda_close", to.close);
  find_in(from, "coll_cuda_allocate_host", to.allocate_host);
  find_in(from, "coll_cuda_free_host", to.free_host);
  find_in(from, "coll_cuda_upload", to.upload);
  find_in(from, "coll_cuda_copy", to.copy);
  find_in(from, "coll_cuda_enqueue_copy", to.enqueue_copy);
  find_in(from, "coll_cuda_owner", to.owner);
  find_in(from, "coll_cuda_stream", to.stream);
  find_in(from, "coll_cuda_free_stream", to.free_stream);
  find_in(from, "coll_cuda_follow", to.follow);
  find_in(from, "coll_cuda_launch", to.launch);
  find_in(from, "coll_cuda_direct_blocks", to.direct_blocks);
  find_in(from, "coll_cuda_launch_directly", to.launch_directly);
  find_in(from, "coll_cuda_synchronize", to.synchronize);
  find_in(from, "coll_cuda_capture", to.capture);
  find_in(from, "coll_cuda_event", to.event);
  find_in(from, "coll_cuda_free_event", to.free_event);
  find_in(from, "coll_cuda_mark", to.mark);
  find_in(from, "coll_cuda_after", to.after);
  find_in(from, "coll_cuda_take_turn", to.take_turn);
  find_in(from, "coll_cuda_end_turn", to.end_turn);
  find_in(from, "coll_cuda_reached", to.reached);
  return to;
}

struct Opened {
  void* handle;
  Library library;
};

Opened opened() {
  const std::string file = path();
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    throw Error(Status::unsupported,
                "GPUs need the library of kernels, and it cannot be opened (" +
                    std::string(why != nullptr ? why : file.c_str()) +
                    "): build it by scripts/cuda_build.sh, and let COLLECTIVES_CUDA_LIBRARY say "
                    "where it is");
  }
  return {handle, found_in(handle)};
}

const Opened& the_one() {
  static std::mutex mutex;
  static std::optional<Opened> found;
  const std::lock_guard lock(mutex);
  if (!found) found = opened();
  return *found;
}

}  // namespace

const Library& library() { return the_one().library; }

void* function_of_library(const char* name) { return named_in(the_one().handle, name); }

Devices devices() {
  Devices found;
  try {
    Sentence why{};
    found.count = library().devices(&why);
    if (found.count == 0) found.why = why.text[0] != 0 ? why.text : "the driver knows of no GPU";
  } catch (const Error& error) {
    found.why = error.what();
  }
  return found;
}

void check(std::int32_t outcome, const Sentence& why) {
  if (outcome != 0) throw Error(Status::system, why.text);
}

}  // namespace coll::cuda
