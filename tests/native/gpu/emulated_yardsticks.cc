// SPDX-License-Identifier: Apache-2.0
// What bench/gpu/yardsticks.h promises, without a GPU: part of the emulated one, so that the
// command that measures on a GPU can be tested without. Its times are those of threads, and say
// nothing.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "cuda/signals.h"
#include "emulated_streams.h"
#include "gpu/values.h"

namespace coll::yardsticks {
namespace {

using Words = cuda::Signals<cuda::ReleaseAcquire>;

constexpr int kWordsApart = 16;

std::int32_t refuse(const char* text, Sentence* why) noexcept {
  std::snprintf(why->text, sizeof(why->text), "%s", text);
  return -1;
}

void sum_by_hand(const Vectors& v) {
  for (std::uint64_t i = 0; i < v.n; ++i) {
    float sum = static_cast<const float*>(v.in[0])[i];
    for (int rank = 1; rank < v.ranks; ++rank) sum += static_cast<const float*>(v.in[rank])[i];
    for (int rank = 0; rank < v.ranks; ++rank) static_cast<float*>(v.out[rank])[i] = sum;
  }
}

void pass(std::uint64_t* mine, const std::uint64_t* others, bool serves, std::uint64_t turns) {
  const std::uint64_t begin = *mine;
  for (std::uint64_t turn = 1; turn <= turns; ++turn) {
    if (serves) Words::release(mine, begin + turn);
    while (Words::acquire(others) < begin + turn) Words::pause();
    if (!serves) Words::release(mine, begin + turn);
  }
}

}  // namespace

extern "C" {

std::int32_t yard_facts(std::int32_t, Facts* facts, Sentence*) noexcept {
  *facts = {};
  std::snprintf(facts->name, sizeof(facts->name), "emulated");
  facts->multiprocessors = 16;
  facts->memory = facts->free = 1 << 30;
  return 0;
}

std::int32_t yard_stream(std::int32_t, void** stream, Sentence*) noexcept {
  *stream = std::make_unique<int>().release();
  return 0;
}
void yard_end_stream(std::int32_t, void* stream) noexcept {
  const std::unique_ptr<int> owned(static_cast<int*>(stream));
}
std::int32_t yard_synchronize(std::int32_t, Sentence*) noexcept {
  cuda::emulated_finish_all();
  return 0;
}

std::int32_t yard_write(std::int32_t, void* to, const void* from, std::size_t bytes,
                        Sentence*) noexcept {
  cuda::emulated_finish_all();
  std::memcpy(to, from, bytes);
  return 0;
}
std::int32_t yard_read(std::int32_t, void* to, const void* from, std::size_t bytes,
                       Sentence*) noexcept {
  cuda::emulated_finish_all();
  std::memcpy(to, from, bytes);
  return 0;
}

std::int32_t yard_copy(std::int32_t, void* to, const void* from, std::size_t bytes, void* stream,
                       Sentence*) noexcept {
  cuda::emulated_enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  return 0;
}
std::int32_t yard_poison(std::int32_t, void* at, std::size_t bytes, void* stream,
                         Sentence*) noexcept {
  cuda::emulated_enqueue(stream, [=] { std::memset(at, 0xff, bytes); });
  return 0;
}
std::int32_t yard_fill(std::int32_t, void* at, std::uint64_t n, std::int32_t narrow,
                       std::uint64_t seed, void* stream, Sentence*) noexcept {
  cuda::emulated_enqueue(stream, [=] {
    for (std::uint64_t i = 0; i < n; ++i) fill_at(at, i, narrow != 0, seed);
  });
  return 0;
}
std::int32_t yard_fused(std::int32_t, const Vectors* vectors, void* stream,
                        Sentence* why) noexcept {
  const Vectors told = *vectors;
  const bool known = told.ranks == 2 || told.ranks == 4 || told.ranks == 8;
  if (!known || told.narrow != 0 || told.n % 4 != 0) {
    return refuse("a sum by hand, of 2, 4 or 8 vectors of float4: invalid argument", why);
  }
  cuda::emulated_enqueue(stream, [told] { sum_by_hand(told); });
  return 0;
}
std::int32_t yard_nothing(std::int32_t, std::int32_t, void* stream, Sentence*) noexcept {
  cuda::emulated_enqueue(stream, [] {});
  return 0;
}
std::int32_t yard_ping_pong(std::int32_t, std::uint64_t* words, std::uint64_t turns, void* stream,
                            Sentence*) noexcept {
  cuda::emulated_enqueue(stream, [=] {
    std::thread other([=] { pass(words + kWordsApart, words, false, turns); });
    pass(words, words + kWordsApart, true, turns);
    other.join();
  });
  return 0;
}

std::int32_t yard_wrong(std::int32_t, const Vectors* vectors, std::uint64_t* wrong, void*,
                        Sentence*) noexcept {
  cuda::emulated_finish_all();
  *wrong = 0;
  for (std::uint64_t i = 0; i < vectors->n; ++i) *wrong += wrong_at(*vectors, i);
  return 0;
}

std::int32_t yard_capture(std::int32_t, void* stream, Sentence*) noexcept {
  cuda::emulated_begin_capture(stream);
  return 0;
}
std::int32_t yard_captured(std::int32_t, void* stream, void** graph, Sentence*) noexcept {
  *graph = std::make_unique<std::uint64_t>(cuda::emulated_end_capture(stream)).release();
  return 0;
}
void yard_end_graph(std::int32_t, void* graph) noexcept {
  const std::unique_ptr<std::uint64_t> owned(static_cast<std::uint64_t*>(graph));
}
std::int32_t yard_replay(std::int32_t, void* graph, std::int32_t times, void* stream,
                         double* seconds, Sentence* why) noexcept {
  const auto begin = std::chrono::steady_clock::now();
  for (std::int32_t i = 0; i < times; ++i) {
    if (cuda::emulated_replay(*static_cast<std::uint64_t*>(graph), stream) != 0) {
      return refuse("a launch of the graph is not ordered", why);
    }
  }
  *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return 0;
}

}  // extern "C"

}  // namespace coll::yardsticks
