// SPDX-License-Identifier: Apache-2.0
// What interpreting a plan costs: the executor on a bound plan beside a loop written by hand for
// two ranks with the same kernels, slots and flags, and beside all others that were written by hand
// (ways.cc), in interleaved bursts. Prints JSON; used by `python -m bench.limits`.
//
//   coll_interpreter [pairs [case]]    case: 0 for the first
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/algorithm.h"
#include "bootstrap/membership.h"
#include "engine/executor.h"
#include "engine/pause.h"
#include "hand.h"
#include "kernels/few.h"
#include "plan/lower.h"
#include "probe.h"
#include "ways.h"

namespace limits {
namespace {

constexpr int kForever = 1 << 30;
constexpr double kFar = 120;  // ns of a line's way, as in collectives/measure.py

struct Case {
  const char* name;
  const char* algorithm;
  coll::Mode mode;
  int lag;
  std::size_t bytes, tile_bytes;
  int calls;  // per burst
};

constexpr Case kCases[] = {
    {"8 B, flag behind the payload", "direct_one_shot", coll::Mode::inlined, 0, 8, 0, 2000},
    {"1 KiB, flag behind the payload", "direct_one_shot", coll::Mode::inlined, 0, 1024, 0, 1000},
    {"4 KiB, flag behind the payload", "direct_one_shot", coll::Mode::inlined, 0, 4096, 0, 500},
    {"1 MiB, staged two-shot, lags 0 1 1 2", "direct_two_shot", coll::Mode::staged, 1, 1 << 20,
     256 << 10, 4},
};

void spin_until(const std::atomic<std::uint64_t>& word, std::uint64_t value, bool exact) {
  while (exact ? word.load(std::memory_order_acquire) != value
               : word.load(std::memory_order_acquire) < value) {
    coll::pause();
  }
}

// One rank of the loop written by hand, over its own pair of rings.
class HandWritten {
 public:
  HandWritten(std::byte* rings, std::size_t slot_bytes, std::atomic<std::uint64_t>* progress,
              int rank)
      : rings_(rings),
        slot_bytes_(slot_bytes),
        progress_(progress),
        rank_(rank),
        kernel_(coll::fold_kernel(coll::Dtype::float32, coll::Reduction::sum)),
        few_(coll::few_kernel(coll::Dtype::float32, coll::Reduction::sum)) {}

  // Both publish the whole vector with a flag behind it; both add in rank order.
  void one_shot(const float* in, float* out, std::size_t n) {
    const std::uint64_t flag = ++calls_;
    const std::size_t slot = (calls_ % kSlots) * slot_bytes_, end = (n * sizeof(float) + 7) / 8 * 8;
    std::byte* mine = ring(rank_) + slot;
    fold(in, nullptr, mine, nullptr, n);
    reinterpret_cast<std::atomic<std::uint64_t>*>(mine + end)
        ->store(flag, std::memory_order_release);
    const std::byte* theirs = ring(1 - rank_) + slot;
    spin_until(*reinterpret_cast<const std::atomic<std::uint64_t>*>(theirs + end), flag, true);
    rank_ == 0 ? fold(in, theirs, out, nullptr, n) : fold(theirs, in, out, nullptr, n);
  }

  // Tile by tile: copy the peer's half in; one tile later reduce mine to output and slot; one tile
  // later copy the peer's result out. Three slots' distance needs no acknowledgement.
  void two_shot(const float* in, float* out, std::size_t n, std::size_t tile) {
    const std::size_t half = n / 2, tiles = (half + tile - 1) / tile;
    const float* theirs_in = in + (rank_ == 0 ? half : 0);
    const float* mine_in = in + (rank_ == 0 ? 0 : half);
    float* mine_out = out + (rank_ == 0 ? 0 : half);
    float* theirs_out = out + (rank_ == 0 ? half : 0);
    const std::uint64_t base = ticks_;
    for (std::size_t i = 0; i < tiles + 2; ++i) {
      if (i < tiles) {
        fold(theirs_in + i * tile, nullptr, area(rank_, i, 0), nullptr, size(i, tile, half));
        post(base + 3 * i + 1);
      }
      if (i >= 1 && i - 1 < tiles) {
        const std::size_t t = i - 1, m = size(t, tile, half);
        wait(base + 3 * t + 1);
        const std::byte* peer = area(1 - rank_, t, 0);
        const float* own = mine_in + t * tile;
        rank_ == 0 ? fold(own, peer, mine_out + t * tile, area(rank_, t, 1), m)
                   : fold(peer, own, mine_out + t * tile, area(rank_, t, 1), m);
        post(base + 3 * i + 2);
      }
      if (i >= 2) {
        const std::size_t t = i - 2;
        wait(base + 3 * (t + 1) + 2);
        fold(area(1 - rank_, t, 1), nullptr, theirs_out + t * tile, nullptr, size(t, tile, half));
      }
    }
    running_ += tiles;
    ticks_ = base + 3 * (tiles + 2) + 3;
  }

 private:
  static constexpr std::size_t kSlots = 4;

