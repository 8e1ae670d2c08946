// SPDX-License-Identifier: Apache-2.0
// Ranks of a GPU that is not there: a plan, its codes and buffers, launched as threads.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "check.h"
#include "cuda/assemble.h"
#include "cuda/emulation.h"
#include "cuda/families.h"
#include "plan/lower.h"

namespace coll::testing {

// Numbers that all dtypes have, whose sums of eight are exact in all of them.
inline int small_number(int rank, std::size_t i, unsigned call) {
  const std::size_t mixed = (i * 7 + static_cast<std::size_t>(rank) * 5 + call * 3) % 11;
  return static_cast<int>(mixed % 3) - 1;
}

// What a device keeps between launches: the memory of all ranks' stages, ticks, and the control.
class EmulatedDevice {
 public:
  explicit EmulatedDevice(int ranks, const cuda::Room& room)
      : room_(room), ranks_(ranks), ticks_(line_count() * cuda::kTickWords) {
    const auto channels = static_cast<std::size_t>(room.channels);
    for (int rank = 0; rank < ranks; ++rank) {
      stages_.push_back(vectors(channels * room.ring_bytes));
      packets_.push_back(vectors(channels * room.packet_ring_bytes));
    }
  }

  const cuda::Room& room() const { return room_; }
  int ranks() const { return ranks_; }
  cuda::Control& control() { return control_; }
  std::uint64_t& tick(int rank, int channel) {
    return ticks_[static_cast<std::size_t>(rank * (cuda::kMostChannels + 1) + channel) *
                  cuda::kTickWords];
  }

  void complete(cuda::Launch& launch, bool packets) {
    for (int r = 0; r < ranks_; ++r) launch.ticks[r] = &tick(r, 0);
    launch.control = &control_;
    launch.limit_ns = limit_ns;
    launch.ring_bytes = packets ? room_.packet_ring_bytes : room_.ring_bytes;
    for (std::size_t r = 0; r < stages_.size(); ++r) {
      const auto& stage = packets ? packets_[r] : stages_[r];
      launch.buffers[r].at[static_cast<int>(Place::stage)] =
          reinterpret_cast<std::byte*>(stage.get());
    }
  }

  std::uint64_t limit_ns = 20'000'000'000;

 private:
  using Line = cuda::Vector<cuda::kVectorBytes>;
  using Memory = std::unique_ptr<Line[]>;
  static Memory vectors(std::size_t bytes) {
    return std::make_unique<Line[]>(bytes / sizeof(Line));
  }
  std::size_t line_count() const {
    return static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(cuda::kMostChannels + 1);
  }

  cuda::Room room_;
  int ranks_;
  std::vector<std::uint64_t> ticks_;
  std::vector<Memory> stages_, packets_;
  cuda::Control control_{};
};

// A plan cut and assembled for a count of elements of so many bytes.
class EmulatedCall {
 public:
  EmulatedCall(const Plan& plan, std::size_t count, const std::size_t* counts,
               std::size_t element_bytes, EmulatedDevice& device)
      : plan_(plan), partition_(plan.layout), device_(device) {
    partition_.cut(count, counts);
    const cuda::Room& room = device.room();
    cut_ = cuda::cut_for(plan, partition_, element_bytes, room);
    for (int rank = 0; rank < plan.layout.p; ++rank) {
      codes_.push_back(cuda::assemble(plan, rank, partition_, element_bytes, cut_, room));
      launch_.codes[rank] = cuda::as<const cuda::Code>(codes_.back().data());
      shared_bytes_ = std::max(shared_bytes_, cuda::shared_bytes(*launch_.codes[rank]));
    }
    launch_.element_bytes = static_cast<std::uint32_t>(element_bytes);
    launch_.tile_elements = cut_.tile_elements;
    launch_.slot_bytes = cut_.slot_bytes;
    launch_.tiles_at_once = cut_.tiles_at_once;
    launch_.threads = cut_.threads;
    launch_.ranks = launch_.ranks_here = plan.layout.p;
    launch_.channels = cut_.channels;
    cuda::share_tiles(launch_, cut_.tiles);
    launch_.divisor = 1;
    launch_.units = 1;
    device.complete(launch_, plan.inlined());
  }

  cuda::Launch& launch() { return launch_; }
  std::vector<const cuda::Code*> codes() const {
    return {launch_.codes, launch_.codes + plan_.layout.p};
  }
  const cuda::Cut& cut() const { return cut_; }
  const Partition& partition() const { return partition_; }
  std::size_t shared_bytes() const { return shared_bytes_; }
  // Elements of a rank's buffer.
  std::size_t elements(int rank, Buffer buffer) const {
    return partition_.elements(rank, buffer, 0, plan_.layout.cells(rank, buffer));
  }
  std::size_t scratch_elements(int rank) const {
    if (plan_.layout.kind != Kind::alltoall) return elements(rank, Buffer::scratch);
    return partition_.longest() * static_cast<std::size_t>(plan_.layout.p);
  }
  void place(int rank, Place place, void* buffer) {
    launch_.buffers[rank].at[static_cast<int>(place)] = static_cast<std::byte*>(buffer);
  }

