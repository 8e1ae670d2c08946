// SPDX-License-Identifier: Apache-2.0
#include "streams.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "probe.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace limits {
namespace {

using Words = std::vector<std::uint64_t>;

constexpr std::size_t kMostPasses = 40, kFewestPasses = 3;
constexpr std::size_t kEnoughBytes = std::size_t{128} << 20;
constexpr std::size_t kWordsPerLine = 8;

struct alignas(128) Core {
  std::atomic<std::uint64_t> turn{0};
  Words written, copy;
  std::vector<double> times;
};

void meet(Core& mine, const Core& other, std::uint64_t turn) noexcept {
  mine.turn.store(turn, std::memory_order_release);
  while (other.turn.load(std::memory_order_acquire) < turn) sched_yield();
}

// `words` is a multiple of a line, and the vectors of such sizes begin on 16 bytes.
void copy_past_the_caches(std::uint64_t* to, const std::uint64_t* from, std::size_t words) {
#if defined(__x86_64__)
  for (std::size_t i = 0; i < words; i += kWordsPerLine) {
    for (std::size_t j = i; j < i + kWordsPerLine; j += 2) {
      const auto* source = reinterpret_cast<const __m128i*>(from + j);
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + j), _mm_loadu_si128(source));
    }
  }
  _mm_sfence();
#else
  std::memcpy(to, from, words * sizeof *to);
#endif
}

std::uint64_t sum(const Words& words) {
  return std::accumulate(words.begin(), words.end(), std::uint64_t{0});
}

void measure(Stream stream, Core& mine, const Core& other) {
  static std::atomic<std::uint64_t> sink;  // keeps the reads alive
  std::uint64_t turn = 0, read = 0;
  for (double& time : mine.times) {
    std::iota(mine.written.begin(), mine.written.end(), turn);
    meet(mine, other, ++turn);
    const double begin = now_ns();
    switch (stream) {
      case Stream::copy:
        std::memcpy(mine.copy.data(), mine.written.data(), mine.copy.size() * sizeof(mine.copy[0]));
        break;
      case Stream::streaming:
        copy_past_the_caches(mine.copy.data(), mine.written.data(), mine.copy.size());
        break;
      case Stream::read_the_other:
        read += sum(other.written);
        break;
    }
    time = now_ns() - begin;
    read += sum(mine.copy);
    meet(mine, other, ++turn);  // nobody writes what is being read
  }
  sink.fetch_add(read, std::memory_order_relaxed);
}

}  // namespace

double stream_rate(Stream stream, int a, int b, std::size_t bytes) {
  const std::size_t words = std::max<std::size_t>(bytes / 64, 1) * kWordsPerLine;
  const std::size_t passes = std::clamp(kEnoughBytes / (words * 8), kFewestPasses, kMostPasses);
  Core cores[2];
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      pin(i == 0 ? a : b);
      Core &mine = cores[i], &other = cores[1 - i];
      mine.written.resize(words);
      if (stream != Stream::read_the_other) mine.copy.resize(words);
      mine.times.resize(passes);
      measure(stream, mine, other);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return static_cast<double>(words * 8) / std::max(median(cores[0].times), median(cores[1].times));
}

}  // namespace limits
