// SPDX-License-Identifier: Apache-2.0
// What collectives by messages have in common (sparse vectors, Adasum): a first step by which the
// ranks agree, which is a collective like any other, so that ranks that do not make the same call
// are told so; then rounds of messages whose length only their senders know.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/parcel.h"
#include "communicator/call.h"
#include "communicator/diagnosis.h"
#include "communicator/last_call.h"
#include "communicator/pair_call.h"
#include "communicator/steps.h"

namespace coll {

// "16 TiB", rounded down
std::string in_bytes(std::uint64_t bytes);

class MessageSteps : public Steps {
 public:
  Status start() final;
  Status resume() final;

 protected:
  // `timeout`: seconds of all steps together; `of`: what they are the rest of, 0: they are all.
  MessageSteps(int rank, int ranks, double timeout, Purpose purpose, double of = 0)
      : rank_(rank),
        ranks_(ranks),
        limit_(timeout),
        told_(of > 0 ? of : timeout),
        purpose_(purpose) {}

  // The first step: agree(). What the program has handed in is looked at here, not in constructors:
  // that may take long.
  virtual Status begin() = 0;
  // What was begun is done. Begins the next step, by run() or send() and expect(); false: there is
  // none.
  virtual bool step(Status& status) = 0;
  // What was in progress goes on.
  virtual Status resumed() { return go_on(); }

  // The communicator's calls.
  virtual Status run(const Call& call) = 0;
  virtual Status run(const PairCall& call) = 0;
  virtual coll_request post(const PairCall& call) = 0;
  virtual Status go_on() = 0;
  virtual std::uint64_t calls() const = 0;
  virtual bool interruptible() const = 0;
  virtual std::optional<LastCall> last() = 0;
  virtual void check_failed() = 0;
  [[noreturn]] virtual void fail(const Cause& cause) = 0;

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }
  // Gives all ranks what each has, if all say the same words.
  Status agree(const void* mine, void* all, std::size_t bytes, std::string_view words);
  // The same, where each has a block for each.
  Status agree_in_blocks(const void* mine, void* all, std::size_t block, std::string_view words);
  // Until the step is over the memory stays where it is. A longer message ends the call.
  void send(int to, const std::byte* message, std::size_t bytes);
  void expect(int from, Parcel& into, std::size_t most);
  // Seconds until all is to be over.
  double left() const;
  double limit() const noexcept { return limit_; }
  // The seconds that were asked for, for error texts.
  double told() const noexcept { return told_; }
  // "adasum #3: " and what it says.
  Error labelled(const Error& error) const;
  // For all messages of this call.
  std::uint64_t name() const;

  // Of messages whose length only their senders know, or who may be about another call.
  static constexpr std::size_t kAnyLength = std::numeric_limits<std::size_t>::max() / 2;

  [[noreturn]] static void wrong_message(int from, const char* why) {
    throw Error(Status::internal, "rank " + std::to_string(from) + " sent a message that " + why,
                from);
  }

  // Does what may take long before anything was sent. What is wrong with it is between this rank
  // and its program; but the others wait meanwhile, so a time-out is theirs, too.
  template <class Work>
  auto prepared(Work work) {
    try {
      return work();
    } catch (const Error& error) {
      if (error.status != Status::timeout) throw;
      fail_here(error);
    } catch (const std::bad_alloc& error) {
      throw labelled(out_of_memory(error));
    }
  }

  // Does what may fail on one rank alone: that ends the call on all of them.
  template <class Work>
  auto guarded(Work work) {
    try {
      return work();
    } catch (const Error& error) {
      fail_here(error);
    } catch (const std::bad_alloc& error) {
      fail_here(out_of_memory(error));
    }
  }

 private:
  Status advance(Status status);
  Status tell(Kind kind, const void* mine, void* all, std::size_t count, std::string_view words);
  Status wait();
  void look_up();
  [[noreturn]] void fail_here(const Error& error);
  Error out_of_memory(const std::bad_alloc& why) const;

  int rank_, ranks_;
  double limit_, told_;
  Purpose purpose_;
  std::string label_;  // "adasum #3"
  std::uint64_t words_ = 0;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::vector<coll_request> sends_, receives_;  // that were not waited for
};

// Such steps on a communicator C of either kind.
template <class Work, class C>
class StepsOn final : public Work {
 public:
  template <class... Arguments>
  explicit StepsOn(C& communicator, Arguments&&... arguments)
      : Work(communicator.rank(), communicator.ranks(), communicator.timeout(),
             std::forward<Arguments>(arguments)...),
        communicator_(communicator) {}

 private:
  Status run(const Call& call) override { return communicator_.run(call); }
  Status run(const PairCall& call) override { return communicator_.run(call); }
  coll_request post(const PairCall& call) override { return communicator_.post(call); }
  Status go_on() override { return communicator_.resume(); }
  std::uint64_t calls() const override { return communicator_.calls(); }
  bool interruptible() const override { return communicator_.interruptible(); }
  std::optional<LastCall> last() override { return communicator_.last(); }
  void check_failed() override { communicator_.check_failed(); }
  [[noreturn]] void fail(const Cause& cause) override { communicator_.fail(cause); }

  C& communicator_;
};

}  // namespace coll