 private:
  const Plan& plan_;
  Partition partition_;
  EmulatedDevice& device_;
  cuda::Cut cut_;
  std::vector<std::vector<std::uint64_t>> codes_;
  std::size_t shared_bytes_ = 0;
  cuda::Launch launch_{};
};

// All ranks' buffers of a call of float32 sums of small numbers, and whether the results are right.
class EmulatedBuffers {
 public:
  EmulatedBuffers(const Plan& plan, EmulatedCall& call, bool in_place, unsigned number)
      : plan_(plan), call_(call), number_(number) {
    for (int rank = 0; rank < plan.layout.p; ++rank) {
      input_.emplace_back(call.elements(rank, Buffer::input) + 1, kUntouched);
      output_.emplace_back(call.elements(rank, Buffer::output) + 1, kUntouched);
      scratch_.emplace_back(call.scratch_elements(rank) + 1);
      fill(rank);
      float* input = input_.back().data();
      results_.push_back(output_.back().data());
      if (in_place) input = share(rank);
      call.place(rank, Place::input, input);
      call.place(rank, Place::output, results_.back());
      call.place(rank, Place::scratch, scratch_.back().data());
    }
  }

  // "" where they are right; else the first that is not.
  std::string wrong() const {
    const Layout& layout = plan_.layout;
    for (int rank = 0; rank < layout.p; ++rank) {
      for (int cell = 0; cell < layout.cells(rank, Buffer::output); ++cell) {
        const std::string found = wrong_in(rank, cell);
        if (!found.empty()) return found;
      }
      if (output_[static_cast<std::size_t>(rank)].back() != kUntouched ||
          input_[static_cast<std::size_t>(rank)].back() != kUntouched) {
        return "rank " + std::to_string(rank) + ": written beyond the end";
      }
    }
    return "";
  }

 private:
  std::size_t offset(int rank, Buffer buffer, int cell) const {
    return call_.partition().offset(rank, buffer, cell);
  }

  float number_of(int rank, int chunk, std::size_t i) const {
    return static_cast<float>(
        small_number(rank, i + static_cast<std::size_t>(chunk) * 13, number_));
  }

  void fill(int rank) {
    const Layout& layout = plan_.layout;
    for (int cell = 0; cell < layout.cells(rank, Buffer::input); ++cell) {
      const std::size_t n = call_.partition().elements(rank, Buffer::input, cell, 1);
      for (std::size_t i = 0; i < n; ++i) {
        input_.back()[offset(rank, Buffer::input, cell) + i] =
            number_of(rank, layout.chunk(rank, Buffer::input, cell), i);
      }
    }
  }

  // In place the shorter of both buffers lies in the longer one. Returns where the input is.
  float* share(int rank) {
    const Layout& layout = plan_.layout;
    for (int cell = 0; cell < layout.cells(rank, Buffer::input); ++cell) {
      const int alias = layout.alias(rank, cell);
      if (alias < 0) continue;
      const std::size_t in = offset(rank, Buffer::input, cell);
      const std::size_t out = offset(rank, Buffer::output, alias);
      if (input_.back().size() > output_.back().size()) {
        results_.back() = input_.back().data() + in - out;
        return input_.back().data();
      }
      std::copy_n(input_.back().begin(), input_.back().size() - 1,
                  output_.back().begin() + static_cast<std::ptrdiff_t>(out - in));
      return output_.back().data() + out - in;
    }
    return input_.back().data();
  }

  std::string wrong_in(int rank, int cell) const {
    const Layout& layout = plan_.layout;
    const int chunk = layout.chunk(rank, Buffer::output, cell);
    const Interval from = layout.contributors(rank, chunk);
    const std::size_t n = call_.partition().elements(rank, Buffer::output, cell, 1);
    for (std::size_t i = 0; i < n; ++i) {
      float expected = 0;
      for (int q = from.low; q < from.high; ++q) expected += number_of(q, chunk, i);
      const float found =
          results_[static_cast<std::size_t>(rank)][offset(rank, Buffer::output, cell) + i];
      if (found == expected) continue;
      return "rank " + std::to_string(rank) + ", chunk " + std::to_string(chunk) + ", element " +
             std::to_string(i) + ": " + std::to_string(found) + " for " + std::to_string(expected);
    }
    return "";
  }

  static constexpr float kUntouched = -77;

  const Plan& plan_;
  EmulatedCall& call_;
  unsigned number_;
  std::vector<std::vector<float>> input_, output_, scratch_;  // each with one element more
  std::vector<float*> results_;
};

}  // namespace coll::testing