  std::byte* ring(int rank) const {
    return rings_ + static_cast<std::size_t>(rank) * kSlots * slot_bytes_;
  }
  std::byte* area(int rank, std::size_t tile, std::size_t which) const {
    return ring(rank) + ((running_ + tile) % kSlots) * slot_bytes_ + which * slot_bytes_ / 2;
  }
  static std::size_t size(std::size_t t, std::size_t tile, std::size_t half) {
    return std::min(tile, half - t * tile);
  }
  void post(std::uint64_t tick) const {
    progress_[rank_ * 8].store(tick, std::memory_order_release);
  }
  void wait(std::uint64_t tick) const { spin_until(progress_[(1 - rank_) * 8], tick, false); }
  void fold(const void* a, const void* b, void* x, void* y, std::size_t n) const {
    const std::size_t bytes = n * sizeof(float);
    if (bytes <= coll::kFewBytes && y == nullptr) {
      if (b != nullptr) return few_(x, a, b, n);
      return coll::copy_few(static_cast<std::byte*>(x), static_cast<const std::byte*>(a), bytes);
    }
    const void* sources[2] = {a, b};
    void* destinations[2] = {x, y};
    kernel_({.sources = sources,
             .destinations = destinations,
             .n = n,
             .k = b == nullptr ? 1U : 2U,
             .m = y == nullptr ? 1U : 2U,
             .balanced = false,
             .streaming = 0,
             .divisor = 1});
  }

  std::byte* rings_;
  std::size_t slot_bytes_;
  std::atomic<std::uint64_t>* progress_;
  int rank_;
  coll::FoldKernel kernel_;
  coll::FewKernel few_;
  std::uint64_t calls_ = 0, ticks_ = 0;
  std::size_t running_ = 0;
};

// One rank of the executor on a bound plan: what a communicator runs, without what it checks.
class Interpreted {
 public:
  Interpreted(const Case& c, const coll::Plan& plan, const coll::Segment& segment, int rank,
              const float* in, float* out)
      : binding_(plan, rank, segment),
        executor_(segment, rank),
        large_{.streams = plan.stores == coll::Stores::non_temporal} {
    binding_.bind({.input = in,
                   .output = out,
                   .count = c.bytes / sizeof(float),
                   .dtype = coll::Dtype::float32,
                   .op = coll::Reduction::sum,
                   .tile_bytes = c.tile_bytes});
  }
  void call() {
    ++clock_.calls;
    clock_.fingerprint += 0x9E3779B97F4A7C15ULL;
    executor_.begin(binding_, clock_, large_);
    while (executor_.advance(kForever) != coll::Progress::done) {
    }
  }
  std::size_t tile() const { return binding_.tile_elements(); }

 private:
  coll::Binding binding_;
  coll::Executor executor_;
  coll::Large large_;
  coll::GroupClock clock_;
};

// Mean time of a call in a burst of each kind; the ranks keep step because every call is a barrier.
struct Burst {
  double hand = 0, plan = 0;
  std::vector<double> loops;  // of the other ways
};

// What the two ranks of a case share.
struct Stage {
  const Case& c;
  coll::Plan plan;
  std::vector<coll::Membership> members = coll::local_group({.ranks = 2});
  std::size_t slot;
  coll::Memory rings;
  std::atomic<std::uint64_t>* progress;  // two lines
  std::vector<Way> ways;
  HandSegment loops;
  std::vector<Burst> bursts;
  std::atomic<bool> wrong{false};
};

// One rank of a case: bursts of both kinds in turn.
class Contest {
 public:
  Contest(Stage& stage, int rank)
      : stage_(stage),
        rank_(rank),
        n_(stage.c.bytes / sizeof(float)),
        in_(n_, 1.0F),
        out_(n_),
        interpreted_(stage.c, stage.plan, stage.members[static_cast<std::size_t>(rank)].segment,
                     rank, in_.data(), out_.data()),
        hand_(static_cast<std::byte*>(stage.rings.data()), stage.slot, stage.progress, rank) {
    stage.loops.touch(rank);
    for (const Way& way : stage.ways) loops_.emplace_back(stage.loops, rank, loops_.size(), way);
  }

  void run() {
    for (Burst& burst : stage_.bursts) {
      const double by_hand = time([this] { by_hand_once(); });
      expect_sum(out_);
      const double by_plan = time([this] { interpreted_.call(); });
      expect_sum(out_);
      std::vector<double> others;
      for (std::size_t i = 0; i < loops_.size(); ++i) others.push_back(by_other_loop(i));
      if (rank_ == 0) burst = {by_hand, by_plan, std::move(others)};
    }
  }

 private:
  bool small() const { return stage_.c.mode == coll::Mode::inlined; }

