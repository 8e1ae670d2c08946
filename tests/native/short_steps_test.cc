// SPDX-License-Identifier: Apache-2.0
// Calls of one tile run a list of steps (engine/short_step.h) that was made with their binding:
// which calls have one, and that every algorithm comes by it, in any turn of the ranks, to the sums
// that its ops lead to.
#include <algorithm>
#include <bit>
#include <memory>
#include <random>
#include <vector>

#include "algorithms/algorithm.h"
#include "bootstrap/membership.h"
#include "check.h"
#include "engine/executor.h"
#include "kernels/few.h"
#include "plan/lower.h"
#include "transport/core_cache.h"

namespace {

using coll::Mode;

// All ranks of an allreduce of float32, played by one thread: each advances until it has to wait.
class Players {
 public:
  Players(const coll::Algorithm& a, int p, Mode mode, std::size_t count, std::size_t tile_bytes,
          int lag = 0, std::size_t slot_bytes = coll::SegmentShape{}.slot_bytes)
      : plan_(coll::lower(coll::make_schedule(a, p), {.mode = mode, .depth = 4, .lag = lag})),
        members_(
            coll::local_group({.ranks = static_cast<std::uint32_t>(p), .slot_bytes = slot_bytes})) {
    for (int rank = 0; rank < p; ++rank) {
      const coll::Segment& segment = members_[static_cast<std::size_t>(rank)].segment;
      players_.push_back(std::make_unique<Player>(plan_, segment, rank, count, tile_bytes));
    }
  }

  bool short_steps() const { return players_[0]->binding.short_steps(0) != nullptr; }

  // Bytes of a slot that its turns use: the same for all ranks.
  std::size_t turned_bytes(bool far) const {
    const coll::Binding& first = players_[0]->binding;
    for (const auto& player : players_) {
      CHECK(player->binding.turn_mask(far) == first.turn_mask(far));
      CHECK(player->binding.turn_bytes() == first.turn_bytes());
    }
    return (first.turn_mask(far) + 1) * first.turn_bytes();
  }

  // Whether a rank has staged something in the second turn of its first slot.
  bool went_on() const {
    const std::size_t turn = players_[0]->binding.turn_bytes();
    for (std::size_t r = 0; r < members_.size(); ++r) {
      const std::byte* second = members_[r].segment.slot_ring(static_cast<int>(r)) + turn;
      const auto written = [](std::byte b) { return b != std::byte{0}; };
      if (std::any_of(second, second + turn, written)) return true;
    }
    return false;
  }

  // Several calls in a row, so that slots are used again.
  void play(std::mt19937& turns, int calls = 9) {
    for (int call = 1; call <= calls; ++call) {
      for (std::size_t r = 0; r < players_.size(); ++r)
        players_[r]->begin(call + static_cast<int>(r), call % 3 == 0);
      std::vector<std::size_t> playing(players_.size());
      for (std::size_t r = 0; r < playing.size(); ++r) playing[r] = r;
      for (int idle = 0; !playing.empty() && idle < 100000; ++idle) {
        const std::size_t at = turns() % playing.size();
        const coll::Progress progress = players_[playing[at]]->executor.advance(0);
        CHECK(progress == coll::Progress::done || progress == coll::Progress::blocked);
        if (progress == coll::Progress::done)
          playing.erase(playing.begin() + static_cast<long>(at));
      }
      CHECK(playing.empty());
      const int p = static_cast<int>(players_.size());
      const int ranks_before = p * (p - 1) / 2;
      const auto sum = static_cast<float>(p * call + ranks_before);
      for (const auto& player : players_) {
        CHECK(std::all_of(player->out.begin(), player->out.end(),
                          [sum](float x) { return x == sum; }));
      }
    }
  }

 private:
  struct Player {
    Player(const coll::Plan& plan, const coll::Segment& segment, int rank, std::size_t count,
           std::size_t tile_bytes)
        : in(count),
          out(count),
          scratch(count),
          binding(plan, rank, segment),
          executor(segment, rank),
          tile(tile_bytes) {
      bind();
    }
    void bind() {
      binding.bind({.input = in.data(),
                    .output = out.data(),
                    .scratch = scratch.data(),
                    .count = in.size(),
                    .dtype = coll::Dtype::float32,
                    .op = coll::Reduction::sum,
                    .tile_bytes = tile});
    }
    // `elsewhere`: the arrays lie where none did before.
    void begin(int value, bool elsewhere) {
      if (elsewhere) {
        std::vector<float> other(in.size());
        in.swap(other);
        bind();
      }
      std::fill(in.begin(), in.end(), static_cast<float>(value));
      std::fill(out.begin(), out.end(), -1.0F);
      ++clock.calls;
      clock.fingerprint += 0x9E3779B97F4A7C15ULL;
      executor.begin(binding, clock);
    }
    std::vector<float> in, out, scratch;
    coll::Binding binding;
    coll::Executor executor;
    coll::GroupClock clock;
    std::size_t tile;
  };

