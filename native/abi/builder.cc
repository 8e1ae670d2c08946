// SPDX-License-Identifier: Apache-2.0
// Schedules written from outside, behind the C interface: what the built-in algorithms write with.
#include "schedule/builder.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "abi/guarded.h"
#include "abi/words.h"
#include "base/error.h"
#include "schedule/encode.h"

struct coll_builder {
  coll::Schedule schedule;
  std::vector<bool> written;
  int rank = -1;
  std::optional<coll::Builder> builder;
};

namespace coll {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(Status::invalid_argument, why); }

coll_builder& known(coll_builder* b) {
  if (b == nullptr) refuse("the builder is a null pointer");
  return *b;
}

Builder& writing(coll_builder* b) {
  if (!known(b).builder) refuse("say first which rank's program this is: coll_builder_rank()");
  return *b->builder;
}

void close_rank(coll_builder& b) {
  if (!b.builder) return;
  b.schedule.programs[static_cast<std::size_t>(b.rank)] = std::move(*b.builder).finish();
  b.builder.reset();
}

Chunks chunks_of(const Builder& b, const int32_t* pairs, std::size_t n) {
  Chunks chunks;
  if (n > 0 && pairs == nullptr) refuse("the chunks are a null pointer");
  for (std::size_t i = 0; i < n; ++i) {
    const int first = pairs[2 * i], count = pairs[2 * i + 1];
    if (first < 0 || count < 0 || first > b.chunks() - count) {
      refuse("rank " + std::to_string(b.rank()) + ": chunks " + std::to_string(first) + " to " +
             std::to_string(static_cast<long>(first) + count - 1) + " are not among the " +
             std::to_string(b.chunks()) + " of the vector");
    }
    chunks.add(first, count);
  }
  return chunks;
}

std::vector<int> peers_of(const int32_t* peers, std::size_t n) {
  if (n > 0 && peers == nullptr) refuse("the peers are a null pointer");
  return {peers, peers + n};
}

Buffer buffer_of(int32_t number) {
  if (number < 0 || number >= kBuffers) refuse("a buffer is 0 (input), 1 (output) or 2 (scratch)");
  return static_cast<Buffer>(number);
}

// A rule that the writer broke is the writer's.
template <class F>
coll_status write(coll_builder* b, F&& f) {
  return guarded([&] {
    Builder& builder = writing(b);
    try {
      f(builder);
    } catch (const Error& error) {
      throw Error(Status::invalid_argument, error.what(), error.rank);
    }
    return Status::ok;
  });
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::Status;

extern "C" {

coll_status coll_builder_new(int32_t kind, int32_t p, int32_t root, int32_t chunks,
                             coll_builder** builder) {
  return guarded([&] {
    if (builder == nullptr) coll::refuse("no place for the builder");
    if (kind < 0 || kind >= coll::kKinds) coll::refuse("unknown collective");
    if (p < 1 || p > 4096) coll::refuse("a schedule is for 1 to 4096 ranks");
    if (root < 0 || root >= p) coll::refuse("the root is not a rank");
    const coll::Layout layout(static_cast<coll::Kind>(kind), p, root, chunks);
    if (chunks < 1 || chunks > 1 << 20 || !layout.chunks_suit()) {
      coll::refuse("the number of chunks does not suit the collective");
    }
    auto made = std::make_unique<coll_builder>();
    made->schedule = {.kind = layout.kind, .p = p, .root = root, .chunks = chunks, .programs = {}};
    made->schedule.programs.resize(static_cast<std::size_t>(p));
    made->written.resize(static_cast<std::size_t>(p));
    *builder = made.release();
    return Status::ok;
  });
}

coll_status coll_builder_rank(coll_builder* builder, int32_t rank) {
  return guarded([&] {
    coll_builder& b = coll::known(builder);
    if (rank < 0 || rank >= b.schedule.p) coll::refuse("there is no such rank");
    const auto index = static_cast<std::size_t>(rank);
    if (b.written[index]) coll::refuse("the program of this rank is written already");
    coll::close_rank(b);
    b.written[index] = true;
    b.rank = rank;
    b.builder.emplace(coll::Layout(b.schedule), rank);
    return Status::ok;
  });
}

coll_status coll_builder_send(coll_builder* builder, int32_t round, const int32_t* peers,
                              size_t n_peers, const int32_t* chunks, size_t n_pairs) {
  return coll::write(builder, [&](coll::Builder& b) {
    b.send(round, coll::peers_of(peers, n_peers), coll::chunks_of(b, chunks, n_pairs));
  });
}

coll_status coll_builder_recv(coll_builder* builder, int32_t round, int32_t peer,
                              const int32_t* chunks, size_t n_pairs) {
  return coll::write(
      builder, [&](coll::Builder& b) { b.recv(round, peer, coll::chunks_of(b, chunks, n_pairs)); });
}

coll_status coll_builder_recv_reduce(coll_builder* builder, int32_t round, const int32_t* order,
                                     size_t n_order, int32_t balanced, const int32_t* chunks,
                                     size_t n_pairs) {
  return coll::write(builder, [&](coll::Builder& b) {
    b.recv_reduce(round, coll::peers_of(order, n_order), coll::chunks_of(b, chunks, n_pairs),
                  balanced != 0 ? coll::Shape::balanced : coll::Shape::left);
  });
}

coll_status coll_builder_copy(coll_builder* builder, int32_t round, int32_t from, int32_t to,
                              const int32_t* chunks, size_t n_pairs) {
  return coll::write(builder, [&](coll::Builder& b) {
    b.copy(round, coll::buffer_of(from), coll::buffer_of(to), coll::chunks_of(b, chunks, n_pairs));
  });
}

coll_status coll_builder_finish(coll_builder* builder, int32_t** data, size_t* length) {
  return guarded([&] {
    coll_builder& b = coll::known(builder);
    coll::close_rank(b);
    for (int rank = 0; rank < b.schedule.p; ++rank) {
      if (b.written[static_cast<std::size_t>(rank)]) continue;
      b.schedule.programs[static_cast<std::size_t>(rank)] =
          coll::Builder(coll::Layout(b.schedule), rank).finish();
    }
    coll::hand_out(coll::encode(b.schedule), data, length);
    return Status::ok;
  });
}

void coll_builder_free(coll_builder* builder) { delete builder; }

}  // extern "C"
