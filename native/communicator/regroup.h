// SPDX-License-Identifier: Apache-2.0
// Forms groups of the ranks of a group, by three allgathers of that group: what each rank wishes;
// what the first rank of each new group has made; whether all have entered. So either all ranks
// have their groups, or all get the same error and nothing is left. Resumable, as a call is.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/membership.h"
#include "communicator/communicator.h"

namespace coll {

// What one rank asks for.
struct GroupWish {
  Purpose purpose = Purpose::split;
  std::int64_t color = -1;  // ranks of one color form a group; negative: in none
  std::int64_t key = 0;     // the order in the group; where keys are equal, that of the ranks
  std::string same;         // what all ranks must have asked for, in words
};

class Regroup {
 public:
  Regroup(Communicator& parent, const GroupWish& wish);

  // ok, or in_progress where the parent is interruptible: then resume(). Throws Error.
  Status start();
  Status resume();
  // After ok: whether this rank is in a group, and once, its communicator.
  bool member() const noexcept { return rank_ >= 0; }
  Communicator take();

 private:
  enum class Stage : std::uint8_t { wishing, founding, entering };
  static constexpr std::size_t kWords = 128, kText = 240;

  // What travels.
  struct Wish {
    std::int64_t color, key;
    std::uint64_t hash;
    std::array<char, kWords> same;
  };
  struct Report {
    std::uint64_t group;  // the name of the group that this rank has founded, or 0
    std::int32_t status;
    std::array<char, kText> text;
  };

  template <class T>
  Status exchange(const T& mine, std::vector<T>& all);
  Status advance(Status status);
  void check_wishes();
  void find_place();
  void found();
  void enter();
  template <class Step>
  void attempt(Step step) noexcept;
  void report(Status status, std::string_view text) noexcept;
  void check_reports() const;

  Communicator& parent_;
  Purpose purpose_;
  Stage stage_ = Stage::wishing;
  Wish wish_{};
  Report report_{};
  std::vector<Wish> wishes_;
  std::vector<Report> reports_;
  int rank_ = -1, first_ = -1;  // in the new group; of its first rank, in the parent
  SegmentShape shape_;
  Membership place_;
};

}  // namespace coll
