// SPDX-License-Identifier: Apache-2.0
#include "ucx/library.h"

#include <dlfcn.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>

#include "base/error.h"

namespace coll {
namespace {

constexpr const char* kName = "libucp.so.0";
// The first with all that we call. Fields that came later are not used, so that what was built
// against newer headers runs with an older library.
constexpr unsigned kMajor = 1, kLeastMinor = 12;
static_assert(UCP_API_MAJOR == kMajor && UCP_API_MINOR >= kLeastMinor,
              "the headers of UCX are too old or too new");

std::string path_of(const std::string& path) {
  const char* said = std::getenv("COLLECTIVES_UCX");
  std::string found = said != nullptr && *said != 0 ? said : path;
  if (found.empty()) return kName;
  std::error_code ignored;
  return std::filesystem::is_directory(found, ignored) ? found + "/" + kName : found;
}

template <class Function>
void find_in(void* library, const char* name, Function*& function) {
  void* found = ::dlsym(library, name);
  if (found == nullptr) {
    throw Error(Status::unsupported,
                std::string("UCX has no function ") + name + ": install UCX 1.12 or a later 1.x");
  }
  function = reinterpret_cast<Function*>(found);
}

void find_all(void* from, UcxLibrary& to) {
  find_in(from, "ucp_get_version", to.get_version);
  find_in(from, "ucp_get_version_string", to.get_version_string);
  find_in(from, "ucp_config_read", to.config_read);
  find_in(from, "ucp_config_modify", to.config_modify);
  find_in(from, "ucp_config_release", to.config_release);
  find_in(from, "ucp_init_version", to.init_version);
  find_in(from, "ucp_cleanup", to.cleanup);
  find_in(from, "ucp_worker_create", to.worker_create);
  find_in(from, "ucp_worker_destroy", to.worker_destroy);
  find_in(from, "ucp_worker_query", to.worker_query);
  find_in(from, "ucp_worker_release_address", to.worker_release_address);
  find_in(from, "ucp_worker_get_efd", to.worker_get_efd);
  find_in(from, "ucp_worker_arm", to.worker_arm);
  find_in(from, "ucp_worker_progress", to.worker_progress);
  find_in(from, "ucp_worker_set_am_recv_handler", to.worker_set_am_recv_handler);
  find_in(from, "ucp_ep_create", to.ep_create);
  find_in(from, "ucp_ep_close_nbx", to.ep_close_nbx);
  find_in(from, "ucp_ep_flush_nbx", to.ep_flush_nbx);
  find_in(from, "ucp_am_send_nbx", to.am_send_nbx);
  find_in(from, "ucp_am_recv_data_nbx", to.am_recv_data_nbx);
  find_in(from, "ucp_am_data_release", to.am_data_release);
  find_in(from, "ucp_request_check_status", to.request_check_status);
  find_in(from, "ucp_request_free", to.request_free);
  find_in(from, "ucs_status_string", to.status_string);
  find_in(from, "ucs_global_opts_set_value", to.set_global_option);
}

// UCX takes these as it is loaded; they are the program's.
class KeptSignals {
 public:
  KeptSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], nullptr, &kept_[i]);
  }
  ~KeptSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &kept_[i], nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  static constexpr std::array<int, 5> kSignals{SIGHUP, SIGILL, SIGSEGV, SIGBUS, SIGFPE};
  std::array<struct sigaction, kSignals.size()> kept_{};
};

UcxLibrary opened(const std::string& path) {
  const KeptSignals kept;
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    throw Error(Status::unsupported,
                "transport=\"ucx\" needs the library of UCX, and it cannot be opened (" +
                    std::string(why != nullptr ? why : path.c_str()) +
                    "): install Debian's libucx0 or the PyPI package libucx-cu12, or let "
                    "COLLECTIVES_UCX say where libucp.so.0 is");
  }
  UcxLibrary library{};
  find_all(handle, library);
  unsigned major = 0, minor = 0, release = 0;
  library.get_version(&major, &minor, &release);
  if (major != kMajor || minor < kLeastMinor) {
    throw Error(Status::unsupported, path + " is UCX " + library.get_version_string() +
                                         ": install UCX 1.12 or a later 1.x");
  }
  return library;
}

}  // namespace

const UcxLibrary& ucx_library(const std::string& path) {
  static std::mutex mutex;
  static std::optional<UcxLibrary> library;
  const std::lock_guard lock(mutex);
  if (!library) library = opened(path_of(path));
  return *library;
}

}  // namespace coll
