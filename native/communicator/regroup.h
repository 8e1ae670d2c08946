// SPDX-License-Identifier: Apache-2.0
// Forms groups of the ranks of a group, by allgathers of that group: what each rank wishes; then,
// after each step by which the new groups come to be, what it was for each rank. The last one says
// whether all have entered. So either all ranks have their groups, or all get the same error and
// nothing is left. Resumable, as a call is.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "communicator/call.h"
#include "communicator/diagnosis.h"
#include "communicator/steps.h"

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
  // `rank` and `ranks` of the parent; `host`: whose memory a group of this rank may share, empty:
  // of none.
  Regroup(int rank, int ranks, const GroupWish& wish, std::string_view host = "");

  // The parent's calls.
  virtual Status run(const Call& call) = 0;
  virtual Status go_on() = 0;
  virtual std::uint64_t calls() const = 0;
  [[noreturn]] virtual void fail(const Cause& cause) = 0;
  // Goes on to the next step, by what all ranks know; false: there is none.
  virtual bool next() noexcept = 0;
  // By every rank that will be in a group: what it does alone, with what the others of its group
  // have told in the step before by tell().
  virtual void step() = 0;

  // This rank in the new group, the ranks of the parent that are in it, and what tells the group
  // from the others that are formed.
  int rank() const noexcept { return rank_; }
  const std::vector<int>& members() const noexcept { return members_; }
  std::string name() const;
  // Where the group, or this rank of it, can be met; what a member has told in the last step.
  void tell(std::string_view where);
  std::string told_by(int member) const;
  // Of any rank of the parent, once wishes are known: whether it has told anything, whether it will
  // be in a group, whether in that of another rank, and whether the hosts of both are one.
  bool has_told(std::size_t rank) const noexcept { return reports_[rank].where.front() != '\0'; }
  bool grouped(std::size_t rank) const noexcept { return wishes_[rank].color >= 0; }
  bool together(std::size_t a, std::size_t b) const noexcept;
  bool on_one_host(std::size_t a, std::size_t b) const noexcept;

 private:
  static constexpr std::size_t kWords = 128, kText = 240, kWhere = 256;

  // What travels.
  struct Wish {
    std::int64_t color, key;
    std::uint64_t hash, host;  // host 0: of none
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
  bool placed_ = false;
  Wish wish_{};
  Report report_{};
  std::vector<Wish> wishes_;
  std::vector<Report> reports_;
  int rank_ = -1;
  std::vector<int> members_;
};

}  // namespace coll
