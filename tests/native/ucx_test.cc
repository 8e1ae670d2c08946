// SPDX-License-Identifier: Apache-2.0
// What is said where UCX is not to be had, or another transport is asked for that there is not. In
// builds with UCX and without; what it carries, tests/processes and tests/hosts look at.
#include "ucx/ucx.h"

#include <array>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "check.h"
#include "collectives_wire.h"

namespace {

using namespace coll;

TEST(without_the_library_the_sentence_says_what_to_install) {
  std::optional<Error> error;
  try {
    const UcxWorker worker({.library = "/nowhere/libucp.so.0"}, 0, 2);
  } catch (const Error& e) {
    error = e;
  }
  CHECK(error && error->status == Status::unsupported);
  CHECK(std::string(error->what()).find("nstall Debian's libucx") != std::string::npos);
}

TEST(without_the_library_there_is_no_version) {
  std::array<char, 32> text{'x'};
  CHECK(coll_ucx_version("/nowhere/libucp.so.0", "", text.data(), text.size()) == COLL_UNSUPPORTED);
  CHECK(text.front() == 'x');
}

// What coll_init_wire() says of a transport.
std::string refusal(const char* transport, coll_status wanted) {
  coll_listener* listener = nullptr;
  CHECK(coll_listener_open("127.0.0.1", &listener) == COLL_OK);
  std::array<char, 128> text{};
  CHECK(coll_listener_text(listener, text.data(), text.size()) < text.size());
  const std::array<std::uint8_t, COLL_SECRET_BYTES> secret{};
  const std::array<const char*, 2> doors{text.data(), text.data()};
  coll_wire_options options{};
  options.size = sizeof options;
  options.ranks = 2;
  options.secret = secret.data();
  options.doors = doors.data();
  options.transport = transport;
  options.ucx_library = "/nowhere";
  coll_comm* comm = nullptr;
  CHECK(coll_init_wire(&options, listener, &comm) == wanted && comm == nullptr);
  return coll_last_error();
}

TEST(a_transport_that_there_is_not_is_refused) {
  for (const char* transport : {"", "tcp", "UCX"}) {
    const std::string said = refusal(transport, COLL_INVALID_ARGUMENT);
    CHECK(said == "transport is '" + std::string(transport) + "'; it must be auto or ucx");
  }
  CHECK(refusal("ucx", COLL_UNSUPPORTED).find("libucx") != std::string::npos);
}

}  // namespace
