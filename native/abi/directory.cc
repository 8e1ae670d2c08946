// SPDX-License-Identifier: Apache-2.0
// The launcher's key-value store, behind the C interface.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "abi/guarded.h"
#include "bootstrap/mesh_directory.h"
#include "bootstrap/pmi_directory.h"

struct coll_directory {
  int rank, ranks;
  std::unique_ptr<coll::Directory> directory;
};

namespace coll {
namespace {

constexpr double kDirectoryTimeout = 300;

coll_directory& opened(coll_directory* directory) {
  if (directory == nullptr) throw Error(Status::closed, "the key-value store is closed");
  return *directory;
}

Deadline end_of(double timeout) {
  if (!(timeout >= 0)) {
    throw Error(Status::invalid_argument, "the time-out must be 0 seconds or more");
  }
  return Deadline(timeout > 0 ? timeout : kDirectoryTimeout);
}

coll_directory* open_mesh_directory(const coll_directory_options& options, const Stop& stop) {
  end_of(options.timeout);  // refuses a time-out that is none
  if (options.ranks < 1 || options.ranks > 1024 || options.rank < 0 ||
      options.rank >= options.ranks) {
    throw Error(Status::invalid_argument, "rank " + std::to_string(options.rank) + " of " +
                                              std::to_string(options.ranks) +
                                              ": there are 1 ... 1024 ranks, counted from 0");
  }
  if (!(options.silence >= 0)) {
    throw Error(Status::invalid_argument, "the time of silence must be 0 seconds or more");
  }
  std::array<std::uint8_t, Secret::kBytes> secret{};
  std::copy_n(&required(options.secret, "the secret"), secret.size(), secret.begin());
  const Identity self{.rank = options.rank,
                      .ranks = options.ranks,
                      .job = options.job != nullptr ? options.job : "default",
                      .attempt = options.attempt};
  return new coll_directory{self.rank, self.ranks,
                            std::make_unique<MeshDirectory>(
                                self, Secret(secret), Endpoint::parse(options.at),
                                options.timeout > 0 ? options.timeout : kDirectoryTimeout, stop,
                                options.trouble != nullptr ? options.trouble : "",
                                options.silence > 0 ? options.silence : TcpOptions{}.silence_s)};
}

coll_directory* open_directory(const coll_directory_options* given) {
  coll_directory_options options{};
  const std::size_t size = required(given, "options").size;
  if (size < sizeof(std::size_t)) {
    throw Error(Status::invalid_argument, "set options.size to sizeof(coll_directory_options)");
  }
  std::memcpy(&options, given, std::min(size, sizeof options));
  if (options.pmi < 0 || options.pmi > 2 || (options.pmi == 0) == (options.at == nullptr)) {
    throw Error(Status::invalid_argument,
                "options.pmi must be 1 or 2, or 0 with an address in options.at");
  }
  Stop stop;
  if (options.stop != nullptr) {
    stop = [f = options.stop, context = options.stop_context] { return f(context) != 0; };
  }
  if (options.pmi == 0) return open_mesh_directory(options, stop);
  const Deadline deadline = end_of(options.timeout);
  const PmiPlace place = pmi_place();
  return new coll_directory{place.rank, place.ranks,
                            std::make_unique<PmiDirectory>(place, options.pmi, deadline, stop)};
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::required;
using coll::Status;

extern "C" {

coll_status coll_directory_open(const coll_directory_options* options, coll_directory** directory) {
  return guarded([&] {
    required(directory, "the place of the directory") = nullptr;
    *directory = coll::open_directory(options);
    return Status::ok;
  });
}

int32_t coll_directory_rank(const coll_directory* directory) {
  return directory == nullptr ? -1 : directory->rank;
}

int32_t coll_directory_ranks(const coll_directory* directory) {
  return directory == nullptr ? 0 : directory->ranks;
}

coll_status coll_directory_put(coll_directory* directory, const char* key, const void* value,
                               size_t bytes, double timeout) {
  return guarded([&] {
    coll_directory& own = coll::opened(directory);
    required(key, "the key");
    if (bytes > 0) required(static_cast<const char*>(value), "the value");
    own.directory->put(key, {static_cast<const char*>(value), bytes}, coll::end_of(timeout));
    return Status::ok;
  });
}

coll_status coll_directory_get(coll_directory* directory, const char* key, void* value, size_t room,
                               size_t* bytes, double timeout) {
  return guarded([&] {
    coll_directory& own = coll::opened(directory);
    required(key, "the key");
    required(bytes, "the place of the length");
    if (room > 0) required(static_cast<char*>(value), "the place of the value");
    const std::string got = own.directory->get(key, coll::end_of(timeout));
    *bytes = got.size();
    if (got.size() > room) {
      throw coll::Error(Status::invalid_argument, "the value has " + std::to_string(got.size()) +
                                                      " bytes, the room " + std::to_string(room));
    }
    std::copy(got.begin(), got.end(), static_cast<char*>(value));
    return Status::ok;
  });
}

coll_status coll_directory_fence(coll_directory* directory, double timeout) {
  return guarded([&] {
    coll_directory& own = coll::opened(directory);
    own.directory->fence(coll::end_of(timeout));
    return Status::ok;
  });
}

void coll_directory_close(coll_directory* directory) { delete directory; }

}  // extern "C"