  coll::Plan plan_;
  std::vector<coll::Membership> members_;
  std::vector<std::unique_ptr<Player>> players_;
};

const coll::Algorithm& allreduce(const char* name) {
  const int index = coll::find_algorithm(coll::Kind::allreduce, name);
  return *coll::algorithms()[static_cast<std::size_t>(index)];
}

TEST(few_bytes_are_copied_and_no_more) {
  for (std::size_t n = 0; n <= coll::kFewBytes; ++n) {
    std::vector<std::byte> from(n), to(n + 16, std::byte{7}), wanted = to;
    for (std::size_t i = 0; i < n; ++i) from[i] = wanted[8 + i] = static_cast<std::byte>(100 + i);
    coll::copy_few(to.data() + 8, from.data(), n);
    CHECK(to == wanted);
  }
}

TEST(calls_of_one_tile_have_steps) {
  const coll::Algorithm& one_shot = allreduce("direct_one_shot");
  CHECK(Players(one_shot, 3, Mode::inlined, 2, 0).short_steps());
  CHECK(Players(one_shot, 3, Mode::staged, 1000, 0).short_steps());
  CHECK(!Players(one_shot, 3, Mode::staged, 1000, 400).short_steps());  // tiles
  // Where peers' buffers lie is not known yet.
  CHECK(!Players(allreduce("ring"), 3, Mode::pull, 2, 0).short_steps());
}

// Short tiles go through more of the slots than they need, and never beyond them.
TEST(turns_of_a_ring_stay_in_its_slots) {
  std::mt19937 turns(20261127);
  constexpr std::size_t kSlot = 8192;
  for (const coll::Algorithm* a : coll::algorithms()) {
    if (a->kind != coll::Kind::allreduce) continue;
    for (const int p : {2, 3, 5}) {
      if (!a->fits(p)) continue;
      for (const std::size_t count : {0, 1, 17, 300, 2000, 6000}) {
        Players players(*a, p, Mode::staged, count, 0, 1, kSlot);
        for (const bool far : {false, true}) {
          const std::size_t bytes = players.turned_bytes(far);
          CHECK(bytes <= kSlot && (count != 17 || bytes > kSlot / 2));
        }
        players.play(turns, 40);
      }
    }
  }
  CHECK(Players(allreduce("ring"), 4, Mode::staged, 1 << 20, 0, 1).turned_bytes(false) <=
        512 << 10);
  const Players two(allreduce("direct_one_shot"), 2, Mode::staged, 2048, 0, 1);
  CHECK(two.turned_bytes(true) == 32 << 10);
  // Both ranks' rings of four slots together.
  CHECK(two.turned_bytes(false) ==
        std::min(2 * std::bit_ceil(coll::core_cache()) / 8, std::size_t{512} << 10));
}

// So do steps, whose addresses are in place before the call.
TEST(steps_turn_with_the_ring) {
  std::mt19937 turns(20261129);
  for (const coll::Algorithm* a : coll::algorithms()) {
    if (a->kind != coll::Kind::allreduce) continue;
    for (const int p : {2, 3, 5}) {
      if (!a->fits(p)) continue;
      for (const std::size_t count : {17, 300}) {
        Players players(*a, p, Mode::staged, count, 0, 0, 8192);
        CHECK(players.short_steps() && players.turned_bytes(false) > 4096);
        players.play(turns, 40);
        CHECK(players.went_on());
      }
    }
  }
}

TEST(all_algorithms_come_to_the_sum) {
  std::mt19937 turns(20261126);
  for (const coll::Algorithm* a : coll::algorithms()) {
    if (a->kind != coll::Kind::allreduce) continue;
    for (const int p : {1, 2, 3, 4, 5, 8}) {
      if (!a->fits(p)) continue;
      for (const Mode mode : {Mode::staged, Mode::inlined}) {
        for (const std::size_t count : {1, 2, 16, 17, 50}) {
          Players players(*a, p, mode, count, 0);
          CHECK(players.short_steps());
          players.play(turns);
        }
        Players(*a, p, mode, 50, 64).play(turns);  // by ops where that makes tiles of it
      }
    }
  }
}

}  // namespace
