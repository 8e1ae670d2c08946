// SPDX-License-Identifier: Apache-2.0
// Forms groups of the ranks of a group, by three allgathers of that group: what each rank wishes;
// where the new groups meet; whether all have entered. So either all ranks have their groups, or
// all get the same error and nothing is left. Resumable, as a call is.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "communicator/call.h"
#include "communicator/diagnosis.h"
#include "communicator/forming.h"

namespace coll {

// What one rank asks for.
struct GroupWish {
  Purpose purpose = Purpose::split;
  std::int64_t color = -1;  // ranks of one color form a group; negative: in none
  std::int64_t key = 0;     // the order in the group; where keys are equal, that of the ranks
  std::string same;         // what all ranks must have asked for, in words
};

class Regroup : public Forming {
 public:
  Status start() override;
  Status resume() override;
  bool member() const noexcept override { return rank_ >= 0; }

 protected:
  // `rank` and `ranks` of the parent.
  Regroup(int rank, int ranks, const GroupWish& wish);

  // The parent's calls.
  virtual Status run(const Call& call) = 0;
  virtual Status go_on() = 0;
  virtual std::uint64_t calls() const = 0;
  [[noreturn]] virtual void fail(const Cause& cause) = 0;
  // By every rank that will be in a group: what it does alone, and then with what the others of its
  // group have told by tell().
  virtual void found() = 0;
  virtual void enter() = 0;

  // This rank in the new group, the ranks of the parent that are in it, and what tells the group
  // from the others that are formed.
  int rank() const noexcept { return rank_; }
  const std::vector<int>& members() const noexcept { return members_; }
  std::string name() const;
  // Where the group, or this rank of it, can be met; what a member has told.
  void tell(std::string_view where);
  std::string told_by(int member) const;

 private:
  enum class Stage : std::uint8_t { wishing, founding, entering };
  static constexpr std::size_t kWords = 128, kText = 240, kWhere = 256;

  // What travels.
  struct Wish {
    std::int64_t color, key;
    std::uint64_t hash;
    std::array<char, kWords> same;
  };
  struct Report {
    std::int32_t status;
    std::array<char, kWhere> where;
    std::array<char, kText> text;
  };

  template <class T>
  Status exchange(const T& mine, std::vector<T>& all);
  Status advance(Status status);
  void check_wishes();
  void find_place();
  template <class Step>
  void attempt(Step step) noexcept;
  void report(Status status, std::string_view text) noexcept;
  void check_reports() const;

  int own_;  // rank in the parent
  Purpose purpose_;
  Stage stage_ = Stage::wishing;
  Wish wish_{};
  Report report_{};
  std::vector<Wish> wishes_;
  std::vector<Report> reports_;
  int rank_ = -1;
  std::vector<int> members_;
};

}  // namespace coll
