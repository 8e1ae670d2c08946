// SPDX-License-Identifier: Apache-2.0
#include "probe.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <system_error>
#include <thread>

namespace limits {
namespace {

struct alignas(128) Flag {
  std::atomic<std::uint64_t> value{0};
};

constexpr int kRoundTrips = 100;
constexpr int kBatches = 60;

// Waits until the flag holds `value`. A core that is taken away for a while must not stop the
// other for a whole time slice, so it yields in the end.
void await(const Flag& flag, std::uint64_t value) noexcept {
  for (int spins = 0; flag.value.load(std::memory_order_acquire) != value; ++spins) {
    if (spins > 20'000) sched_yield();
  }
}

void answer(Flag& ping, Flag& pong) noexcept {
  for (std::uint64_t i = 1; i <= kRoundTrips * kBatches; ++i) {
    await(ping, i);
    pong.value.store(i, std::memory_order_release);
  }
}

std::vector<double> ask(Flag& ping, Flag& pong) {
  std::vector<double> batches(kBatches);
  std::uint64_t i = 0;
  for (double& batch : batches) {
    const double begin = now_ns();
    for (int n = 0; n < kRoundTrips; ++n) {
      ping.value.store(++i, std::memory_order_release);
      await(pong, i);
    }
    batch = (now_ns() - begin) / (2.0 * kRoundTrips);
  }
  return batches;
}

// Copies with both buffers touched between the copies; the sum keeps the reads alive.
std::vector<double> copies(std::size_t bytes, int repetitions, Flag& mine, const Flag& other) {
  std::vector<std::uint64_t> source(bytes / 8), destination(bytes / 8);
  std::vector<double> times(static_cast<std::size_t>(repetitions));
  std::uint64_t turn = 0, sum = 0;
  for (double& time : times) {
    ++turn;
    std::iota(source.begin(), source.end(), turn);
    mine.value.store(turn, std::memory_order_release);
    while (other.value.load(std::memory_order_acquire) < turn) sched_yield();
    const double begin = now_ns();
    std::memcpy(destination.data(), source.data(), bytes);
    time = now_ns() - begin;
    sum += std::accumulate(destination.begin(), destination.end(), std::uint64_t{0});
  }
  static std::atomic<std::uint64_t> sink;
  sink.fetch_add(sum, std::memory_order_relaxed);
  return times;
}

}  // namespace

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) {
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  }
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    throw std::system_error(errno, std::generic_category(), "sched_setaffinity");
  }
}

double now_ns() noexcept {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double median(std::span<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  return samples[(samples.size() - 1) / 2];
}

double line_latency_ns(int a, int b) {
  Flag ping, pong;
  std::thread peer([&] {
    pin(b);
    answer(ping, pong);
  });
  std::vector<double> batches;
  std::thread timer([&] {
    pin(a);
    batches = ask(ping, pong);
  });
  timer.join();
  peer.join();
  return median(batches);
}

double yield_ns(int core) {
  constexpr int kYields = 2000;
  std::vector<double> batches(11);
  std::thread timer([&] {
    pin(core);
    for (double& batch : batches) {
      const double begin = now_ns();
      for (int i = 0; i < kYields; ++i) sched_yield();
      batch = (now_ns() - begin) / kYields;
    }
  });
  timer.join();
  // Whoever else is runnable on the core makes it longer; the best batch had it alone.
  return *std::min_element(batches.begin(), batches.end());
}

double copy_rate(int a, int b, std::size_t bytes) {
  constexpr int kRepetitions = 40;
  Flag flags[2];
  std::vector<double> times[2];
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      pin(i == 0 ? a : b);
      times[i] = copies(bytes, kRepetitions, flags[i], flags[1 - i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return static_cast<double>(bytes) / std::max(median(times[0]), median(times[1]));
}

}  // namespace limits