  void by_hand_once() {
    if (small()) {
      hand_.one_shot(in_.data(), out_.data(), n_);
    } else {
      hand_.two_shot(in_.data(), out_.data(), n_, interpreted_.tile());
    }
  }
  double by_other_loop(std::size_t i) {
    float *in = in_.data(), *out = out_.data();
    Hand& loop = loops_[i];
    if (stage_.ways[i].form == Form::two_shot) {  // in place
      const double ns = time([&] { loop.allreduce_halves(in, n_); });
      expect_sum(in_);
      return ns;
    }
    const Job job{.send = in, .sent = n_, .own = in, .out = out, .received = n_};
    const double ns = time([&] { loop.run(job); });
    expect_sum(out_);
    return ns;
  }
  // The last sum must be there; then it goes, so that the next must be made.
  void expect_sum(std::vector<float>& result) {
    if (result[n_ - 1] != 2.0F) stage_.wrong = true;
    result[n_ - 1] = 0;
  }
  // As a user would: the inputs rewritten, the outputs read, between two calls.
  void touch() {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      wrong += out_[i] != 0.0F && out_[i] != 2.0F ? 1 : 0;
      in_[i] = 1.0F;
    }
    if (wrong != 0) stage_.wrong = true;
  }

  template <class Call>
  double time(Call&& call) {
    if (small()) {
      const double begin = now_ns();
      for (int i = 0; i < stage_.c.calls; ++i) call();
      return (now_ns() - begin) / stage_.c.calls;
    }
    double ns = 0;
    for (int i = 0; i < stage_.c.calls; ++i) {
      touch();
      interpreted_.call();  // lines the ranks up
      touch();
      const double begin = now_ns();
      call();
      ns += now_ns() - begin;
    }
    return ns / stage_.c.calls;
  }

  Stage& stage_;
  int rank_;
  std::size_t n_;
  std::vector<float> in_, out_;
  Interpreted interpreted_;
  HandWritten hand_;
  std::vector<Hand> loops_;
};

// `far`: what is staged may go around the caches, as the library would have it.
std::vector<Burst> measure(const Case& c, const std::vector<int>& cores, bool far,
                           std::size_t pairs) {
  const int index = coll::find_algorithm(coll::Kind::allreduce, c.algorithm);
  const coll::Algorithm& a = *coll::algorithms()[static_cast<std::size_t>(index)];
  const coll::Stores stores = far ? coll::Stores::non_temporal : coll::Stores::ordinary;
  const std::size_t slot = c.mode == coll::Mode::inlined ? 16 << 10 : 512 << 10;
  alignas(64) static std::atomic<std::uint64_t> progress[16];
  for (auto& p : progress) p = 0;
  Stage stage{.c = c,
              .plan = coll::lower(coll::make_schedule(a, 2),
                                  {.mode = c.mode, .depth = 4, .lag = c.lag, .stores = stores}),
              .slot = slot,
              .rings = coll::Memory::allocate(8 * slot),
              .progress = progress,
              .ways = ways_of(Collective::allreduce, c.bytes),
              .loops = {},
              .bursts = std::vector<Burst>(pairs)};
  const auto play = [&](int rank) {
    pin(cores[static_cast<std::size_t>(rank)]);
    Contest(stage, rank).run();
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  if (stage.wrong) throw std::runtime_error("a wrong sum");
  return stage.bursts;
}

void print(const Case& c, const Burst& burst, double before, double after, bool first) {
  std::printf(
      "%s\n  {\"row\": \"%s\", \"bytes\": %zu, \"hand_ns\": %.2f, \"plan_ns\": %.2f, "
      "\"line_before_ns\": %.1f, \"line_after_ns\": %.1f, \"loops_ns\": {",
      first ? "" : ",", c.name, c.bytes, burst.hand, burst.plan, before, after);
  const std::vector<Way> ways = ways_of(Collective::allreduce, c.bytes);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    std::printf("%s\"%s\": %.2f", i == 0 ? "" : ", ", name_of(ways[i]).c_str(), burst.loops[i]);
  }
  std::printf("}}");
}

int run(int argc, char** argv) {
  const std::vector<int> cores = usable_cores();
  if (cores.size() < 2) throw std::runtime_error("two usable cores are needed, found one");
  const long rounds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 40;
  const long only = argc > 2 ? std::strtol(argv[2], nullptr, 10) : -1;
  if (rounds < 1) throw std::runtime_error("the number of pairs must be 1 or more");
  std::printf("{\"pairs\": [");
  bool first = true;
  for (long round = 0; round < rounds; ++round) {
    for (const Case& c : kCases) {
      if (only >= 0 && &c != &kCases[only]) continue;
      std::thread([&] {  // pinning stays with this thread
        const double before = line_latency_ns(cores[0], cores[1]);
        const std::vector<Burst> bursts = measure(c, cores, before >= kFar, 3);
        const double after = line_latency_ns(cores[0], cores[1]);
        for (const Burst& burst : bursts) {
          print(c, burst, before, after, first);
          first = false;
        }
      })
          .join();
    }
  }
  std::printf("\n]}\n");
  return 0;
}

}  // namespace
}  // namespace limits

int main(int argc, char** argv) {
  try {
    return limits::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "coll_interpreter: %s\n", error.what());
    return 1;
  }
}
