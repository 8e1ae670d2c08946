// SPDX-License-Identifier: Apache-2.0
// Nothing is allocated once streams are made.
#include "counted_allocations.h"
#include "tcp_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

// Takes into the same place again and again.
class Fixed final : public TcpReceiver {
 public:
  explicit Fixed(std::size_t most) : place_(most) {}
  Landing land(const TcpHeader& header) noexcept override {
    return {Landing::Verdict::take, std::span(place_).first(header.length)};
  }
  void landed(const TcpHeader&) noexcept override { ++count; }

  int count = 0;

 private:
  Bytes place_;
};

TEST(nothing_is_allocated_once_streams_are_made) {
  constexpr std::size_t kMost = 3'000'000;
  Ends ends = connected();
  Fixed hears(kMost);
  Book nothing;
  TcpStream from(std::move(ends.a.fd), ends.a.peer, nothing);
  TcpStream to(std::move(ends.b.fd), ends.b.peer, hears);
  TcpSet set;
  set.add(from);
  set.add(to);
  const Bytes payload(kMost);
  const Deadline deadline(20);
  const long before = allocations;
  CHECK(before > 0);
  int said = 0;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{70'000}, kMost}) {
    for (int i = 0; i < 20; ++i) {
      CHECK(from.post(header_of(1, bytes), payload.data()));
      ++said;
    }
    CHECK(set.run([&] { return hears.count == said; }, deadline) == Drive::done);
  }
  CHECK(set.run([] { return false; }, Deadline(0.06)) == Drive::deadline);
  CHECK(allocations == before);
}

}  // namespace
